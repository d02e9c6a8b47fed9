import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import {
  BUCKET,
  type MetadataShards,
  openMetadata,
} from '../../../tests/support/metadata/metadata-shards.ts';
import { amountOf } from '../../../tests/support/run/long-form.ts';
import { compareBytes, utf8 } from '../../base/bytes/bytes.ts';
import type { ListVersionsQuery } from '../../ports/metadata/versions.ts';
import { commonPrefixOf } from '../../types/listing.ts';

let world: MetadataShards;
beforeEach(async () => {
  world = await openMetadata();
  await world.createBucket('enabled');
});

async function list(query: Partial<ListVersionsQuery> = {}) {
  const page = await world.query('list-versions', { bucketId: BUCKET, prefix: '', max: 1000, ...query });
  const versions = page.versions.map(
    ({ key, isLatest, summary }) =>
      `${key}${summary.order}${isLatest ? '*' : ''}${summary.isDeleteMarker ? '-' : ''}`,
  );
  return { ...page, versions };
}

/** Keys of one letter: "aab-" puts a twice, b once, and a marker on b. */
async function write(text: string): Promise<void> {
  let key = '';
  for (const letter of text) {
    if (letter === '-') await world.remove(key);
    else {
      key = letter;
      await world.put(key);
    }
  }
}

test('by key, newest first, from wherever they are stored', async () => {
  await write('aab-ac-cd-');
  expect(await list()).toEqual({
    versions: ['a3*', 'a2', 'a1', 'b2*-', 'b1', 'c3*', 'c2-', 'c1', 'd2*-', 'd1'],
    commonPrefixes: [],
    isTruncated: false,
  });
});

describe('pages', () => {
  beforeEach(() => write('aaab-bc'));

  test('by markers, also within a key', async () => {
    const first = await list({ max: 2 });
    expect(first).toMatchObject({ versions: ['a3*', 'a2'], isTruncated: true, nextKeyMarker: 'a' });
    const { nextKeyMarker: keyMarker = '', nextVersionIdMarker: versionIdMarker = '' } = first;
    expect((await list({ keyMarker, versionIdMarker })).versions).toEqual(['a1', 'b3*', 'b2-', 'b1', 'c1*']);
    expect((await list({ keyMarker })).versions).toEqual(['b3*', 'b2-', 'b1', 'c1*']);
    expect((await list({ keyMarker, versionIdMarker: '' })).versions).toEqual(['b3*', 'b2-', 'b1', 'c1*']);
    expect((await list({ keyMarker: 'aa' })).versions[0]).toBe('b3*');
  });

  test('a marker version that was deleted since begins its key again', async () => {
    const { nextVersionIdMarker = '' } = await list({ max: 2 });
    await world.remove('a', nextVersionIdMarker);
    const page = await list({ keyMarker: 'a', versionIdMarker: nextVersionIdMarker });
    expect(page.versions).toEqual(['a3*', 'a1', 'b3*', 'b2-', 'b1', 'c1*']);
  });

  test('a latest version that became older since is not listed twice', async () => {
    const { nextVersionIdMarker = '' } = await list({ max: 1 });
    await world.put('a');
    const page = await list({ keyMarker: 'a', versionIdMarker: nextVersionIdMarker });
    expect(page.versions.slice(0, 2)).toEqual(['a2', 'a1']);
  });

  test('one below the marker that became the latest since is listed', async () => {
    const { nextVersionIdMarker = '' } = await list({ max: 1 });
    await world.remove('a', nextVersionIdMarker);
    const page = await list({ keyMarker: 'a', versionIdMarker: nextVersionIdMarker });
    expect(page.versions.slice(0, 2)).toEqual(['a2*', 'a1']);
  });

  test('none', async () => {
    expect(await list({ max: 0 })).toEqual({ versions: [], commonPrefixes: [], isTruncated: false });
  });
});

test('common prefixes, also of markers alone', async () => {
  for (const key of ['p/1', 'p/1', 'p/2', 'q', 'r/1']) await world.put(key);
  await world.remove('r/1');
  expect(await list({ delimiter: '/' })).toMatchObject({ versions: ['q1*'], commonPrefixes: ['p/', 'r/'] });
  expect(await list({ delimiter: '/', max: 1 })).toMatchObject({ nextKeyMarker: 'p/', isTruncated: true });
  expect(await list({ delimiter: '/', keyMarker: 'p/' })).toMatchObject({ commonPrefixes: ['r/'] });
  expect(await list({ delimiter: '/', prefix: 'p/' })).toMatchObject({
    versions: ['p/12*', 'p/11', 'p/21*'],
  });
});

