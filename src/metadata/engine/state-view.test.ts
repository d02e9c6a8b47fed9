// A view of a shard: one moment for all tables and counters, whatever is committed meanwhile, and nothing of other shards.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { OWNER, openMetadata } from '../../../tests/support/metadata/metadata-shards.ts';
import { fromUtf8, utf8 } from '../../base/bytes/bytes.ts';
import { allRows } from '../../base/table-rows.ts';
import { createMemoryKv } from '../../platform/memory/memory-kv.ts';
import { openRocksdbKv } from '../../platform/rocksdb/rocksdb-kv.ts';
import type { KvPort } from '../../ports/kv.ts';
import type { TableRef } from '../../ports/state-machine.ts';
import { TABLES } from '../schema/keyspace.ts';
import { ENGINE_TABLES, rowKey } from './row-keys.ts';
import { openStateView } from './state-view.ts';

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function openRocksdb(): Promise<KvPort> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-view-'));
  closers.push(() => rm(folder, { recursive: true }));
  const kv = await openRocksdbKv({ folder, columns: { rows: { reads: 'sync', content: 'rows' } } });
  closers.push(() => kv.close());
  return kv;
}

const TABLE: TableRef = { id: 1, column: 'rows' };
const NEXT: TableRef = { id: 2, column: 'rows' };
const END = utf8('z');
const text = (rows: { key: Uint8Array }[]) => rows.map(({ key }) => fromUtf8(key));
const all = { table: TABLE, gte: utf8('a'), lt: END, limit: 1000 };

function write(kv: KvPort, shard: number, table: TableRef, keys: readonly string[], value = '1') {
  const puts = keys.map((key) => ({
    column: 'rows',
    key: rowKey(shard, table, utf8(key)),
    value: value === '' ? null : utf8(value),
  }));
  return kv.commit(puts);
}

test.each<[string, () => Promise<KvPort>]>([
  ['memory', async () => createMemoryKv(['rows'])],
  ['rocksdb', openRocksdb],
])('over %s', async (_name, open) => {
  const kv = await open();
  const keys = Array.from({ length: 700 }, (_, at) => `k${String(at).padStart(3, '0')}`);
  const counter = Buffer.alloc(8);
  counter.writeDoubleBE(17);
  await write(kv, 3, TABLE, keys);
  await write(kv, 3, NEXT, ['n']);
  await write(kv, 2, TABLE, ['other']);
  await write(kv, 4, TABLE, ['other']);
  await kv.commit([{ column: 'rows', key: rowKey(3, ENGINE_TABLES.counters, utf8('c')), value: counter }]);
  const view = openStateView(3, kv);
  await write(kv, 3, TABLE, keys.slice(0, 300), '');
  await write(kv, 3, TABLE, ['a new one']);
  await write(kv, 3, ENGINE_TABLES.counters, ['c'], '');

  expect(text(await view.range(all))).toEqual(keys);
  expect(text(await view.range({ ...all, gte: utf8('k5'), limit: 3 }))).toEqual(['k500', 'k501', 'k502']);
  expect(text(await view.range({ ...all, gte: utf8('l') }))).toEqual([]);
  const rows = await view.rows([
    { table: TABLE, key: utf8('k007') },
    { table: TABLE, key: utf8('k00') },
    { table: NEXT, key: utf8('n') },
  ]);
  expect(rows.map((row) => row && fromUtf8(row))).toEqual(['1', undefined, '1']);
  expect(await view.counters(['c', 'd'])).toEqual([17, 0]);
  const cursor = view.cursor({ table: TABLE, gte: utf8('k6'), lt: utf8('k62') });
  cursor.seek(utf8('a'));
  expect(text(await cursor.next(2))).toEqual(['k600', 'k601']);
  cursor.seek(utf8('k618'));
  expect(text(await cursor.next(10))).toEqual(['k618', 'k619']);
  view.close();
});

test.each<[string, () => Promise<KvPort>]>([
  ['memory', async () => createMemoryKv(['rows'])],
  ['rocksdb', openRocksdb],
])('over %s: pages of large rows end by their bytes', async (_name, open) => {
  const kv = await open();
  const keys = Array.from({ length: 40 }, (_, at) => `k${10 + at}`);
  await write(kv, 3, TABLE, keys, 'x'.repeat(100_000));
  await write(kv, 3, NEXT, ['n']);
  const view = openStateView(3, kv);
  expect(text(await view.range(all))).toEqual(keys);
  const page = text(await view.range({ ...all, bytesMax: 250_000 }));
  expect(page).toEqual(keys.slice(0, page.length));
  expect(page.length).toBeLessThan(10);
  const cursor = view.cursor({ table: TABLE, gte: utf8('k3'), lt: END, bytesMax: 1 });
  const pages = [await cursor.next(9), await cursor.next(9), await cursor.next(9), await cursor.next(9)];
  expect(pages.flatMap(text)).toEqual(keys.slice(20));
  expect(pages[0]?.length).toBeLessThan(9);
  // Whoever goes through a table of them has a few at a time.
  const pageCounts: number[] = [];
  const seen: { key: Uint8Array }[] = [];
  const counted = {
    async range(address: Parameters<typeof view.range>[0]) {
      const rows = await view.range(address);
      pageCounts.push(rows.length);
      return rows;
    },
  };
  for await (const row of allRows(counted, TABLE)) seen.push(row);
  expect(text(seen)).toEqual(keys);
  expect(Math.max(...pageCounts)).toBeLessThan(10);
  view.close();
});

test('identities and events are read behind all that was deleted of versions', async () => {
  const world = await openMetadata();
  const opened = vi.spyOn(world.kv, 'cursor');
  await world.query('read-identities', { accountId: OWNER, keys: [], ranges: [] });
  await world.query('list-events', { consumer: 'feed', limit: 1 });
  const firstTables = opened.mock.calls.map(([{ gte }]) => gte[2]);
  expect(firstTables).toEqual([TABLES.buckets.id, TABLES.buckets.id]);
  const view = openStateView(0, world.kv, TABLES.buckets);
  await expect(view.range({ ...all, table: TABLES.objects })).rejects.toThrow('a view is of one column');
  view.close();
});
