// Measures at the end of a day how much data compositions alone keep, and no object is charged for (extensions 6). A walk over a
// shard's blobs adds it up by bucket; then the home of each bucket notes it, for the record of the day. After a restart the walk
// begins anew, and notes the same.
import type { MetadataPort } from '../../ports/metadata/port.ts';
import type { Metering } from '../../types/metered.ts';
import type { BlobId, BucketId } from '../../types/names.ts';
import { type ComposedSum, sumComposed } from '../blobs/read-composed.ts';
import { doneValue } from '../workers/shard-worker.ts';

/** Of one entry. */
const BUCKETS = 100;

interface Walk {
  day: number;
  after?: BlobId;
  /** All pages are in the sums: they are to be noted. */
  isWhole?: boolean;
  sums: Map<BucketId, ComposedSum>;
}

export interface OrphanMeasure {
  /** One page of the walk of a shard's blobs for a day. False: the day is measured. Throws where a shard does not answer. */
  step(shard: number, day: number): Promise<boolean>;
}

export function createOrphanMeasure(metadata: MetadataPort, { minimumDays }: Metering): OrphanMeasure {
  const walks = new Map<number, Walk>();
  const measured = new Map<number, number>();
  /** By shard: the homes of the buckets of which something was noted for the last day. */
  const noted = new Map<number, Map<BucketId, number>>();

  async function note(shard: number, { day, sums }: Walk): Promise<void> {
    const all = new Map(
      [...sums].map(([bucketId, { shard: home, sizeBytes }]) => [bucketId, { home, sizeBytes }]),
    );
    // Of what is gone, too: without a new measure the one of the day before would hold (usage-rows.ts).
    for (const [bucketId, home] of noted.get(shard) ?? [])
      if (!all.has(bucketId)) all.set(bucketId, { home, sizeBytes: 0 });
    const homes = Map.groupBy(all, ([, { home }]) => home);
    for (const [home, found] of homes) {
      const buckets = found.map(([bucketId, { sizeBytes }]) => ({ bucketId, sizeBytes }));
      for (let at = 0; at < buckets.length; at += BUCKETS) {
        const some = buckets.slice(at, at + BUCKETS);
        const command = { fromShard: shard, day, buckets: some, leavesBusy: true } as const;
        const { left = [] } = doneValue(await metadata.execute({ shard: home }, 'note-orphaned', command));
        // Each by itself: it holds no other while it waits.
        for (const bucket of some.filter(({ bucketId }) => left.includes(bucketId)))
          doneValue(
            await metadata.execute({ shard: home }, 'note-orphaned', {
              fromShard: shard,
              day,
              buckets: [bucket],
            }),
          );
      }
    }
    noted.set(shard, new Map([...sums].map(([bucketId, { shard: home }]) => [bucketId, home])));
  }

  /** Adds a page to the sums. */
  async function walkOn(shard: number, walk: Walk): Promise<void> {
    const place = { shard, ...(walk.after && { after: walk.after }) };
    const page = await sumComposed(metadata, place, { day: walk.day, minimumDays });
    for (const [bucketId, { shard: home, sizeBytes, blobCount }] of page.found) {
      const sum = walk.sums.get(bucketId);
      if (sum === undefined) walk.sums.set(bucketId, { shard: home, sizeBytes, blobCount });
      else sum.sizeBytes += sizeBytes;
    }
    if (page.next === undefined) walk.isWhole = true;
    else walk.after = page.next;
  }

  return {
    async step(shard, day) {
      if ((measured.get(shard) ?? 0) >= day) return false;
      const found = walks.get(shard);
      const walk = found?.day === day ? found : { day, sums: new Map<BucketId, ComposedSum>() };
      walks.set(shard, walk);
      // What was noted in part is noted again, from the same sums.
      if (!walk.isWhole) await walkOn(shard, walk);
      if (!walk.isWhole) return true;
      await note(shard, walk);
      walks.delete(shard);
      measured.set(shard, day);
      return false;
    },
  };
}
