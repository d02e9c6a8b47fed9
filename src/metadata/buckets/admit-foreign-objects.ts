// What goes before the first version or upload of another account: the bucket's row says that there may be such. It counts
// as a change of settings, so gateways that hold the bucket learn of it before they judge by its absence (R45).
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import { type BucketRecord, bucketCodec } from '../../types/records/rows.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { bucketRow, put } from '../schema/keyspace.ts';
import { refuse } from '../versions/write-version.ts';
import { findBucket } from './buckets.ts';

export const admitForeignObjects = defineCommand<
  CommandOf<'admit-foreign-objects'>,
  OutcomeOf<'admit-foreign-objects'>
>({
  locks: ({ bucketId }) => [exclusive(LOCK.bucket(bucketId))],

  look({ bucketId }, view) {
    findBucket(view, bucketId);
  },

  decide({ bucketId }, view) {
    const before = findBucket(view, bucketId);
    if (before?.state !== 'open') return refuse({ kind: 'no-such-bucket' });
    if (before.mayHaveForeignObjects) return refuse({ kind: 'admitted', bucket: before });
    const bucket: BucketRecord = {
      ...before,
      mayHaveForeignObjects: true,
      cfgVersion: before.cfgVersion + 1,
    };
    return {
      outcome: { kind: 'admitted', bucket },
      puts: [put(bucketRow(bucketId), bucketCodec.encode(bucket))],
    };
  },
});
