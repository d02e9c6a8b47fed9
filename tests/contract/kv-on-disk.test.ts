// What RocksDB does beyond the contract of its port (tests/contract/kv.test.ts): folders, groups, limits, failures.
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { fromUtf8, utf8 } from '../../src/base/bytes/bytes.ts';
import { openRocksdbKv } from '../../src/platform/rocksdb/rocksdb-kv.ts';
import type { KvPort, KvPut } from '../../src/ports/kv.ts';

const folders: string[] = [];
const stores: KvPort[] = [];

async function openRocksdb(folder?: string): Promise<KvPort> {
  const path = folder ?? (await mkdtemp(join(tmpdir(), 'holdfast-kv-')));
  if (folder === undefined) folders.push(path);
  const kv = await openRocksdbKv({
    folder: path,
    columns: { rows: { reads: 'sync', content: 'rows' }, bodies: { reads: 'async', content: 'ciphertext' } },
  });
  stores.push(kv);
  return kv;
}

afterEach(async () => {
  for (const kv of stores.splice(0)) await kv.close();
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true });
});

const put = (key: string, value: string, column = 'rows'): KvPut => ({
  column,
  key: utf8(key),
  value: utf8(value),
});
async function read(kv: KvPort, column: string, ...keys: string[]) {
  return (await kv.getMany(column, keys.map(utf8))).map((value) => value && fromUtf8(value));
}

test('a resolved commit is there after re-opening', async () => {
  const first = await openRocksdb();
  const folder = folders[0] ?? '';
  await first.commit([put('a', '1'), put('a', 'body', 'bodies')]);
  await first.close();
  const second = await openRocksdb(folder);
  expect(await read(second, 'rows', 'a')).toEqual(['1']);
  expect(await read(second, 'bodies', 'a')).toEqual(['body']);
});

test('a folder that is open elsewhere is refused with code LOCKED', async () => {
  await openRocksdb();
  await expect(openRocksdb(folders[0])).rejects.toMatchObject({ name: 'KvOpenError', code: 'LOCKED' });
});

test('buffers of large values return for reuse', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-kv-'));
  folders.push(folder);
  const released: ArrayBuffer[] = [];
  const kv = await openRocksdbKv({
    folder,
    columns: { data: { reads: 'async', content: 'ciphertext' } },
    onReleased: (buffer) => released.push(buffer),
  });
  stores.push(kv);
  const value = new Uint8Array(new ArrayBuffer(1024 * 1024));
  const commit = kv.commit([{ column: 'data', key: utf8('k'), value }]);
  await commit;
  expect(value.length).toBe(0);
  expect(released.map((buffer) => buffer.byteLength)).toEqual([1024 * 1024]);
});

test('a group is synced if one of its commits is', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-kv-'));
  folders.push(folder);
  const groups: { commitCount: number; isSynced: boolean }[] = [];
  const kv = await openRocksdbKv({
    folder,
    columns: { rows: { reads: 'sync', content: 'rows' } },
    onGroup: ({ commitCount, isSynced }) => groups.push({ commitCount, isSynced }),
  });
  stores.push(kv);
  await Promise.all([
    kv.commit([put('a', '1')], { sync: false }),
    kv.commit([put('b', '1')], { sync: false }),
  ]);
  await Promise.all([
    kv.commit([put('c', '1')], { sync: false }),
    kv.commit([put('d', '1')]),
    kv.commit([put('e', '1')], { sync: false }),
  ]);
  await kv.commit([]);
  expect(groups).toEqual([
    { commitCount: 2, isSynced: false },
    { commitCount: 3, isSynced: true },
    { commitCount: 1, isSynced: true },
  ]);
});

test('closing waits for reads under way and for open cursors', async () => {
  const kv = await openRocksdb();
  await kv.commit(Array.from({ length: 3000 }, (_, i) => put(`k${i}`, 'v'.repeat(1000), 'bodies')));
  const cursor = kv.cursor({ column: 'bodies', gte: utf8('k'), lt: utf8('l') });
  const page = cursor.next(3000);
  const values = kv.getMany('bodies', [utf8('k1'), utf8('k2')]);
  const closing = kv.close();
  expect(await page).toHaveLength(3000);
  expect((await values).map((value) => value?.length)).toEqual([1000, 1000]);
  await closing;
  await expect(kv.getMany('rows', [utf8('a')])).rejects.toThrow('closed');
});

test('more waiting bytes than allowed are refused, and the store continues', async () => {
  const kv = await openRocksdb();
  const value = () => new Uint8Array(new ArrayBuffer(16 * 1024 * 1024));
  const commits = Array.from({ length: 9 }, (_, i) =>
    kv.commit([{ column: 'bodies', key: utf8(`k${i}`), value: value() }]),
  );
  const bounded = kv.commit([put('b', '1')], { isBounded: true });
  const outcomes = await Promise.allSettled(commits);
  await bounded;
  expect(await read(kv, 'rows', 'b')).toEqual(['1']);
  const refused = outcomes.filter(({ status }) => status === 'rejected');
  expect(refused).toMatchObject([{ reason: { code: 'SlowDown' } }, { reason: { code: 'SlowDown' } }]);
  await kv.commit([put('a', '1')]);
  expect(await read(kv, 'rows', 'a')).toEqual(['1']);
});

test('a failed write is final (R20)', async () => {
  const kv = await openRocksdb();
  await kv.commit([put('a', '1')]);
  // Without its folder RocksDB cannot begin the next log file, which it does once a memtable is full.
  await rm(folders.pop() ?? '', { recursive: true });
  const value = randomBytes(1024 * 1024);
  const writing = async () => {
    for (let i = 0; i < 200; i++)
      await kv.commit([{ column: 'rows', key: utf8(`k${i}`), value }], { keep: true });
  };
  const beside = Promise.allSettled([writing(), writing()]);
  await expect(writing()).rejects.toThrow('No such file or directory');
  expect((await beside).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect((await kv.failed).message).toContain('No such file or directory');
  await expect(kv.commit([put('b', '1')])).rejects.toThrow('No such file or directory');
  await kv.close();
});

test('of large rows no more than 512 KiB are read on this thread, and all are read', async () => {
  const kv = await openRocksdb();
  const names = Array.from({ length: 20 }, (_, at) => `k${String(at).padStart(2, '0')}`);
  await kv.commit(names.map((name) => put(name, 'x'.repeat(100 * 1024))));
  const bounds = { column: 'rows', gte: utf8('k'), lt: utf8('l') };
  const all = { ...bounds, limit: 100, reverse: false };
  const keysOf = (rows: readonly { key: Uint8Array }[]) => rows.map(({ key }) => fromUtf8(key));
  // What is read here is there before anything else has its turn.
  let isHere = false;
  const reading = kv.range(all).then((rows) => {
    isHere = true;
    return rows;
  });
  for (let step = 0; step < 100; step++) await Promise.resolve();
  expect(isHere).toBe(false);
  expect(keysOf(await reading)).toEqual(names);
  expect(keysOf(await kv.range({ ...all, bytesMax: 1024 * 1024 }))).toEqual(names.slice(0, 11));
  expect(keysOf(await kv.range({ ...all, limit: 7 }))).toEqual(names.slice(0, 7));
  const cursor = kv.cursor(bounds);
  cursor.seek(utf8('k'));
  expect(keysOf(await cursor.next(8))).toEqual(names.slice(0, 8));
  expect(keysOf(await cursor.next(100))).toEqual(names.slice(8));
  cursor.seek(utf8('k'));
  expect(keysOf(await cursor.next(1))).toEqual(names.slice(0, 1));
  cursor.close();
});
