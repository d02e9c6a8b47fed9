// Room of deleted data comes back to the file system while the store is open and nobody writes anything more
// (design "Data"): chunks and inline bodies over real databases, each given what the reclaim worker does at once.
import { randomBytes } from 'node:crypto';
import { readdirSync, statSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openChunkStore } from '../../src/chunks/disk/chunk-store.ts';
import { createDiskReserve } from '../../src/chunks/disk/disk-reserve.ts';
import { CHUNK_PLACES } from '../../src/chunks/disk/keyspace.ts';
import { createReclaim } from '../../src/chunks/disk/reclaim.ts';
import { openSeparatedKv } from '../../src/platform/extents/open-separated.ts';
import { openRocksdbKv } from '../../src/platform/rocksdb/rocksdb-kv.ts';
import { systemClock } from '../../src/platform/system-clock.ts';
import type { ChunkId, ChunkPort } from '../../src/ports/chunks.ts';
import type { KvPort } from '../../src/ports/kv.ts';
import { makeBlobId } from '../../src/types/names.ts';

const MiB = 1024 * 1024;
const FENCE = { shard: 0, incarnation: 1, epoch: 1 };
const log = { debug() {}, info() {}, warn() {}, error() {} };
const readSpace = async () => ({ freeBytes: 1e12, totalBytes: 1e12 });
const reserve = createDiskReserve({ readSpace, clock: systemClock });

/** Pauses of the worker, and what waits until nothing more is deleted: a test need not wait as long. */
let skippedMs = 0;
const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + skippedMs };

let folder: string;
let kv: KvPort;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-reclaim-'));
});
afterEach(async () => {
  await kv.close();
  await rm(folder, { recursive: true });
});

async function openChunks(separateFromBytes = 0): Promise<ChunkPort> {
  kv = await openSeparatedKv({
    folder,
    separated: CHUNK_PLACES,
    separateFromBytes,
    clock,
    columns: {
      data: { reads: 'async', content: 'ciphertext', isPrefixFree: true },
      index: { reads: 'sync', content: 'rows', memtableBytes: MiB },
    },
  });
  return openChunkStore({ kv, reserve, clock: systemClock, log });
}

async function openBodies(): Promise<void> {
  kv = await openRocksdbKv({
    folder,
    columns: {
      bodies: { reads: 'sync', content: 'ciphertext', isPrefixFree: true },
      rows: { reads: 'sync', content: 'rows' },
    },
  });
}

/** What the folder takes of the disk, in MiB. */
function diskMiB(ending = ''): number {
  const names = readdirSync(folder, { recursive: true })
    .map(String)
    .filter((name) => name.endsWith(ending));
  const blocks = names.map((name) => statSync(join(folder, name), { throwIfNoEntry: false })?.blocks ?? 0);
  return (blocks.reduce((sum, count) => sum + count, 0) * 512) / MiB;
}

/** Chunks of 1 MiB, as one upload after another would write them. */
async function putChunks(store: ChunkPort, count: number): Promise<ChunkId[]> {
  const blobId = makeBlobId({ timeMs: 1e12, homeShard: 0, random: randomBytes(8) });
  const ids = Array.from({ length: count }, (_, index) => ({ blobId, index }));
  const piece = randomBytes(MiB);
  const rest = ids[Symbol.iterator]();
  const put = async () => {
    for (const id of rest) await store.put(id, new Uint8Array(piece));
  };
  await Promise.all(Array.from({ length: 8 }, put));
  return ids;
}

async function reclaimOnce(pendingBytes: () => Promise<number>): Promise<void> {
  const options = { name: 'reclaim', kv, pendingBytes, reserve, clock: systemClock, log };
  const worker = createReclaim({ ...options, afterBytes: 32 * MiB, delayMs: 1000 });
  // By the second look nothing more is written.
  for (let look = 0; look < 2; look++) await worker.work(new AbortController().signal);
}

/** RocksDB says nothing when it has deleted a file. */
async function until(isSo: () => boolean | Promise<boolean>, withinMs = 30_000): Promise<void> {
  const givenUpAt = performance.now() + withinMs;
  while (!(await isSo()) && performance.now() < givenUpAt) await sleep(50);
}

test('chunks: the disk gets all of it back, and the log stays short', async () => {
  const store = await openChunks();
  const ids = await putChunks(store, 400);
  expect(diskMiB('.log')).toBeLessThan(350);
  expect((await store.usage()).pendingReclaimBytes).toBeLessThan(2 * MiB);
  await store.drop(ids, FENCE);
  const pendingBytes = async () => (await store.usage()).pendingReclaimBytes;
  expect((await pendingBytes()) / (400 * MiB)).toBeCloseTo(1, 1);
  expect(diskMiB()).toBeGreaterThan(400);

  await reclaimOnce(pendingBytes);
  await until(() => diskMiB() < 40);
  expect(diskMiB()).toBeLessThan(40);
  expect(await pendingBytes()).toBe(0);
  expect(await kv.turnOver(new AbortController().signal)).toBe(false);
});

