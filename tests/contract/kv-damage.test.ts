// What RocksDB does when a disk has lost bytes of it (R17): which reads fail, how, and what it does about it itself.
import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RocksLevel } from '@nxtedition/rocksdb';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Corruption } from '../../src/base/corruption.ts';
import { openRocksdbKv } from '../../src/platform/rocksdb/rocksdb-kv.ts';
import type { KvBounds, KvPort, KvPut } from '../../src/ports/kv.ts';

const ROWS_OF_SHARD = 1000;
const SHARDS = [0, 1, 2];

let folder: string;
let kv: KvPort;

/**
 * All that is written before the damage fits into memory, and so into one table: of two RocksDB would begin to merge as soon
 * as it is opened, and whether a test meets that would be chance.
 */
const MEMTABLE_BYTES = 32 * 1024 * 1024;
/** With so little tables are written and merged all the time. */
const SMALL_MEMTABLE_BYTES = 1024 * 1024;

function open(memtableBytes = MEMTABLE_BYTES): Promise<KvPort> {
  return openRocksdbKv({
    folder,
    columns: { rows: { reads: 'sync', content: 'rows', cacheBytes: 0, memtableBytes } },
  });
}

function keyOf(shard: number, index: number): Uint8Array {
  const key = Buffer.alloc(6);
  key.writeUInt16BE(shard);
  key.writeUInt32BE(index, 2);
  return key;
}

const boundsOf = (shard: number): KvBounds => ({
  column: 'rows',
  gte: keyOf(shard, 0),
  lt: keyOf(shard + 1, 0),
});

async function write(shards: readonly number[]): Promise<void> {
  for (const shard of shards)
    for (let from = 0; from < ROWS_OF_SHARD; from += 100) {
      const rows = Array.from({ length: 100 }, (_, index): KvPut => {
        return { column: 'rows', key: keyOf(shard, from + index), value: randomBytes(1000) };
      });
      await kv.commit(rows);
    }
}

/** In the table that was written first, which has what was written first. */
async function flipBit(share: number): Promise<void> {
  const [first] = (await readdir(folder)).filter((name) => name.endsWith('.sst')).sort();
  const path = join(folder, first ?? '');
  const bytes = await readFile(path);
  const at = Math.floor(bytes.length * share);
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  await writeFile(path, bytes);
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-damage-'));
  kv = await open();
  await write(SHARDS);
  // What is in memory goes to a table at the next opening.
  await kv.close();
  kv = await open();
  await kv.close();
  // In a row of shard 0.
  await flipBit(0.1);
  kv = await open();
});

afterEach(async () => {
  await kv.close();
  await rm(folder, { recursive: true });
});

const readAll = (shard: number) => kv.range({ ...boundsOf(shard), limit: ROWS_OF_SHARD + 1 });

async function readByCursor(shard: number, pageRows: number): Promise<number> {
  const cursor = kv.cursor(boundsOf(shard));
  try {
    for (let count = 0; ; ) {
      const page = await cursor.next(pageRows);
      count += page.length;
      if (page.length < pageRows) return count;
    }
  } finally {
    cursor.close();
  }
}

test('each way of reading reports it, and intact rows are read', async () => {
  const keys = Array.from({ length: ROWS_OF_SHARD }, (_, index) => keyOf(0, index));
  await expect(readAll(0)).rejects.toBeInstanceOf(Corruption);
  await expect(readByCursor(0, 100)).rejects.toBeInstanceOf(Corruption);
  await expect(readByCursor(0, 500)).rejects.toBeInstanceOf(Corruption);
  // More than a thread reads for itself, and fewer.
  await expect(kv.getMany('rows', keys)).rejects.toBeInstanceOf(Corruption);
  const some: unknown[] = [];
  for (let from = 0; from < keys.length; from += 50)
    some.push(await kv.getMany('rows', keys.slice(from, from + 50)).catch((error: unknown) => error));
  expect(some.filter((read) => read instanceof Corruption)).toHaveLength(1);
  expect(await readAll(1)).toHaveLength(ROWS_OF_SHARD);
  expect(await readByCursor(2, 100)).toBe(ROWS_OF_SHARD);
});

