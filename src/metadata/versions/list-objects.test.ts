import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import {
  BUCKET,
  type MetadataShards,
  OWNER,
  openMetadata,
} from '../../../tests/support/metadata/metadata-shards.ts';
import { amountOf } from '../../../tests/support/run/long-form.ts';
import { compareBytes, utf8 } from '../../base/bytes/bytes.ts';
import type { ListObjectsQuery } from '../../ports/metadata/versions.ts';
import type { BucketId } from '../../types/names.ts';

let world: MetadataShards;
beforeEach(async () => {
  world = await openMetadata();
  await world.createBucket();
});

async function list(query: Partial<ListObjectsQuery> = {}) {
  const page = await world.query('list-objects', { bucketId: BUCKET, prefix: '', max: 1000, ...query });
  return { ...page, objects: page.objects.map((object) => object.key as string) };
}

/** All pages; each but the last must be full, and none may show what another did. */
async function listAll(query: Partial<ListObjectsQuery>): Promise<string[]> {
  const shown: string[] = [];
  const { max = 1000 } = query;
  for (let after = query.after; ; ) {
    const page = await list({ ...query, ...(after !== undefined && { after }) });
    const entries = [...page.objects, ...page.commonPrefixes].sort((a, b) => compareBytes(utf8(a), utf8(b)));
    shown.push(...entries);
    if (!page.isTruncated) return shown;
    expect(entries).toHaveLength(max);
    expect(page.nextAfter).toBe(entries.at(-1));
    after = page.nextAfter;
  }
}

async function putAll(keys: readonly string[]): Promise<void> {
  await Promise.all(keys.map((key) => world.put(key)));
}

test('keys come in byte order, with the fields of a listing', async () => {
  const keys = [
    'a',
    'a!',
    'a/b',
    'a\u0000b',
    'ä',
    'z',
    '\uffff',
    '😀',
    '\u{10ffff}',
    ' ',
    '%2F',
    'a'.repeat(1024),
  ];
  await putAll(keys);
  const sorted = [...keys].sort((a, b) => compareBytes(utf8(a), utf8(b)));
  expect(await list()).toEqual({ objects: sorted, commonPrefixes: [], isTruncated: false });
  const { objects } = await world.query('list-objects', { bucketId: BUCKET, prefix: 'z', max: 1 });
  expect(objects).toEqual([
    { key: 'z', summary: expect.objectContaining({ sizeBytes: 10, isDeleteMarker: false }) },
  ]);
});

describe('delimiters', () => {
  beforeEach(() => putAll(['a/1', 'a/2', 'a/b/3', 'b', 'b/', 'c//d', 'd--e', 'd--f--g']));

  test.each([
    [{ delimiter: '/' }, ['b', 'd--e', 'd--f--g'], ['a/', 'b/', 'c/']],
    [{ delimiter: '/', prefix: 'a/' }, ['a/1', 'a/2'], ['a/b/']],
    [{ delimiter: '/', prefix: 'c/' }, [], ['c//']],
    [{ delimiter: '--' }, ['a/1', 'a/2', 'a/b/3', 'b', 'b/', 'c//d'], ['d--']],
    [{ delimiter: '--', prefix: 'd--' }, ['d--e'], ['d--f--']],
    [{ delimiter: '', prefix: 'a' }, ['a/1', 'a/2', 'a/b/3'], []],
    [{ delimiter: 'a/b/3' }, ['a/1', 'a/2', 'b', 'b/', 'c//d', 'd--e', 'd--f--g'], ['a/b/3']],
    [{ prefix: 'nothing' }, [], []],
    [{ prefix: 'x'.repeat(4000) }, [], []],
  ])('%j', async (query, objects, commonPrefixes) => {
    expect(await list(query)).toMatchObject({ objects, commonPrefixes, isTruncated: false });
  });

  test.each([
    ['a/1', ['b', 'd--e', 'd--f--g'], ['b/', 'c/']],
    ['a/', ['b', 'd--e', 'd--f--g'], ['b/', 'c/']],
    ['a', ['b', 'd--e', 'd--f--g'], ['a/', 'b/', 'c/']],
    ['b', ['d--e', 'd--f--g'], ['b/', 'c/']],
    ['zzz', [], []],
    ['x'.repeat(4000), [], []],
  ])('after %j', async (after, objects, commonPrefixes) => {
    expect(await list({ delimiter: '/', after })).toMatchObject({ objects, commonPrefixes });
  });

  test('pages', async () => {
    expect(await list({ delimiter: '/', max: 2 })).toEqual({
      objects: ['b'],
      commonPrefixes: ['a/'],
      isTruncated: true,
      nextAfter: 'b',
    });
    expect(await list({ delimiter: '/', max: 3 })).toMatchObject({ isTruncated: true, nextAfter: 'b/' });
    expect(await list({ delimiter: '/', max: 6 })).toMatchObject({ isTruncated: false });
    expect(await list({ max: 0 })).toEqual({ objects: [], commonPrefixes: [], isTruncated: false });
  });
});

