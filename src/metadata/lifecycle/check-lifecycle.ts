// Rows of the lifecycle as fsck sees them: each bucket in which anything may go by itself has its place in the queue.
import { toHex } from '../../base/bytes/bytes.ts';
import type { BucketId } from '../../types/names.ts';
import { lifecycleCodec } from '../../types/records/lifecycle-record.ts';
import type { RowCheck } from '../checks/scan.ts';
import { readU48 } from '../schema/key-parts.ts';
import { lifecycleRow, lifecycleTimeRow } from '../schema/keyspace.ts';
import { mayExpire } from './lifecycle-rows.ts';

export const checkLifecycle: RowCheck = async (row, scan) => {
  const { bucketId, dueAtMs } = lifecycleCodec.decode(row.value);
  const bucket = await scan.bucket(bucketId);
  const place = { bucket: bucket?.name ?? bucketId, table: 'lifecycles' };
  if (toHex(lifecycleRow(bucketId).key) !== toHex(row.key)) scan.found('broken-row', place);
  if (bucket === undefined || bucket.state === 'deleted' || !mayExpire(bucket))
    scan.found('queue-orphaned', place);
  await scan.expectRow(lifecycleTimeRow(dueAtMs, bucketId), 'queue-missing', place);
};

export const checkLifecycleTime: RowCheck = async (row, scan) => {
  const bucketId = toHex(row.key.subarray(6)) as BucketId;
  const found = await scan.row(lifecycleRow(bucketId));
  const isSame = found !== undefined && lifecycleCodec.decode(found).dueAtMs === readU48(row.key);
  if (!isSame) scan.found('queue-orphaned', { bucket: bucketId, table: 'lifecycleTimes' });
};