test('chunks: of some among others, room comes back and the others stay', async () => {
  const store = await openChunks();
  const ids = await putChunks(store, 240);
  const dropped = ids.filter(({ index }) => index % 5 === 0);
  await store.drop(dropped, FENCE);
  const pendingBytes = async () => (await store.usage()).pendingReclaimBytes;
  expect((await pendingBytes()) / (48 * MiB)).toBeCloseTo(1, 1);

  await reclaimOnce(pendingBytes);
  await until(async () => (await pendingBytes()) === 0 && diskMiB() < 220);
  expect(await pendingBytes()).toBe(0);
  expect(diskMiB()).toBeLessThan(220);
  for (const id of ids) {
    const expected = id.index % 5 === 0 ? 'missing' : 'found';
    expect((await store.get(id)).kind, `chunk ${id.index}`).toBe(expected);
  }
  const [first, ...more] = await kv.range({
    column: 'data',
    gte: new Uint8Array(1),
    lt: Buffer.alloc(32, 255),
    limit: 300,
  });
  expect(first).toBeDefined();
  expect(more.length, 'nothing else is in the column').toBe(ids.length - dropped.length - 1);
});

test('chunks: pending room comes back after the next start', async () => {
  const first = await openChunks();
  await first.drop(await putChunks(first, 120), FENCE);
  const { pendingReclaimBytes } = await first.usage();
  expect(pendingReclaimBytes / (120 * MiB)).toBeCloseTo(1, 1);
  await kv.close();
  const second = await openChunks();
  await until(() => diskMiB() < 40);
  expect(diskMiB()).toBeLessThan(40);
  expect((await second.usage()).pendingReclaimBytes).toBe(0);
});

test('extents: of chunks deleted at random nine tenths of the room come back while others are written', async () => {
  const store = await openChunks(64 * 1024);
  const ids = await putChunks(store, 360);
  const live = new Set(ids);
  const dropped = ids.filter(() => Math.random() < 0.5);
  await store.drop(dropped, FENCE);
  for (const id of dropped) live.delete(id);
  const pendingBytes = async () => (await store.usage()).pendingReclaimBytes;
  expect((await pendingBytes()) / (dropped.length * MiB)).toBeGreaterThan(0.9);
  let isWriting = true;
  const writing = (async () => {
    while (isWriting) for (const id of await putChunks(store, 4)) live.add(id);
  })();
  const options = { name: 'reclaim', kv, pendingBytes, reserve, clock, log };
  const worker = createReclaim({ ...options, afterBytes: 4 * MiB, delayMs: 1000 });
  const turn = async () => {
    await worker.work(new AbortController().signal);
    skippedMs += 5000;
  };
  const isBack = async () => {
    const stored = await store.usage();
    return stored.pendingReclaimBytes < 0.1 * dropped.length * MiB;
  };
  await until(async () => {
    await turn();
    return isBack();
  }, 120_000);
  expect(await isBack()).toBe(true);
  isWriting = false;
  await writing;
  // Beside the data: what is not sparse, and what is being removed. Files that were kept for more of it go, too.
  await until(async () => {
    await turn();
    return diskMiB('.extent') < live.size + 0.15 * dropped.length;
  }, 60_000);
  expect(diskMiB('.extent')).toBeLessThan(live.size + 0.15 * dropped.length);
  for (const id of ids) expect((await store.get(id)).kind).toBe(live.has(id) ? 'found' : 'missing');
});

test('extents: the disk gets all of it back', async () => {
  const store = await openChunks(64 * 1024);
  const ids = await putChunks(store, 300);
  expect((await store.usage()).pendingReclaimBytes).toBeLessThan(2 * MiB);
  await store.drop(ids, FENCE);
  await reclaimOnce(async () => (await store.usage()).pendingReclaimBytes);
  await until(() => diskMiB('.extent') === 0);
  expect(diskMiB('.extent')).toBe(0);
});

test('inline bodies: many small deletes', async () => {
  await openBodies();
  const key = (index: number) => Buffer.from(String(index).padStart(19, '0'));
  const piece = randomBytes(20_000);
  const count = 16_000;
  for (let from = 0; from < count; from += 400) {
    const indexes = Array.from({ length: 400 }, (_, offset) => from + offset);
    await Promise.all(
      indexes.map((index) =>
        kv.commit([
          { column: 'bodies', key: key(index), value: piece },
          { column: 'rows', key: key(index), value: Buffer.alloc(300, index) },
        ]),
      ),
    );
  }
  const kept = (index: number) => index % 100 === 0;
  for (let index = 0; index < count; index++) {
    if (kept(index)) continue;
    const gone = ['bodies', 'rows'].map((column) => ({ column, key: key(index), value: null }));
    const done = kv.commit(gone);
    if (index % 400 === 399) await done;
  }
  await kv.commit([]);
  expect(diskMiB()).toBeGreaterThan(200);
  const pendingBytes = async () => kv.usage().pendingReclaimBytes;
  expect((await pendingBytes()) / (count * 20_000)).toBeCloseTo(0.99, 1);

  await reclaimOnce(pendingBytes);
  await until(async () => (await pendingBytes()) < MiB && diskMiB() < 60);
  expect(await pendingBytes()).toBeLessThan(MiB);
  expect(diskMiB()).toBeLessThan(60);
  const bodies = await kv.range({
    column: 'bodies',
    gte: new Uint8Array(1),
    lt: Buffer.alloc(32, 255),
    limit: count,
  });
  expect(bodies.map((row) => Number(Buffer.from(row.key).toString()))).toEqual(
    Array.from({ length: count / 100 }, (_, index) => index * 100),
  );
});