test('a read on another thread has its own error, and does not repeat others', async () => {
  await kv.close();
  kv = await openRocksdbKv({
    folder,
    columns: { rows: { reads: 'async', content: 'rows', cacheBytes: 0, memtableBytes: MEMTABLE_BYTES } },
  });
  // One of them may be of a drive that hangs, and would take this thread with it.
  const readHere = vi.spyOn(RocksLevel.prototype, '_getManySync');
  try {
    const keys = Array.from({ length: ROWS_OF_SHARD }, (_, index) => keyOf(0, index));
    const reads = await Promise.allSettled(keys.map((key) => kv.getMany('rows', [key])));
    expect(readHere).not.toHaveBeenCalled();
    const lost = reads.flatMap((read, index) => (read.status === 'rejected' ? [index] : []));
    expect(lost).toEqual(await lostRows());
    expect(lost.length).toBeGreaterThan(1);
    for (const [index, read] of reads.entries()) {
      if (read.status === 'rejected') expect(read.reason).toBeInstanceOf(Corruption);
      else expect(read.value[0], `row ${index}`).toHaveLength(1000);
    }
  } finally {
    readHere.mockRestore();
  }
});

/** Rows of shard 0 that cannot be read. */
async function lostRows(): Promise<number[]> {
  const lost: number[] = [];
  for (let index = 0; index < ROWS_OF_SHARD; index++) {
    const read = await kv.getMany('rows', [keyOf(0, index)]).catch((error: unknown) => error);
    if (read instanceof Corruption) lost.push(index);
  }
  return lost;
}

test('a cleared range is empty, and a single lost row is reported until there is a new one', async () => {
  const lost = await lostRows();
  const [first = 0] = lost;
  expect(lost.length).toBeGreaterThan(1);
  await kv.clear(boundsOf(0));
  expect(await readAll(0)).toEqual([]);
  expect(await kv.getMany('rows', [keyOf(0, 100)])).toEqual([undefined]);
  // The table is looked into before it is known that nothing in it counts: never taken for a row that is not there.
  expect(await lostRows()).toEqual(lost);
  await kv.commit([{ column: 'rows', key: keyOf(0, first), value: Buffer.from('new') }]);
  await kv.close();
  kv = await open();
  expect((await readAll(0)).map(({ value }) => value.toString())).toEqual(['new']);
  expect((await kv.getMany('rows', [keyOf(0, first)])).map(String)).toEqual(['new']);
  expect(await lostRows()).toEqual(lost.slice(1));
  expect(await readAll(1)).toHaveLength(ROWS_OF_SHARD);
});

test('a compaction over lost rows ends all writing, cleared or not, reopened or not', async () => {
  await kv.close();
  kv = await open(SMALL_MEMTABLE_BYTES);
  await kv.clear(boundsOf(0));
  const until = async (): Promise<Error> => {
    for (let round = 0; round < 20; round++) {
      const error = await write(SHARDS).then(
        () => undefined,
        (failed: Error) => failed,
      );
      if (error !== undefined) return error;
    }
    throw new Error('it goes on writing');
  };
  // Not in silence: the process is told, and ends (R20).
  expect(await until()).toBeInstanceOf(Corruption);
  expect(await kv.failed).toBeInstanceOf(Corruption);
  await kv.close();
  kv = await open(SMALL_MEMTABLE_BYTES);
  expect(await until()).toBeInstanceOf(Corruption);
});

test('a table without its end makes a database that does not open', async () => {
  await kv.close();
  for (const name of await readdir(folder))
    if (name.endsWith('.sst')) {
      const path = join(folder, name);
      const bytes = await readFile(path);
      await writeFile(path, bytes.fill(0, bytes.length - 40));
    }
  await expect(open()).rejects.toMatchObject({ name: 'KvOpenError', code: 'CORRUPT' });
});