test('pages of any size list every version once', async () => {
  const key = fc.constantFrom('a', 'a\u0000', 'a\u0000\u0001', 'ab', 'é', 'x/y', 'x/z', 'x');
  const step = fc.record({ key, isDelete: fc.boolean() });
  const property = fc.asyncProperty(
    fc.array(step, { maxLength: 25 }),
    fc.integer({ min: 1, max: 5 }),
    async (steps, max) => {
      world = await openMetadata();
      await world.createBucket('enabled');
      const orders = new Map<string, number>();
      for (const { key, isDelete } of steps) {
        await (isDelete ? world.remove(key) : world.put(key));
        orders.set(key, (orders.get(key) ?? 0) + 1);
      }
      const keys = [...orders.keys()].sort((a, b) => compareBytes(utf8(a), utf8(b)));
      const expected = keys.flatMap((name) => {
        const count = orders.get(name) ?? 0;
        return Array.from({ length: count }, (_, at) => `${name} ${count - at}`);
      });
      const shown: string[] = [];
      let query: ListVersionsQuery = { bucketId: BUCKET, prefix: '', max };
      for (let isTruncated = true; isTruncated; ) {
        const page = await world.query('list-versions', query);
        shown.push(...page.versions.map((version) => `${version.key} ${version.summary.order}`));
        const { nextKeyMarker: keyMarker, nextVersionIdMarker: versionIdMarker } = page;
        query = { ...query, ...(keyMarker && { keyMarker }), ...(versionIdMarker && { versionIdMarker }) };
        isTruncated = page.isTruncated;
      }
      expect(shown).toEqual(expected);
    },
  );
  await fc.assert(property, { numRuns: 60 });
});

test('any prefix, delimiter and key marker: all pages together equal a scan of all versions', async () => {
  const text = (min: number, max: number) =>
    fc
      .array(fc.constantFrom('a', 'b', '/', '\u0000', 'é', '😀'), { minLength: min, maxLength: max })
      .map((letters) => letters.join(''));
  const property = fc.asyncProperty(
    fc.array(text(1, 4), { maxLength: 25 }),
    text(0, 2),
    fc.option(text(1, 2), { nil: undefined }),
    fc.option(text(1, 3), { nil: undefined }),
    fc.integer({ min: 1, max: 5 }),
    async (puts, prefix, delimiter, keyMarker, max) => {
      world = await openMetadata();
      await world.createBucket('enabled');
      for (const key of puts) await world.put(key);
      const grouping = { prefix, ...(delimiter !== undefined && { delimiter }) };
      const expected = new Set<string>();
      for (const key of [...puts].sort((a, b) => compareBytes(utf8(a), utf8(b)))) {
        if (!key.startsWith(prefix)) continue;
        const common = commonPrefixOf(key, grouping);
        if (compareBytes(utf8(common ?? key), utf8(keyMarker ?? '')) <= 0) continue;
        const count = puts.filter((other) => other === key).length;
        if (common !== undefined) expected.add(common);
        else for (let order = count; order > 0; order--) expected.add(`${key} ${order}`);
      }
      const seen: string[] = [];
      let query: ListVersionsQuery = { bucketId: BUCKET, max, ...grouping, ...(keyMarker && { keyMarker }) };
      for (let isTruncated = true; isTruncated; ) {
        const page = await world.query('list-versions', query);
        const entries = [
          ...page.versions.map(({ key, summary }) => ({
            key: key as string,
            entry: `${key} ${summary.order}`,
          })),
          ...page.commonPrefixes.map((entry) => ({ key: entry, entry })),
        ].sort((a, b) => compareBytes(utf8(a.key), utf8(b.key)));
        seen.push(...entries.map(({ entry }) => entry));
        isTruncated = page.isTruncated;
        if (isTruncated) expect(entries).toHaveLength(max);
        const { nextKeyMarker, nextVersionIdMarker } = page;
        query = {
          bucketId: BUCKET,
          max,
          ...grouping,
          ...(nextKeyMarker && { keyMarker: nextKeyMarker }),
          ...(nextVersionIdMarker && { versionIdMarker: nextVersionIdMarker }),
        };
      }
      expect(seen).toEqual([...expected]);
    },
  );
  await fc.assert(property, { numRuns: amountOf({ short: 40, long: 100 }) });
});
