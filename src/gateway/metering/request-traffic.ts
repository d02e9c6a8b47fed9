// What one S3 request counts for, and for whom (extensions 6): once it is over, and by what its record says.
import type { AccountId } from '../../types/names.ts';
import type { AccessRecord } from '../s3/access-record.ts';
import { OPERATIONS } from '../s3/registry.ts';
import type { Charged, RequestTraffic, TrafficMeter } from './traffic-meter.ts';

type CallKind = RequestTraffic['kind'];

/** By name of the operation. */
const KINDS: ReadonlyMap<string, CallKind> = new Map(
  OPERATIONS.map(({ name, match }): [string, CallKind] => [name, kindOf(name, match.method)]),
);

function kindOf(name: string, method: string): CallKind {
  if (name === 'DeleteObjects') return 'delete';
  if (name.startsWith('List')) return 'list';
  if (method === 'GET') return 'get';
  if (method === 'HEAD') return 'head';
  if (method === 'DELETE') return 'delete';
  return method === 'PUT' || method === 'POST' ? 'put' : 'other';
}

export function meterRequest(meter: Pick<TrafficMeter, 'note'>, record: AccessRecord): void {
  const charged = chargedFor(record);
  if (charged === undefined) return;
  const { operation = '', status, receivedBytes, sentBytes, storedBytes, removedBytes = 0 } = record;
  const isDone = status < 300;
  meter.note(charged, {
    kind: KINDS.get(operation) ?? 'other',
    uploadBytes: receivedBytes,
    downloadBytes: sentBytes,
    // The size of what is appended need not be known before.
    wroteBytes: storedBytes ?? (isDone && operation === 'AppendObject' ? receivedBytes : 0),
    readBytes: isDone && operation === 'GetObject' ? sentBytes : 0,
    deleteBytes: removedBytes,
  });
}

/**
 * The owner of the bucket, whoever asks. Nobody for a fault of ours, for what is refused to strangers, and for a request that
 * is about no bucket and has no good signature.
 */
function chargedFor({ status, metered, accountId, bucketOwner }: AccessRecord): Charged | undefined {
  if (status >= 500) return undefined;
  if (metered === undefined)
    return accountId === undefined ? undefined : { accountId: accountId as AccountId };
  const { owner, bucketId } = metered.record;
  const isAdmitted = bucketOwner !== undefined && status !== 403;
  if (!isAdmitted && accountId !== owner) return undefined;
  return { accountId: owner, bucketId, shard: metered.homeShard };
}
