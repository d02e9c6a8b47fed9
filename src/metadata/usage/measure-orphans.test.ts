import { expect, test } from 'vitest';
import type { MetadataPort } from '../../ports/metadata/port.ts';
import type { BlobId, BucketId } from '../../types/names.ts';
import { createOrphanMeasure } from './measure-orphans.ts';

const BUCKET = 'b0' as BucketId;

/** One shard whose blobs fill two pages. `sizes`: what compositions alone keep, by day and page. */
function openMeasure(sizes: Readonly<Record<number, readonly number[]>>) {
  const noted: { day: number; buckets: { bucketId: BucketId; sizeBytes: number }[] }[] = [];
  const away = { count: 0 };
  const metadata = {
    shardCount: 1,
    async query(_place: unknown, _name: string, query: { after?: BlobId; charging: { day: number } }) {
      const page = query.after === undefined ? 0 : 1;
      const sizeBytes = sizes[query.charging.day]?.[page] ?? 0;
      const buckets = sizeBytes > 0 ? [{ bucketId: BUCKET, sizeBytes, blobCount: 1 }] : [];
      return { kind: 'done', value: { buckets, claimed: [], ...(page === 0 && { next: 'a' as BlobId }) } };
    },
    async execute(_place: unknown, _name: string, { day, buckets }: (typeof noted)[number]) {
      if (away.count-- > 0) return { kind: 'unavailable' };
      noted.push({ day, buckets });
      return { kind: 'done', value: { kind: 'noted' } };
    },
  };
  const measure = createOrphanMeasure(metadata as unknown as MetadataPort, { minimumDays: 90 });
  return { measure, noted, away };
}

test('a measure that could not be noted is noted later as it was', async () => {
  const { measure, noted, away } = openMeasure({ 7: [4096, 8192] });
  away.count = 2;
  expect(await measure.step(0, 7)).toBe(true);
  await expect(measure.step(0, 7)).rejects.toThrow();
  await expect(measure.step(0, 7)).rejects.toThrow();
  expect(await measure.step(0, 7)).toBe(false);
  expect(noted).toEqual([{ day: 7, buckets: [{ bucketId: BUCKET, sizeBytes: 12_288 }] }]);
});

test('that nothing is kept any more is noted once', async () => {
  const { measure, noted } = openMeasure({ 7: [4096, 0] });
  for (const day of [7, 8, 9]) while (await measure.step(0, day));
  expect(noted).toEqual([
    { day: 7, buckets: [{ bucketId: BUCKET, sizeBytes: 4096 }] },
    { day: 8, buckets: [{ bucketId: BUCKET, sizeBytes: 0 }] },
  ]);
});
