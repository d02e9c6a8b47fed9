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
  sums: Map<BucketId, ComposedSum>;
}

export interface OrphanMeasure {
  /** One page of the walk of a shard's blobs for a day. False: the day is measured. Throws where a shard does not answer. */
  step(shard: number, day: number): Promise<boolean>;
}

export function createOrphanMeasure(metadata: MetadataPort, { minimumDays }: Metering): OrphanMeasure {
  const walks = new Map<number, Walk>();
  const measured = new Map<number, number>();

  async function note(shard: number, { day, sums }: Walk): Promise<void> {
    const homes = Map.groupBy(sums, ([, { shard: home }]) => home);
    for (const [home, found] of homes) {
      const all = found.map(([bucketId, { sizeBytes }]) => ({ bucketId, sizeBytes }));
      for (let at = 0; at < all.length; at += BUCKETS) {
        const command = { fromShard: shard, day, buckets: all.slice(at, at + BUCKETS) };
        doneValue(await metadata.execute({ shard: home }, 'note-orphaned', command));
      }
    }
  }

  return {
    async step(shard, day) {
      if ((measured.get(shard) ?? 0) >= day) return false;
      const found = walks.get(shard);
      const walk = found?.day === day ? found : { day, sums: new Map<BucketId, ComposedSum>() };
      walks.set(shard, walk);
      const place = { shard, ...(walk.after && { after: walk.after }) };
      const page = await sumComposed(metadata, place, { day, minimumDays });
      for (const [bucketId, { shard: home, sizeBytes, blobCount }] of page.found) {
        const sum = walk.sums.get(bucketId);
        if (sum === undefined) walk.sums.set(bucketId, { shard: home, sizeBytes, blobCount });
        else sum.sizeBytes += sizeBytes;
      }
      if (page.next !== undefined) {
        walk.after = page.next;
        return true;
      }
      await note(shard, walk);
      walks.delete(shard);
      measured.set(shard, day);
      return false;
    },
  };
}
