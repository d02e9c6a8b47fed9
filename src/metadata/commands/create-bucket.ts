// R41, in the bucket's home: the bucket by its id. Asking again gives the same bucket, unless it has been deleted.
import { type BucketRecord, bucketCodec } from '../../model/records/rows.ts';
import type { CommandOf, OutcomeOf } from '../../ports/metadata.ts';
import { findBucket } from '../buckets.ts';
import { COUNTER } from '../counters.ts';
import { defineCommand, exclusive, LOCK } from '../define-command.ts';
import { bucketRow, put } from '../keyspace.ts';
import { refuse } from '../write-version.ts';

export const createBucket = defineCommand<CommandOf<'create-bucket'>, OutcomeOf<'create-bucket'>>({
  locks: ({ bucketId }) => [exclusive(LOCK.bucket(bucketId))],

  look({ bucketId }, view) {
    findBucket(view, bucketId);
  },

  decide({ bucketId, name, owner }, view, { nowMs }) {
    const before = findBucket(view, bucketId);
    if (before !== undefined) {
      return refuse(
        before.state === 'deleted' ? { kind: 'deleted-already' } : { kind: 'created', bucket: before },
      );
    }
    const bucket: BucketRecord = {
      bucketId,
      name,
      nameEpoch: 1,
      owner,
      state: 'open',
      createdAtMs: nowMs,
      cfgVersion: 1,
      versioning: 'unversioned',
    };
    return {
      outcome: { kind: 'created', bucket },
      puts: [put(bucketRow(bucketId), bucketCodec.encode(bucket))],
      counters: [{ name: COUNTER.buckets, delta: 1 }],
    };
  },
});
