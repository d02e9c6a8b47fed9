// R42, in the bucket's home: an empty bucket is deleted for good, and the system shard is asked to free its name. Open
// uploads do not keep a bucket; they are ended in the background.

import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import type { DecideContext, View } from '../../ports/state-machine.ts';
import { dayOf } from '../../types/metered.ts';
import { makeOutboxId } from '../../types/names.ts';
import { type BucketRecord, bucketCodec, type OutboxRecord, outboxCodec } from '../../types/records/rows.ts';
import type { RowChange } from '../blobs/repair-entries.ts';
import { COUNTER } from '../schema/counters.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import {
  bucketRow,
  bucketUploads,
  deletedBucketRow,
  outboxRow,
  PRESENT,
  put,
  remove,
  usageStateRow,
} from '../schema/keyspace.ts';
import { findUsageState } from '../usage/usage-rows.ts';
import { refuse } from '../versions/write-version.ts';
import { lookAtConfigs, removeConfigs } from './bucket-config.ts';
import { findBucket, versionsOf } from './buckets.ts';

export const deleteBucket = defineCommand<CommandOf<'delete-bucket'>, OutcomeOf<'delete-bucket'>>({
  // Writers into the bucket hold it shared: none can commit behind the look (R7).
  locks: ({ bucketId }) => [exclusive(LOCK.bucket(bucketId)), exclusive(LOCK.usage(bucketId))],

  look({ bucketId }, view) {
    const bucket = findBucket(view, bucketId);
    if (bucket !== undefined) findUsageState(view, { accountId: bucket.owner, bucketId });
    lookAtConfigs(view, bucketId);
    for (const range of [...versionsOf(bucketId), bucketUploads(bucketId, 1)]) view.range(range);
  },

  // Of its first day.
  counters({ bucketId }, view) {
    const bucket = findBucket(view, bucketId);
    return bucket === undefined ? [] : [COUNTER.dayUsage(bucketId, dayOf(bucket.createdAtMs))];
  },

  decide({ bucketId }, view, context) {
    const before = findBucket(view, bucketId);
    if (before?.state !== 'open') return refuse({ kind: 'no-such-bucket' });
    if (versionsOf(bucketId).some((range) => view.range(range).length > 0)) {
      return refuse({ kind: 'not-empty' });
    }
    const bucket: BucketRecord = { ...before, state: 'deleted' };
    const hasUploads = view.range(bucketUploads(bucketId, 1)).length > 0;
    const change = deleteForGood(bucket, hasUploads, view, context);
    const isUnused = !hasUploads && hasNoUsage(bucket, view, context);
    const unmetered = isUnused ? [remove(usageStateRow(bucket.owner, bucketId))] : [];
    return { outcome: { kind: 'deleted', bucket }, ...change, puts: [...change.puts, ...unmetered] };
  },
});

/**
 * Whether it came today, and nothing of it was metered: then there is nothing to charge, and no day of it to close. What requests to
 * it are told later counts for the account, as of any bucket that is gone. A client may make and delete a hundred in a second.
 */
function hasNoUsage(
  { bucketId, owner, createdAtMs }: BucketRecord,
  view: View,
  { nowMs, vector }: DecideContext,
): boolean {
  const state = findUsageState(view, { accountId: owner, bucketId });
  const day = dayOf(createdAtMs);
  if (state === undefined || state.closedDay !== day - 1 || dayOf(nowMs) !== day) return false;
  const { sums, orphaned = [] } = state;
  return (
    orphaned.length === 0 && [...sums, ...vector(COUNTER.dayUsage(bucketId, day))].every((one) => one === 0)
  );
}

/**
 * R42: it is deleted for good with its configuration, and the system shard is asked to free its name; its open uploads end
 * in the background.
 */
export function deleteForGood(
  deleted: BucketRecord,
  hasUploads: boolean,
  view: View,
  { nowMs, random }: DecideContext,
): RowChange {
  const { bucketId, name, owner } = deleted;
  const forget: OutboxRecord = { kind: 'forget-name', bucketId, name, owner };
  // Of its own: in a system shard that is the home, too, the creation's item may be of the same moment.
  const id = makeOutboxId({ timeMs: nowMs, tail: random(8) });
  return {
    puts: [
      put(bucketRow(bucketId), bucketCodec.encode(deleted)),
      put(outboxRow(id), outboxCodec.encode(forget)),
      ...removeConfigs(view, bucketId),
      ...(hasUploads ? [put(deletedBucketRow(bucketId), PRESENT)] : []),
    ],
    counters: [{ name: COUNTER.buckets, delta: -1 }],
  };
}
