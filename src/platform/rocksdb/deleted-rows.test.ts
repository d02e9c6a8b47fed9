import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Worker } from 'node:worker_threads';
import { RocksLevel } from '@nxtedition/rocksdb';
import { expect, test, vi } from 'vitest';
import { fromUtf8, utf8 } from '../../base/bytes/bytes.ts';
import type { KvPort } from '../../ports/kv.ts';
import { DeletedRows } from './deleted-rows.ts';
import { openRocksdbKv } from './rocksdb-kv.ts';

const bounds = (gte: string, lt: string) => ({ gte: utf8(gte), lt: utf8(lt) });
const keyOf = (at: number, bucket = 'first-bucket/') => `${bucket}${String(at).padStart(6, '0')}`;
const FIRST = bounds('first-bucket/', 'first-bucket0');
const OTHER = bounds('other-bucket/', 'other-bucket0');

test('where many rows were deleted a listing does not seek on the calling thread', async () => {
  await withStore(async (kv) => {
    await remove(kv, 12_000);
    await kv.commit(['first-bucket/~', 'other-bucket/a'].map((key) => ({ ...row(key), value: utf8('1') })));
    const makeHere = vi.spyOn(RocksLevel.prototype, '_iterator');
    try {
      expect(await list(kv, FIRST)).toEqual(['first-bucket/~']);
      expect(makeHere).not.toHaveBeenCalled();
      expect(await list(kv, OTHER)).toEqual(['other-bucket/a']);
      expect(makeHere).toHaveBeenCalledTimes(1);
      // Ranges at the same place are read here again when they were quick.
      const head = { column: 'rows', ...bounds('first-bucket/~', 'first-bucket0'), limit: 1 };
      for (let time = 0; time < 2; time++) expect(await kv.range(head)).toHaveLength(1);
      expect(makeHere).toHaveBeenCalledTimes(2);
      // Which says nothing of listings: they begin anywhere.
      await list(kv, FIRST);
      expect(makeHere).toHaveBeenCalledTimes(2);
    } finally {
      makeHere.mockRestore();
    }
  });
});

test('a cursor of another thread is a consistent view that can be re-positioned', async () => {
  await withStore(async (kv) => {
    await remove(kv, 12_000);
    const write = (keys: readonly string[], value: string | null) =>
      kv.commit(
        keys.map((at) => ({ ...row(`first-bucket/~${at}`), value: value === null ? null : utf8(value) })),
      );
    await write(['b', 'd', 'f'], '1');
    for (const reverse of [false, true]) {
      const cursor = kv.cursor({ column: 'rows', ...FIRST, reverse });
      const read = async (count: number) =>
        (await cursor.next(count)).map(({ key, value }) => `${fromUtf8(key).at(-1)}${fromUtf8(value)}`);
      expect(await read(1)).toEqual([reverse ? 'f1' : 'b1']);
      await write(['c', 'd'], '2');
      await write(['f'], null);
      expect(await read(9)).toEqual(reverse ? ['d1', 'b1'] : ['d1', 'f1']);
      expect(await read(1)).toEqual([]);
      cursor.seek(utf8('first-bucket/~d'));
      expect(await read(1)).toEqual(['d1']);
      cursor.close();
      await write(['b', 'd', 'f'], '1');
      await write(['c'], null);
    }
  });
});

test('a store that is closed waits for what another thread reads of it', async () => {
  await withStore(async (kv) => {
    await remove(kv, 12_000);
    await kv.commit(
      Array.from({ length: 1000 }, (_, at) => ({ ...row(`first-bucket/~${at}`), value: utf8('1') })),
    );
    const cursor = kv.cursor({ column: 'rows', ...FIRST });
    const reading = cursor.next(1000);
    await kv.close();
    expect(await reading).toHaveLength(1000);
    await expect(cursor.next(1)).rejects.toThrow('closed');
  });
});

test('who reads many ranges with deleted rows keeps the reads of others waiting for a few of them only', async () => {
  await withStore(async (kv) => {
    await remove(kv, 12_000);
    await remove(kv, 12_000, 'other-bucket/');
    const ended: string[] = [];
    const read = (name: string, range: typeof FIRST) => list(kv, range).then(() => ended.push(name));
    const many = Array.from({ length: 40 }, () => read('first', FIRST));
    await Promise.all([...many, read('other', OTHER)]);
    expect(ended).toHaveLength(41);
    expect(ended.indexOf('other')).toBeLessThan(5);
  });
});

test('where the other thread ends, what waits for it is unavailable, and the next read has another one', async () => {
  await withStore(async (kv) => {
    await remove(kv, 12_000);
    const first: Worker[] = [];
    const post = vi.spyOn(Worker.prototype, 'postMessage').mockImplementationOnce(function (this: Worker) {
      first.push(this);
      this.emit('error', new Error('out of memory'));
    });
    try {
      await expect(list(kv, FIRST)).rejects.toMatchObject({ code: 'ServiceUnavailable' });
      expect(await list(kv, FIRST)).toEqual([]);
    } finally {
      post.mockRestore();
      await Promise.all(first.map((worker) => worker.terminate()));
    }
  });
});

test("what took long is another thread's from then on", () => {
  const deleted = new DeletedRows();
  expect(deleted.mayBeMany(FIRST)).toBe(false);
  deleted.tookHere(FIRST, 1);
  expect(deleted.mayBeMany(FIRST)).toBe(false);
  deleted.tookHere(FIRST, 50);
  expect([deleted.mayBeMany(FIRST), deleted.mayBeMany(OTHER)]).toEqual([true, false]);
});

async function withStore(use: (kv: KvPort) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(path.join(tmpdir(), 'holdfast-deleted-rows-'));
  const kv = await openRocksdbKv({ folder, columns: { rows: { reads: 'sync', content: 'rows' } } });
  try {
    await use(kv);
  } finally {
    await kv.close();
    await rm(folder, { recursive: true });
  }
}

const row = (key: string) => ({ column: 'rows', key: utf8(key) });

async function remove(kv: KvPort, count: number, bucket?: string): Promise<void> {
  await kv.commit(
    Array.from({ length: count }, (_, at) => ({ ...row(keyOf(at, bucket)), value: utf8('1') })),
  );
  await kv.commit(Array.from({ length: count }, (_, at) => ({ ...row(keyOf(at, bucket)), value: null })));
}

async function list(kv: KvPort, range: typeof FIRST): Promise<string[]> {
  const cursor = kv.cursor({ column: 'rows', ...range });
  try {
    return (await cursor.next(10)).map(({ key }) => fromUtf8(key));
  } finally {
    cursor.close();
  }
}
