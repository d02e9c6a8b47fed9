// R42, in the bucket's home: an empty bucket becomes deleted for good, and the system shard is told to free its name.
// Open uploads do not keep a bucket; they are ended in the background.

import type { CommandOf, OutcomeOf } from '../../ports/metadata.ts';
import type { BucketRecord } from '../../types/records/rows.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { bucketUploads } from '../schema/keyspace.ts';
import { refuse } from '../versions/write-version.ts';
import { deleteForGood, findBucket, versionsOf } from './buckets.ts';

export const deleteBucket = defineCommand<CommandOf<'delete-bucket'>, OutcomeOf<'delete-bucket'>>({
  // Whoever writes into the bucket holds it shared: nothing slips in behind the look (R7).
  locks: ({ bucketId }) => [exclusive(LOCK.bucket(bucketId))],

  look({ bucketId }, view) {
    findBucket(view, bucketId);
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
    return { outcome: { kind: 'deleted', bucket }, ...deleteForGood(bucket, hasUploads, context) };
  },
});
