// R42, in the bucket's home: an empty bucket becomes deleted for good, and the system shard is told to free its name.
// Open uploads do not keep a bucket; they are ended in the background.
import { type BucketId, makeOutboxId } from '../../model/names.ts';
import { type BucketRecord, bucketCodec, type OutboxRecord, outboxCodec } from '../../model/records/rows.ts';
import type { CommandOf, OutcomeOf } from '../../ports/metadata.ts';
import type { RangeAddress } from '../../ports/state-machine.ts';
import { findBucket } from '../buckets.ts';
import { COUNTER } from '../counters.ts';
import { defineCommand, exclusive, LOCK } from '../define-command.ts';
import {
  bucketRow,
  bucketUploads,
  deletedBucketRow,
  outboxRow,
  PRESENT,
  put,
  REGION,
  regionRange,
} from '../keyspace.ts';
import { refuse } from '../write-version.ts';

export const deleteBucket = defineCommand<CommandOf<'delete-bucket'>, OutcomeOf<'delete-bucket'>>({
  // Whoever writes into the bucket holds it shared: nothing slips in behind the look (R7).
  locks: ({ bucketId }) => [exclusive(LOCK.bucket(bucketId))],

  look({ bucketId }, view) {
    findBucket(view, bucketId);
    for (const range of [...versionRanges(bucketId), bucketUploads(bucketId, 1)]) view.range(range);
  },

  decide({ bucketId }, view, { nowMs, random }) {
    const before = findBucket(view, bucketId);
    if (before?.state !== 'open') return refuse({ kind: 'no-such-bucket' });
    if (versionRanges(bucketId).some((range) => view.range(range).length > 0)) {
      return refuse({ kind: 'not-empty' });
    }
    const bucket: BucketRecord = { ...before, state: 'deleted' };
    const { name, owner } = bucket;
    const forget: OutboxRecord = { kind: 'forget-name', bucketId, name, owner };
    // Of its own: in a system shard that is the home, too, the creation's item may be of the same moment.
    const id = makeOutboxId({ timeMs: nowMs, tail: random(8) });
    const hasUploads = view.range(bucketUploads(bucketId, 1)).length > 0;
    return {
      outcome: { kind: 'deleted', bucket },
      puts: [
        put(bucketRow(bucketId), bucketCodec.encode(bucket)),
        put(outboxRow(id), outboxCodec.encode(forget)),
        ...(hasUploads ? [put(deletedBucketRow(bucketId), PRESENT)] : []),
      ],
      counters: [{ name: COUNTER.buckets, delta: -1 }],
    };
  },
});

function versionRanges(bucketId: BucketId): RangeAddress[] {
  return Object.values(REGION).map((region) => regionRange({ region, bucketId, limit: 1 }));
}
