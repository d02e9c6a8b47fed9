// R42, in the bucket's home: an empty bucket is deleted for good, and the system shard is asked to free its name. Open
// uploads do not keep a bucket; they are ended in the background.

import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import type { DecideContext, View } from '../../ports/state-machine.ts';
import { makeOutboxId } from '../../types/names.ts';
import { type BucketRecord, bucketCodec, type OutboxRecord, outboxCodec } from '../../types/records/rows.ts';
import type { RowChange } from '../blobs/repair-entries.ts';
import { COUNTER } from '../schema/counters.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { bucketRow, bucketUploads, deletedBucketRow, outboxRow, PRESENT, put } from '../schema/keyspace.ts';
import { refuse } from '../versions/write-version.ts';
import { lookAtConfigs, removeConfigs } from './bucket-config.ts';
import { findBucket, versionsOf } from './buckets.ts';

export const deleteBucket = defineCommand<CommandOf<'delete-bucket'>, OutcomeOf<'delete-bucket'>>({
  // Writers into the bucket hold it shared: none can commit behind the look (R7).
  locks: ({ bucketId }) => [exclusive(LOCK.bucket(bucketId))],

  look({ bucketId }, view) {
    findBucket(view, bucketId);
    lookAtConfigs(view, bucketId);
    for (const range of [...versionsOf(bucketId), bucketUploads(bucketId, 1)]) view.range(range);
  },

  decide({ bucketId }, view, context) {
    const before = findBucket(view, bucketId);
    if (before?.state !== 'open') return refuse({ kind: 'no-such-bucket' });
    if (versionsOf(bucketId).some((range) => view.range(range).length > 0)) {
      return refuse({ kind: 'not-empty' });
    }
    const bucket: BucketRecord = { ...before, state: 'deleted' };
    const hasUploads = view.range(bucketUploads(bucketId, 1)).length > 0;
    return { outcome: { kind: 'deleted', bucket }, ...deleteForGood(bucket, hasUploads, view, context) };
  },
});

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
