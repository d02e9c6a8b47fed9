// R41, in the bucket's home: the bucket by its id, with the settings that it was asked with. Asking again gives the same bucket,
// unless it has been deleted.

import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import { dayOf } from '../../types/metered.ts';
import { type BucketRecord, bucketCodec } from '../../types/records/rows.ts';
import { usageStateCodec } from '../../types/records/usage-record.ts';
import { COUNTER } from '../schema/counters.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { bucketRow, put, usageStateRow } from '../schema/keyspace.ts';
import { refuse } from '../versions/write-version.ts';
import { withSettings } from './bucket-config.ts';
import { findBucket } from './buckets.ts';

export const createBucket = defineCommand<CommandOf<'create-bucket'>, OutcomeOf<'create-bucket'>>({
  locks: ({ bucketId }) => [exclusive(LOCK.bucket(bucketId))],

  look({ bucketId }, view) {
    findBucket(view, bucketId);
  },

  decide({ bucketId, name, owner, settings = {} }, view, { nowMs }) {
    const before = findBucket(view, bucketId);
    if (before !== undefined) {
      return refuse(
        before.state === 'deleted' ? { kind: 'deleted-already' } : { kind: 'created', bucket: before },
      );
    }
    const plain: BucketRecord = {
      bucketId,
      name,
      nameEpoch: 1,
      owner,
      state: 'open',
      createdAtMs: nowMs,
      cfgVersion: 1,
      versioning: 'unversioned',
    };
    const { bucket, puts } = withSettings(plain, { settings, nowMs });
    return {
      outcome: { kind: 'created', bucket },
      puts: [
        put(bucketRow(bucketId), bucketCodec.encode(bucket)),
        ...puts,
        put(
          usageStateRow(owner, bucketId),
          usageStateCodec.encode({ closedDay: dayOf(nowMs) - 1, sums: [] }),
        ),
      ],
      counters: [{ name: COUNTER.buckets, delta: 1 }],
    };
  },
});
