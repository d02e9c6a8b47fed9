import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import {
  BUCKET,
  beginUpload,
  type MetadataShards,
  openMetadata,
  putPart,
} from '../../../tests/support/metadata/metadata-shards.ts';
import { amountOf } from '../../../tests/support/run/long-form.ts';
import { compareBytes, utf8 } from '../../base/bytes/bytes.ts';
import type { QueryOf } from '../../ports/metadata/port.ts';
import { commonPrefixOf } from '../../types/listing.ts';
import type { ObjectKey, UploadId } from '../../types/names.ts';

let world: MetadataShards;
/** By number of initiation. */
let ids: UploadId[];
beforeEach(async () => {
  world = await openMetadata();
  await world.createBucket();
  ids = [];
  for (const key of ['b', 'a', 'b', 'c/1', 'c/2', 'b\u0000', 'a']) {
    ids.push(await beginUpload(world, key));
    world.clock.advance(1);
  }
});

async function list(query: Partial<QueryOf<'list-uploads'>> = {}) {
  const page = await world.query('list-uploads', { bucketId: BUCKET, prefix: '', max: 1000, ...query });
  return { ...page, uploads: page.uploads.map(({ key, uploadId }) => `${key} ${ids.indexOf(uploadId)}`) };
}

test('by key, then by initiation', async () => {
  const uploads = ['a 1', 'a 6', 'b 0', 'b 2', 'b\u0000 5', 'c/1 3', 'c/2 4'];
  expect(await list()).toEqual({ uploads, commonPrefixes: [], isTruncated: false });
  expect(await list({ prefix: 'b' })).toMatchObject({ uploads: ['b 0', 'b 2', 'b\u0000 5'] });
  expect(await list({ delimiter: '/' })).toMatchObject({
    uploads: uploads.slice(0, 5),
    commonPrefixes: ['c/'],
  });
});

test('pages', async () => {
  const page = await list({ max: 3 });
  expect(page).toMatchObject({ uploads: ['a 1', 'a 6', 'b 0'], isTruncated: true });
  const { nextKeyMarker: keyMarker = '', nextUploadIdMarker: uploadIdMarker = '' } = page;
  const rest = ['b 2', 'b\u0000 5', 'c/1 3', 'c/2 4'];
  expect(await list({ keyMarker, uploadIdMarker })).toMatchObject({ uploads: rest, isTruncated: false });
  expect(await list({ keyMarker })).toMatchObject({ uploads: rest.slice(1) });
  expect(await list({ keyMarker, uploadIdMarker: 'nonsense' })).toMatchObject({ uploads: rest.slice(1) });
  expect(await list({ uploadIdMarker })).toMatchObject({ uploads: { length: 7 } });
  expect(await list({ delimiter: '/', keyMarker: 'c/' })).toMatchObject({ uploads: [], commonPrefixes: [] });
  expect(await list({ max: 0 })).toEqual({ uploads: [], commonPrefixes: [], isTruncated: false });
  expect(await list({ keyMarker: 'b'.repeat(3000) })).toMatchObject({ uploads: ['c/1 3', 'c/2 4'] });
});

test('any prefix, delimiter and key marker: all pages together equal a scan of all uploads', async () => {
  const text = (min: number, max: number) =>
    fc
      .array(fc.constantFrom('a', 'b', '/', '\u0000', 'é'), { minLength: min, maxLength: max })
      .map((letters) => letters.join(''));
  const property = fc.asyncProperty(
    fc.array(text(1, 4), { maxLength: 20 }),
    text(0, 2),
    fc.option(text(1, 2), { nil: undefined }),
    fc.option(text(1, 3), { nil: undefined }),
    fc.integer({ min: 1, max: 5 }),
    async (keys, prefix, delimiter, keyMarker, max) => {
      world = await openMetadata();
      await world.createBucket();
      ids = [];
      for (const key of keys) {
        ids.push(await beginUpload(world, key));
        world.clock.advance(1);
      }
      const grouping = { prefix, ...(delimiter !== undefined && { delimiter }) };
      const expected = new Set<string>();
      for (const { key, at } of keys.map((key, at) => ({ key, at })).sort(byKey)) {
        if (!key.startsWith(prefix)) continue;
        const common = commonPrefixOf(key, grouping);
        if (compareBytes(utf8(common ?? key), utf8(keyMarker ?? '')) > 0)
          expected.add(common ?? `${key} ${at}`);
      }
      const seen: string[] = [];
      let query: Partial<QueryOf<'list-uploads'>> = { max, ...grouping, ...(keyMarker && { keyMarker }) };
      for (let isTruncated = true; isTruncated; ) {
        const page = await list(query);
        const entries = [...page.uploads, ...page.commonPrefixes];
        seen.push(...entries);
        isTruncated = page.isTruncated;
        if (isTruncated) expect(entries).toHaveLength(max);
        const { nextKeyMarker, nextUploadIdMarker } = page;
        query = {
          max,
          ...grouping,
          ...(nextKeyMarker && { keyMarker: nextKeyMarker }),
          ...(nextUploadIdMarker && { uploadIdMarker: nextUploadIdMarker }),
        };
      }
      expect(seen.sort()).toEqual([...expected].sort());
    },
  );
  await fc.assert(property, { numRuns: amountOf({ short: 40, long: 80 }) });
});

function byKey(a: { key: string }, b: { key: string }): number {
  return compareBytes(utf8(a.key), utf8(b.key));
}

describe('parts', () => {
  const key = 'a' as ObjectKey;
  const listParts = (after: number, max: number) =>
    world.query('list-parts', { bucketId: BUCKET, key, uploadId: ids[1] as UploadId, after, max });

  test('by number, in pages', async () => {
    for (const partNumber of [10, 2, 10_000]) {
      await putPart(world, { key, uploadId: ids[1] as UploadId }, { partNumber });
    }
    const numbers = async (after: number, max: number) => {
      const page = await listParts(after, max);
      if (page.kind !== 'parts') throw new Error(page.kind);
      return [...page.parts.map((part) => part.partNumber), page.isTruncated];
    };
    expect(await numbers(0, 1000)).toEqual([2, 10, 10_000, false]);
    expect(await numbers(0, 2)).toEqual([2, 10, true]);
    expect(await numbers(10, 2)).toEqual([10_000, false]);
    expect(await numbers(0, 0)).toEqual([false]);
    expect(await numbers(10_000, 5)).toEqual([false]);
    expect(await numbers(2_000_000_000, 5)).toEqual([false]);
  });

  test('of no upload', async () => {
    const query = { bucketId: BUCKET, key: 'b' as ObjectKey, uploadId: ids[1] as UploadId, after: 0, max: 1 };
    expect(await world.query('list-parts', query)).toEqual({ kind: 'no-such-upload' });
  });
});
