// The counters of a shard: their names, and what changes of versions add to them. Objects are all versions but delete
// markers, current or not; bytes are theirs, as often as versions show them, however many share a blob. Parts of open
// uploads are not counted.

import type { CounterDelta } from '../../ports/state-machine.ts';
import type { EventConsumer } from '../../types/events.ts';
import type { AccountId, BucketId } from '../../types/names.ts';
import type { JobKind, JobState } from '../../types/records/job-record.ts';
import type { BucketRecord } from '../../types/records/rows.ts';
import type { VersionRecord } from '../../types/version.ts';

export const COUNTER = {
  objects: 'objects',
  bytes: 'bytes',
  /** Open buckets whose home this is. */
  buckets: 'buckets',
  /** Blobs that are marked for deletion and not yet erased. */
  condemned: 'condemned',
  /** Keys that were renamed, ever: a walk over all versions compares it to see whether one has passed it by. */
  moves: 'moves',
  /** What is kept of requests that are over, in all and of one account: under tokens, and without (outcome-bounds.ts). */
  keptBytes: 'kept-bytes',
  accountOutcomeBytes: (accountId: AccountId) => `kept-bytes/${accountId}`,
  tokenlessBytes: 'tokenless-bytes',
  accountTokenlessBytes: (accountId: AccountId) => `tokenless-bytes/${accountId}`,
  /** Jobs that are kept. */
  jobs: (kind: JobKind, state: JobState) => `jobs/${kind}/${state}`,
  /** Blobs that lack copies, and their chunks that do, by the fewest copies. */
  debts: (copies: number) => `debts/${copies}`,
  debtChunks: (copies: number) => `debt-chunks/${copies}`,
  /** Events that were ever written for a consumer: the number of the next one. */
  events: (consumer: EventConsumer) => `events/${consumer}`,
  /** Changes of what is in the bucket that may make due what was not, where anything goes by itself (lifecycle-rows.ts). */
  lifecycleChanges: (bucketId: BucketId) => `bucket/${bucketId}/lifecycle-changes`,
  bucketObjects: (bucketId: BucketId) => `bucket/${bucketId}/objects`,
  bucketBytes: (bucketId: BucketId) => `bucket/${bucketId}/bytes`,
  /** Of the parts of open uploads, for quotas. */
  bucketUploadBytes: (bucketId: BucketId) => `bucket/${bucketId}/upload-bytes`,
  /** The same of all buckets of an account in this shard. */
  accountObjects: (accountId: AccountId) => `account/${accountId}/objects`,
  accountBytes: (accountId: AccountId) => `account/${accountId}/bytes`,
  accountUploadBytes: (accountId: AccountId) => `account/${accountId}/upload-bytes`,
  /** How much of an account's quota the shard may fill (quotas/held.ts). */
  quotaLease: (accountId: AccountId, field: 'bytes' | 'objects' | 'version') =>
    `account/${accountId}/lease-${field}`,
} as const;

export function usageDeltas(
  { bucketId, owner }: Pick<BucketRecord, 'bucketId' | 'owner'>,
  change: { added: readonly VersionRecord[]; removed: readonly VersionRecord[] },
): CounterDelta[] {
  let objects = 0;
  let bytes = 0;
  for (const { isDeleteMarker, sizeBytes } of change.added) {
    if (!isDeleteMarker) objects++;
    bytes += sizeBytes;
  }
  for (const { isDeleteMarker, sizeBytes } of change.removed) {
    if (!isDeleteMarker) objects--;
    bytes -= sizeBytes;
  }
  const deltas = [
    { name: COUNTER.objects, delta: objects },
    { name: COUNTER.bucketObjects(bucketId), delta: objects },
    { name: COUNTER.bytes, delta: bytes },
    { name: COUNTER.bucketBytes(bucketId), delta: bytes },
    { name: COUNTER.accountObjects(owner), delta: objects },
    { name: COUNTER.accountBytes(owner), delta: bytes },
  ];
  return deltas.filter(({ delta }) => delta !== 0);
}
