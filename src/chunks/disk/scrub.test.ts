import { randomBytes } from 'node:crypto';
import { beforeEach, expect, test } from 'vitest';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import { Corruption } from '../../base/corruption.ts';
import { createMemoryKv, type MemoryKv } from '../../platform/memory/memory-kv.ts';
import type { ChunkId } from '../../ports/chunks.ts';
import type { KvPort } from '../../ports/kv.ts';
import { makeBlobId } from '../../types/names.ts';
import { type ChunkStore, openChunkStore } from './chunk-store.ts';
import { noteCut } from './disk-identity.ts';
import { CHUNK_COLUMNS, dataKey, indexKey } from './keyspace.ts';
import { createScrub, type ScrubDeps } from './scrub.ts';

const CHUNK_BYTES = 100_000;
const RATE = 1_000_000;
const PERIOD_MS = 3600_000;
const { signal } = new AbortController();
const reserve = {
  hold: async () => ({ release() {} }),
  measure: async () => ({ freeBytes: 1e12, totalBytes: 1e12 }),
};

let kv: MemoryKv;
let clock: ReturnType<typeof createManualClock>;
let events: [string, object][];
let store: ChunkStore;
let ids: ChunkId[];
/** Chunk names in the order of the scrub. */
let verified: ChunkId[];

beforeEach(async () => {
  kv = createMemoryKv(CHUNK_COLUMNS);
  clock = createManualClock(1_700_000_000_000);
  events = [];
  verified = [];
  ids = [];
  store = await openStore(kv);
});

const note = (fields: object, event: string) => void events.push([event, fields]);
const log = { debug: note, info: note, warn: note, error: note };

function openStore(over: KvPort): Promise<ChunkStore> {
  return openChunkStore({ kv: over, reserve, clock, log, onQuarantined() {} });
}

async function putChunks(count: number): Promise<void> {
  for (let index = 0; index < count; index++) {
    const id = { blobId: makeBlobId({ timeMs: 1000, homeShard: 1, random: randomBytes(8) }), index };
    await store.put(id, randomBytes(CHUNK_BYTES));
    ids.push(id);
  }
  ids.sort((a, b) => (a.blobId < b.blobId ? -1 : 1));
}

function scrubOf(change: Partial<ScrubDeps> = {}) {
  return createScrub({
    kv,
    clock,
    log,
    bytesPerSecond: RATE,
    periodMs: PERIOD_MS,
    store: {
      usage: () => store.usage(),
      unreadToTry: () => store.unreadToTry(),
      isLost: (id) => store.isLost(id),
      separate: (id) => store.separate(id),
      verify(id) {
        verified.push(id);
        return store.verify(id);
      },
    },
    ...change,
  });
}

/** Runs until there is nothing left to read; returns how long it took. */
async function pass(scrub: ReturnType<typeof scrubOf>): Promise<number> {
  let tookMs = 0;
  for (;;) {
    const { idleMs } = (await scrub.work(signal)) as { idleMs: number };
    tookMs += idleMs;
    clock.advance(idleMs);
    if (scrub.progress().share === 1) return tookMs;
  }
}

async function rot(id: ChunkId): Promise<void> {
  await kv.commit([{ column: 'data', key: dataKey(id), value: randomBytes(CHUNK_BYTES) }]);
}

test('reads all chunks in id order, as fast as its rate allows', async () => {
  await putChunks(200);
  const scrub = scrubOf();
  const tookMs = await pass(scrub);
  expect(verified).toEqual(ids);
  expect(tookMs).toBeCloseTo((200 * CHUNK_BYTES * 1000) / RATE, -1);
  expect(events.at(-1)).toEqual([
    'scrub-ended',
    { checkedCount: 200, checkedBytes: 200 * CHUNK_BYTES, foundCount: 0, movedCount: 0 },
  ]);
});

test('has whole chunks moved to where large ones are written now, while the disk has room', async () => {
  const moved: string[] = [];
  const separate = async (key: Uint8Array) => moved.push(Buffer.from(key).toString('hex')) % 2 === 1;
  let freeBytes = 1e12;
  const measure = async () => ({ freeBytes, totalBytes: 1e12 });
  const over = { ...kv, separate };
  store = await openChunkStore({
    kv: over,
    reserve: { ...reserve, measure },
    clock,
    log,
    onQuarantined() {},
  });
  await putChunks(5);
  const [rotten] = ids;
  if (rotten === undefined) throw new Error('there is a chunk');
  await rot(rotten);
  const scrub = scrubOf();
  await pass(scrub);
  expect(moved).toEqual(ids.slice(1).map((id) => Buffer.from(dataKey(id)).toString('hex')));
  expect(events.at(-1)).toMatchObject(['scrub-ended', { checkedCount: 5, foundCount: 1, movedCount: 2 }]);
  freeBytes = 1e6;
  clock.advance(PERIOD_MS);
  await pass(scrub);
  expect(moved).toHaveLength(4);
});

test('begins a pass at once on a disk that has lost acknowledged commits', async () => {
  await putChunks(5);
  await pass(scrubOf());
  verified = [];
  await noteCut(kv, { clusterId: 'c', diskId: 'd', mapVersion: 1 }, 7);
  await pass(scrubOf());
  expect(verified).toEqual(ids);
});

