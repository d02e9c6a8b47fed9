import fc from 'fast-check';
import { expect, test } from 'vitest';
import { fromUtf8, utf8 } from '../../base/bytes/bytes.ts';
import { createMemoryKv } from '../../platform/memory/memory-kv.ts';
import type { KvPut } from '../../ports/kv.ts';
import type { RangeAddress, TableRef } from '../../ports/state-machine.ts';
import { CommandView } from './command-view.ts';
import { createOverlayBudget, Overlay } from './overlay.ts';
import { rowKey } from './row-keys.ts';

const SHARD = 3;
const TABLE: TableRef = { id: 7, column: 'rows' };
const BODIES: TableRef = { id: 7, column: 'bodies' };
type Content = Record<string, string | null>;

function rowsOf(content: Content, table = TABLE): KvPut[] {
  return Object.entries(content).map(([key, value]) => ({
    column: table.column,
    key: rowKey(SHARD, table, utf8(key)),
    value: value === null ? null : utf8(value),
  }));
}

async function viewOf(state: Content, pending: Content): Promise<CommandView> {
  const kv = createMemoryKv(['rows', 'bodies']);
  const overlay = new Overlay(createOverlayBudget());
  await kv.commit(rowsOf(state));
  overlay.add(1, rowsOf(pending));
  return new CommandView(SHARD, { kv, overlay });
}

test('rows come from the overlay first, then from the state, separately by column', async () => {
  const view = await viewOf({ a: 'old', b: 'old', c: 'old' }, { a: 'new', b: null });
  const rows = ['a', 'b', 'c', 'd'].map((key) => ({ table: TABLE, key: utf8(key) }));
  await view.fetch({ rows: [...rows, { table: BODIES, key: utf8('c') }] });
  const shown = rows.map((row) => view.row(row)).map((value) => value && fromUtf8(value));
  expect(shown).toEqual(['new', undefined, 'old', undefined]);
  expect(view.row({ table: BODIES, key: utf8('c') })).toBeUndefined();
});

test('rows that were not named cannot be read', async () => {
  const view = await viewOf({ a: '1' }, {});
  const range: RangeAddress = { table: TABLE, gte: utf8('a'), lt: utf8('b'), limit: 1 };
  expect(() => view.row({ table: TABLE, key: utf8('a') })).toThrow('named');
  expect(() => view.range(range)).toThrow('named');
  await view.fetch({ ranges: [range] });
  expect(view.has(range)).toBe(true);
  expect(view.has({ ...range, limit: 2 })).toBe(false);
  expect(view.has({ table: TABLE, key: utf8('a') })).toBe(false);
});

test('nothing is read if the overlay has everything', async () => {
  const view = await viewOf({}, { a: '1' });
  expect(view.fetch({ rows: [{ table: TABLE, key: utf8('a') }] })).toBeUndefined();
  expect(view.fetch({})).toBeUndefined();
});

test('ranges show state and overlay as one', async () => {
  const key = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f');
  const content = (value: fc.Arbitrary<string | null>) => fc.dictionary(key, value, { maxKeys: 6 });
  await fc.assert(
    fc.asyncProperty(
      content(fc.constant('state')),
      content(fc.constantFrom('overlay', null)),
      fc.record({ gte: key, lt: key, limit: fc.integer({ min: 1, max: 4 }), reverse: fc.boolean() }),
      async (state, pending, { gte, lt, limit, reverse }) => {
        const view = await viewOf(state, pending);
        const address: RangeAddress = { table: TABLE, gte: utf8(gte), lt: utf8(lt), limit, reverse };
        await view.fetch({ ranges: [address] });
        const merged = Object.entries({ ...state, ...pending }).filter(([, value]) => value !== null);
        const expected = merged
          .filter(([name]) => name >= gte && name < lt)
          .sort(([a], [b]) => (a < b ? -1 : 1));
        if (reverse) expected.reverse();
        const shown = view.range(address).map((row) => [fromUtf8(row.key), fromUtf8(row.value)]);
        expect(shown).toEqual(expected.slice(0, limit));
      },
    ),
  );
});

test('a range with a byte bound shows its first rows, and is complete if it has fewer', async () => {
  const key = fc.constantFrom(...'abcdefgh');
  const value = fc.integer({ min: 0, max: 40 }).map((length) => 'x'.repeat(length));
  const content = (values: fc.Arbitrary<string | null>) => fc.dictionary(key, values, { maxKeys: 8 });
  await fc.assert(
    fc.asyncProperty(
      content(value),
      content(fc.option(value)),
      fc.record({
        limit: fc.integer({ min: 1, max: 9 }),
        bytesMax: fc.integer({ min: 1, max: 200 }),
        reverse: fc.boolean(),
      }),
      async (state, pending, { limit, bytesMax, reverse }) => {
        const view = await viewOf(state, pending);
        const address: RangeAddress = {
          table: TABLE,
          gte: utf8('a'),
          lt: utf8('z'),
          limit,
          bytesMax,
          reverse,
        };
        await view.fetch({ ranges: [address] });
        const merged = Object.entries({ ...state, ...pending }).filter(([, found]) => found !== null);
        merged.sort(([a], [b]) => (a < b ? -1 : 1));
        if (reverse) merged.reverse();
        const expected: string[] = [];
        let sizeBytes = 0;
        for (const [name, found] of merged) {
          if (expected.length === limit || sizeBytes >= bytesMax) break;
          expected.push(name);
          sizeBytes += name.length + (found?.length ?? 0);
        }
        expect(view.range(address).map((row) => fromUtf8(row.key))).toEqual(expected);
      },
    ),
  );
});
