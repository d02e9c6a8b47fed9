// Listings and walks over versions whose rows are large: pages of rows end at a number of bytes, and nothing is missing.
import { beforeEach, expect, test } from 'vitest';
import {
  BUCKET,
  type MetadataShards,
  openMetadata,
} from '../../../tests/support/metadata/metadata-shards.ts';
import { type NotedReads, noteReads } from '../../../tests/support/metadata/noted-reads.ts';
import { LIMITS } from '../../types/limits.ts';

const ROW_BYTES = 300 * 1024;
/** Of one read: what reaches the bound may go beyond it by a row. */
const READ_BYTES_MAX = LIMITS.queryPageBytesMax + ROW_BYTES + 4096;

let world: MetadataShards;
let reads: NotedReads;
beforeEach(async () => {
  world = await openMetadata();
  reads = noteReads(world.kv);
});

const put = (key: string) => world.put(key, { version: { sealedHeaders: new Uint8Array(ROW_BYTES) } });
const keyAt = (at: number) => `k/${at % 2 === 0 ? 'a/' : 'b'}${100 + at}`;

/** Large and small ones among one another. */
async function fill(versioning: 'unversioned' | 'enabled'): Promise<string[]> {
  await world.createBucket(versioning);
  const keys = Array.from({ length: 40 }, (_, at) => keyAt(at)).sort();
  for (const [at, key] of keys.entries()) await (at % 5 === 4 ? world.put(key) : put(key));
  reads.forget();
  return keys;
}

test.each([7, 1000])('objects, %i of a page', async (max) => {
  const keys = await fill('unversioned');
  const listed: string[] = [];
  for (let after: string | undefined; ; ) {
    const query = { bucketId: BUCKET, prefix: '', max, ...(after !== undefined && { after }) };
    const page = await world.query('list-objects', query);
    listed.push(...page.objects.map(({ key }) => key));
    if (!page.isTruncated) break;
    after = page.nextAfter;
  }
  expect(listed).toEqual(keys);
  expect(reads.largestBytes()).toBeLessThan(READ_BYTES_MAX);
});

test('objects and common prefixes', async () => {
  const keys = await fill('unversioned');
  const page = await world.query('list-objects', {
    bucketId: BUCKET,
    prefix: 'k/',
    delimiter: '/',
    max: 1000,
  });
  expect(page.commonPrefixes).toEqual(['k/a/']);
  expect(page.objects.map(({ key }) => key)).toEqual(keys.filter((key) => key.startsWith('k/b')));
  expect(page.isTruncated).toBe(false);
  expect(reads.largestBytes()).toBeLessThan(READ_BYTES_MAX);
});

test('versions', async () => {
  const keys = await fill('enabled');
  for (const key of keys.slice(0, 12)) await put(key);
  for (const key of keys.slice(0, 3)) await world.remove(key);
  reads.forget();
  expect(await world.versions()).toEqual(
    keys.flatMap((key, at) => [
      ...(at < 3 ? [`${key} v3*-`] : []),
      ...(at < 12 ? [`${key} v2${at < 3 ? '' : '*'}`] : []),
      `${key} v1${at < 12 ? '' : '*'}`,
    ]),
  );
  expect(reads.largestBytes()).toBeLessThan(READ_BYTES_MAX);
});

test('keys of a rename, markers among them', async () => {
  const keys = await fill('enabled');
  for (const key of keys.filter((_, at) => at % 3 === 0)) await world.remove(key);
  const found: string[] = [];
  let cursor: { leg: number; after?: string } | undefined = { leg: 0 };
  for (let steps = 0; cursor !== undefined && steps < 100; steps++) {
    const query = { bucketId: BUCKET, from: 'k/', to: 'z/', keysMax: 500, cursor } as never;
    const page = await world.query('find-moves', query);
    found.push(...page.keys);
    cursor = page.cursor;
  }
  expect(found.toSorted()).toEqual(keys);
  expect(reads.largestBytes()).toBeLessThan(LIMITS.moveBytesMax + ROW_BYTES + 4096);
});
