// R43, in the bucket's home: the one moment of change. Each rename is decided once, by the epoch that it ends: a refusal
// moves on to the next epoch as well, so that a message that comes late cannot do what was undone long ago.

import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import { type BucketRecord, bucketCodec } from '../../types/records/rows.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { bucketRow, put } from '../schema/keyspace.ts';
import { refuse } from '../versions/write-version.ts';
import { findBucket } from './buckets.ts';

export const renameBucket = defineCommand<CommandOf<'rename-bucket'>, OutcomeOf<'rename-bucket'>>({
  // Writers into the bucket hold it shared: none under the old name can commit behind this (R45).
  locks: ({ bucketId }) => [exclusive(LOCK.bucket(bucketId))],

  look({ bucketId }, view) {
    findBucket(view, bucketId);
  },

  decide({ bucketId, from, to, nameEpoch }, view) {
    const before = findBucket(view, bucketId);
    if (before === undefined) return refuse({ kind: 'refused' });
    // Whether the bucket was deleted since or not: its new name must be there to be forgotten (R42).
    if (before.nameEpoch === nameEpoch + 1 && before.name === to) {
      return refuse({ kind: 'renamed', bucket: before });
    }
    if (before.nameEpoch > nameEpoch || before.state === 'deleted') return refuse({ kind: 'refused' });
    const isGranted = before.state === 'open' && before.nameEpoch === nameEpoch && before.name === from;
    const bucket: BucketRecord = {
      ...before,
      nameEpoch: nameEpoch + 1,
      name: isGranted ? to : before.name,
    };
    return {
      outcome: isGranted ? { kind: 'renamed', bucket } : { kind: 'refused' },
      puts: [put(bucketRow(bucketId), bucketCodec.encode(bucket))],
    };
  },
});