test('reads faster if a pass would not end within its period', async () => {
  await putChunks(200);
  const periodMs = 10_000;
  const tookMs = await pass(scrubOf({ periodMs }));
  expect(tookMs).toBeLessThan(periodMs);
  expect(tookMs).toBeGreaterThan(periodMs / 2);
});

test('begins a new pass one period after the last began', async () => {
  await putChunks(5);
  const scrub = scrubOf();
  const tookMs = await pass(scrub);
  expect((await scrub.work(signal)) as object).toMatchObject({ state: 'idle' });
  expect(verified).toHaveLength(5);
  clock.advance(PERIOD_MS - tookMs);
  await pass(scrub);
  expect(verified).toHaveLength(10);
});

test('quarantines damaged chunks and reports them', async () => {
  await putChunks(6);
  const bad = [ids[1], ids[4]] as ChunkId[];
  for (const id of bad) await rot(id);
  const scrub = scrubOf();
  await pass(scrub);
  expect(await store.listQuarantined({ homes: [1], limit: 10 })).toEqual(bad);
  expect(scrub.progress()).toEqual({ share: 1, foundCount: 2, endedAtMs: expect.any(Number) });
  expect(await store.usage()).toMatchObject({ chunkCount: 4 });
});

test('continues after a restart where it was, and remembers what it found', async () => {
  await putChunks(200);
  await rot(ids[0] as ChunkId);
  const first = scrubOf();
  await first.work(signal);
  const readCount = verified.length;
  expect(readCount).toBeGreaterThan(0);
  expect(readCount).toBeLessThan(100);
  expect(first.progress().share).toBeCloseTo(readCount / 200, 1);
  const again = scrubOf();
  await pass(again);
  expect(verified).toEqual(ids);
  expect(again.progress().foundCount).toBe(1);
});

test('finds chunks by their bytes where a part of the index is lost', async () => {
  await putChunks(200);
  const lost = ids.slice(70, 130);
  // A block of the index: what touches it fails, unless it was written anew.
  const gone = new Set(lost.map((id) => Buffer.from(indexKey(id)).toString('hex')));
  const inBlock = (key: Uint8Array) => gone.has(Buffer.from(key).toString('hex'));
  const checked = <T extends { key: Uint8Array }>(rows: T[]) => {
    if (rows.some(({ key }) => inBlock(key))) throw new Corruption('block checksum mismatch');
    return rows;
  };
  const damaged: KvPort = {
    ...kv,
    range: async (range) => (range.column === 'index' ? checked(await kv.range(range)) : kv.range(range)),
    getMany: async (column, keys) => {
      if (column === 'index') checked(keys.map((key) => ({ key })));
      return kv.getMany(column, keys);
    },
    async commit(rows, options) {
      await kv.commit(rows, options);
      for (const { column, key } of rows)
        if (column === 'index') gone.delete(Buffer.from(key).toString('hex'));
    },
  };
  store = await openStore(damaged);
  const scrub = scrubOf({ kv: damaged });
  await pass(scrub);
  expect(new Set(verified)).toEqual(new Set(ids));
  expect(await store.listQuarantined({ homes: [1], limit: 1000 })).toEqual(lost);
  expect(scrub.progress().foundCount).toBe(60);
  expect(await store.have(lost.slice(0, 2))).toEqual([null, null]);
  expect(await store.usage()).toMatchObject({ chunkCount: 140, liveBytes: 140 * CHUNK_BYTES });
  expect(await store.list({ limit: 1000 })).toHaveLength(140);
});

test('continues where the same part of index and bytes is lost', async () => {
  await putChunks(100);
  const lostOf = (from: number, to: number, keyOf: (id: ChunkId) => Uint8Array) =>
    new Set(ids.slice(from, to).map((id) => Buffer.from(keyOf(id)).toString('hex')));
  const gone = { index: lostOf(30, 70, indexKey), data: lostOf(28, 50, dataKey) };
  const damaged: KvPort = {
    ...kv,
    async range(range) {
      const rows = await kv.range(range);
      const lost = gone[range.column as 'index' | 'data'];
      if (rows.some(({ key }) => lost.has(Buffer.from(key).toString('hex'))))
        throw new Corruption('block checksum mismatch');
      return rows;
    },
  };
  await pass(scrubOf({ kv: damaged }));
  // Chunks in neither are found by the audit of their home.
  expect(new Set(verified)).toEqual(new Set([...ids.slice(0, 30), ...ids.slice(50)]));
});

test('ends with its process', async () => {
  await putChunks(3);
  await scrubOf().work(AbortSignal.abort());
  expect(verified).toEqual([]);
});

test('reads an empty disk once, not in a loop', async () => {
  const scrub = scrubOf();
  await scrub.work(signal);
  expect(scrub.progress()).toMatchObject({ share: 1, endedAtMs: clock.wallMs() });
  await scrub.work(signal);
  expect(events.filter(([event]) => event === 'scrub-ended')).toHaveLength(1);
});