test('keys after a marker that is longer than every key', async () => {
  await putAll(['b', `b${'x'.repeat(1023)}`, 'c']);
  expect((await list({ after: `b${'x'.repeat(3000)}` })).objects).toEqual(['c']);
});

test('another bucket, and objects below a marker, are not listed', async () => {
  const other = 'b000000000000002' as BucketId;
  await world.execute('create-bucket', { bucketId: other, name: 'other' as never, owner: OWNER });
  await world.put('z', { bucketId: other });
  await putAll(['a/1', 'b/1']);
  await world.execute('set-bucket-config', {
    bucketId: BUCKET,
    kind: 'versioning',
    document: { status: 'enabled' },
  });
  await world.remove('a/1');
  expect(await list({ delimiter: '/' })).toMatchObject({ objects: [], commonPrefixes: ['b/'] });
});

test('a page costs what it shows: large prefixes are skipped', async () => {
  await putAll(Array.from({ length: 900 }, (_, at) => `p${at % 3}/${String(at).padStart(6, '0')}`));
  let readCount = 0;
  const { cursor } = world.kv;
  world.kv.cursor = (bounds) => {
    const inner = cursor.call(world.kv, bounds);
    return {
      ...inner,
      async next(count) {
        readCount += count;
        return inner.next(count);
      },
    };
  };
  expect(await list({ delimiter: '/' })).toMatchObject({ commonPrefixes: ['p0/', 'p1/', 'p2/'] });
  expect(readCount).toBeLessThan(100);
});

test('all pages of every listing together equal a scan of all keys', async () => {
  const letter = fc.constantFrom('a', 'b', '/', '-', '\u0000', 'é', '😀', '\uffee');
  const text = (min: number, max: number) =>
    fc.array(letter, { minLength: min, maxLength: max }).map((letters) => letters.join(''));
  const property = fc.asyncProperty(
    fc.uniqueArray(text(1, 5), { maxLength: 30 }),
    text(0, 2),
    fc.option(text(1, 2)),
    fc.option(text(0, 4)),
    fc.integer({ min: 1, max: 7 }),
    async (keys, prefix, delimiter, after, max) => {
      world = await openMetadata();
      await world.createBucket();
      await putAll(keys);
      const query = {
        prefix,
        max,
        ...(delimiter !== null && { delimiter }),
        ...(after !== null && { after }),
      };
      expect(await listAll(query)).toEqual(naiveList(keys, query));
    },
  );
  await fc.assert(property, { numRuns: amountOf({ short: 40, long: 150 }) });
});

function naiveList(
  keys: readonly string[],
  query: { prefix: string; delimiter?: string; after?: string },
): string[] {
  const { prefix, delimiter, after } = query;
  const entryOf = (key: string) => {
    const at = delimiter === undefined ? -1 : key.indexOf(delimiter, prefix.length);
    return at < 0 || delimiter === undefined ? key : key.slice(0, at + delimiter.length);
  };
  const entries = new Set(keys.filter((key) => key.startsWith(prefix)).map(entryOf));
  return [...entries]
    .filter((entry) => after === undefined || compareBytes(utf8(entry), utf8(after)) > 0)
    .sort((a, b) => compareBytes(utf8(a), utf8(b)));
}
