import { beforeEach, expect, test } from 'vitest';
import {
  BUCKET,
  beginUpload,
  dataOf,
  etagOf,
  type MetadataShards,
  openMetadata,
  putPart,
} from '../../../tests/support/metadata/metadata-shards.ts';
import type { BlobId, ObjectKey, UploadId } from '../../types/names.ts';

const key = 'a' as ObjectKey;
const DAY = 24 * 3600_000;
let world: MetadataShards;
let uploadId: UploadId;
let blobIds: BlobId[];
beforeEach(async () => {
  world = await openMetadata();
  await world.createBucket();
  uploadId = await beginUpload(world, 'a');
  blobIds = [];
  for (const partNumber of [1, 2]) {
    const data = world.newData();
    blobIds.push(...data.uses.map((use) => use.blobId));
    await putPart(world, { key, uploadId }, { partNumber, data });
  }
});

const upload = () => ({ bucketId: BUCKET, key, uploadId });
const isOpen = async () => (await world.query('get-upload', upload())).upload !== null;
const stale = (olderThanMs: number) => world.query('list-stale-uploads', { olderThanMs, limit: 10 });

/** Runs release-parts until nothing is left; gives the number of entries. */
async function releaseParts(): Promise<number> {
  const { ended } = await world.query('list-ended-uploads', { limit: 10 });
  let count = 0;
  for (const { endedAtMs, uploadId } of ended) {
    for (let isLast = false; !isLast; count++)
      ({ isLast } = await world.execute('release-parts', { endedAtMs, uploadId }));
  }
  expect((await world.query('list-ended-uploads', { limit: 10 })).ended).toEqual([]);
  return count;
}

test('an abort ends the links of all parts; a second one finds no upload', async () => {
  expect(await world.execute('abort-upload', upload())).toEqual({ kind: 'aborted' });
  expect(await world.execute('abort-upload', upload())).toEqual({ kind: 'no-such-upload' });
  expect(await world.stateOf(...blobIds)).toEqual(['live', 'live']);
  expect(await releaseParts()).toBe(1);
  await world.markUnlinked();
  expect(await world.stateOf(...blobIds)).toEqual(['condemned', 'condemned']);
});

test('R25: a part after the end is refused, and so is its blob', async () => {
  await world.execute('abort-upload', upload());
  const data = world.newData();
  expect(await putPart(world, { key, uploadId }, { partNumber: 3, data })).toEqual({
    kind: 'no-such-upload',
  });
  expect(await world.stateOf(...data.uses.map((use) => use.blobId))).toEqual([undefined]);
});

test('an old upload is listed as stale, and ended by age only', async () => {
  world.clock.advance(31 * DAY);
  expect((await stale(31 * DAY)).uploads).toEqual([]);
  world.clock.advance(1);
  const { uploads } = await stale(31 * DAY);
  expect(uploads).toEqual([upload()]);
  const fresh = await beginUpload(world, 'b');
  const both = [...uploads, { bucketId: BUCKET, key: 'b' as ObjectKey, uploadId: fresh }];
  const outcome = await world.execute('expire-uploads', { uploads: both, olderThanMs: 31 * DAY });
  expect(outcome).toEqual({ kind: 'expired', count: 1 });
  expect(await isOpen()).toBe(false);
  await releaseParts();
  await world.markUnlinked();
  expect(await world.stateOf(...blobIds)).toEqual(['condemned', 'condemned']);
});

test('uploads do not prevent the deletion of a bucket; afterwards they are ended', async () => {
  expect(await world.execute('delete-bucket', { bucketId: BUCKET })).toMatchObject({ kind: 'deleted' });
  const { uploads, emptiedBucketIds } = await stale(31 * DAY);
  expect({ uploads, emptiedBucketIds }).toEqual({ uploads: [upload()], emptiedBucketIds: [] });
  await world.execute('expire-uploads', { uploads, olderThanMs: 31 * DAY });
  expect(await isOpen()).toBe(false);
  expect((await stale(31 * DAY)).emptiedBucketIds).toEqual([BUCKET]);
  await world.execute('expire-uploads', { uploads: [], olderThanMs: 0, emptiedBucketIds: [BUCKET] });
  expect((await stale(31 * DAY)).emptiedBucketIds).toEqual([]);
});

test('an upload of very many parts and links ends in entries of a bounded size', async () => {
  const linkCount = 1000;
  for (let partNumber = 1; partNumber <= 205; partNumber++) {
    const uses = Array.from({ length: partNumber <= 5 ? linkCount : 1 }, () => world.newData().uses).flat();
    const data = dataOf(uses, { births: uses.map((use) => ({ use })), links: [] });
    expect(await putPart(world, { key, uploadId }, { partNumber, data })).toMatchObject({
      kind: 'committed',
    });
  }
  let rowsMax = 0;
  const { commit } = world.kv;
  world.kv.commit = (puts, ...rest) => {
    rowsMax = Math.max(rowsMax, puts.length);
    return commit.call(world.kv, puts, ...rest);
  };
  expect(await world.execute('abort-upload', upload())).toEqual({ kind: 'aborted' });
  const list = { ...upload(), after: 0, max: 10 };
  expect(await world.query('list-parts', list)).toEqual({ kind: 'no-such-upload' });
  const complete = { ...upload(), parts: [{ partNumber: 1, etag: etagOf('part 1') }] };
  expect(await world.execute('complete-upload', complete)).toEqual({ kind: 'no-such-upload' });
  expect(rowsMax).toBeLessThan(10);
  expect(await releaseParts()).toBeGreaterThan(5);
  // Two rows for each link that ends, of one part of so many.
  expect(rowsMax).toBeLessThan(2 * linkCount + 100);
  const { ended } = await world.query('list-ended-links', { limit: 10_000 });
  expect(ended).toHaveLength(5 * linkCount + 200 + 2);
});
