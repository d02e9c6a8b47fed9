// PutBucketVersioning. Gateways that authorised by the old settings do so anew (R45).

import type { CommandOf, OutcomeOf } from '../../ports/metadata.ts';
import { type BucketRecord, bucketCodec } from '../../types/records/rows.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { bucketRow, put } from '../schema/keyspace.ts';
import { refuse } from '../versions/write-version.ts';
import { findBucket } from './buckets.ts';

export const setVersioning = defineCommand<CommandOf<'set-versioning'>, OutcomeOf<'set-versioning'>>({
  locks: ({ bucketId }) => [exclusive(LOCK.bucket(bucketId))],

  look({ bucketId }, view) {
    findBucket(view, bucketId);
  },

  decide({ bucketId, ...changes }, view) {
    const before = findBucket(view, bucketId);
    if (before?.state !== 'open') return refuse({ kind: 'no-such-bucket' });
    const { versioning = before.versioning, mfaDelete = before.mfaDelete } = changes;
    if (before.versioning === versioning && before.mfaDelete === mfaDelete) {
      return refuse({ kind: 'changed', bucket: before });
    }
    const cfgVersion = before.cfgVersion + 1;
    const bucket: BucketRecord = { ...before, versioning, ...(mfaDelete && { mfaDelete }), cfgVersion };
    return {
      outcome: { kind: 'changed', bucket },
      puts: [put(bucketRow(bucketId), bucketCodec.encode(bucket))],
    };
  },
});
