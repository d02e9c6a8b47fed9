// What a disk does whose tables have lost bytes (R40): bits are flipped in files of RocksDB, below its checksums.
import { randomBytes } from 'node:crypto';
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { must } from '../../src/base/assert.ts';
import { type ChunkStore, openChunkStore } from '../../src/chunks/disk/chunk-store.ts';
import { createScrub } from '../../src/chunks/disk/scrub.ts';
import { openRocksdbKv } from '../../src/platform/rocksdb/rocksdb-kv.ts';
import { systemClock } from '../../src/platform/system-clock.ts';
import type { ChunkId } from '../../src/ports/chunks.ts';
import type { KvPort } from '../../src/ports/kv.ts';
import { makeBlobId } from '../../src/types/names.ts';
import { QUIET } from '../support/disks/chunk-nodes.ts';

const CHUNKS = 600;
const CHUNK_BYTES = 4000;
const homes = [1];
const { signal } = new AbortController();
const reserve = {
  hold: async () => ({ release() {} }),
  measure: async () => ({ freeBytes: 1e12, totalBytes: 1e12 }),
};

/** Of a disk that is whole, made once. */
let original: string;
let folder: string;
let kv: KvPort;
let store: ChunkStore;
let ids: ChunkId[];
let bodies: Map<string, Buffer>;
let hasFailed: boolean;

async function open(): Promise<void> {
  kv = await openRocksdbKv({
    folder,
    columns: {
      data: { reads: 'async', content: 'ciphertext', isPrefixFree: true },
      index: { reads: 'sync', content: 'rows', cacheBytes: 0, memtableBytes: 1024 * 1024 },
    },
  });
  hasFailed = false;
  kv.failed.then(() => {
    hasFailed = true;
  });
  store = await openChunkStore({ kv, reserve, clock: systemClock, log: QUIET, onQuarantined() {} });
}

beforeAll(async () => {
  original = await mkdtemp(join(tmpdir(), 'holdfast-rot-'));
  folder = original;
  await open();
  ids = Array.from({ length: CHUNKS }, (_, at) => ({
    blobId: makeBlobId({ timeMs: 1000 + at, homeShard: 1, random: randomBytes(8) }),
    index: 0,
  }));
  bodies = new Map(ids.map(({ blobId }) => [blobId, randomBytes(CHUNK_BYTES)]));
  await Promise.all(
    ids.map((id) => store.put(id, Uint8Array.from(must(bodies.get(id.blobId), 'made with its id')))),
  );
  // What is in memory goes to tables at the next opening.
  await kv.close();
  await open();
  await kv.close();
});

afterAll(() => rm(original, { recursive: true }));

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-rot-'));
  await cp(original, folder, { recursive: true });
});

afterEach(async () => {
  await kv.close();
  await rm(folder, { recursive: true });
});

/** In the table of the chunks' bytes, or in that of the index. */
async function flipBit(column: 'data' | 'index', share: number): Promise<void> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.sst'));
  const files = await Promise.all(
    names.map(async (name) => ({ path: join(folder, name), bytes: await readFile(join(folder, name)) })),
  );
  files.sort((a, b) => a.bytes.length - b.bytes.length);
  const { path, bytes } = must(column === 'data' ? files.at(-1) : files[0], 'a table');
  const at = Math.floor(bytes.length * share);
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  await writeFile(path, bytes);
}

async function scrub(): Promise<number> {
  const worker = createScrub({
    ...{ kv, store, clock: systemClock, log: QUIET, isServed: () => true },
    bytesPerSecond: 1e9,
    periodMs: 3600_000,
  });
  do await worker.work(signal);
  while (worker.progress().share < 1);
  return worker.progress().foundCount;
}

async function countRight(): Promise<number> {
  let count = 0;
  for (const id of ids) {
    const read = await store.get(id);
    if (read.kind === 'found' && must(bodies.get(id.blobId), 'its bytes').equals(read.bytes)) count++;
    else expect(read).toEqual({ kind: 'missing' });
  }
  return count;
}

/** As other disks would give it. */
function refill(id: ChunkId): Promise<boolean> {
  const bytes = must(bodies.get(id.blobId), 'its bytes');
  return store.put(id, Uint8Array.from(bytes)).then(() => true);
}

describe.each<['data' | 'index', number]>([
  ['data', 0.3],
  ['index', 0.05],
  ['index', 0.5],
])('a bit in the %s, at %d of its table', (column, share) => {
  beforeEach(async () => {
    await flipBit(column, share);
    await open();
  });

  test('is found by the scrub, affects its own block only, and is repaired', async () => {
    const listed = (await store.list({ limit: CHUNKS + 1 })).length;
    expect(listed).toBeGreaterThan(CHUNKS / 2);
    const foundCount = await scrub();
    const lost = await store.listQuarantined({ homes, limit: CHUNKS });
    expect(lost).toHaveLength(foundCount);
    expect(lost.length).toBeGreaterThan(0);
    expect(lost.length).toBeLessThan(CHUNKS / 3);
    expect(await countRight()).toBe(CHUNKS - lost.length);
    expect(await store.have(lost)).toEqual(lost.map(() => null));
    expect(await store.list({ limit: CHUNKS + 1 })).toHaveLength(CHUNKS - lost.length);
    expect(await store.usage()).toMatchObject({
      chunkCount: CHUNKS - lost.length,
      liveBytes: (CHUNKS - lost.length) * CHUNK_BYTES,
    });
    // Bytes of which only the row is lost are kept.
    const kept = await kv.range({
      ...{ column: 'data', gte: Uint8Array.of(255), lt: Uint8Array.of(255, 255), limit: CHUNKS },
    });
    expect(kept).toHaveLength(column === 'index' ? lost.length : 0);
    if (column === 'data') {
      await kv.close();
      await open();
      expect(await store.listQuarantined({ homes, limit: CHUNKS })).toEqual(lost);
    }
    for (const id of lost) await refill(id);
    await store.dropQuarantined(lost, { shard: 1, incarnation: 1, epoch: 1 });
    expect(await countRight()).toBe(CHUNKS);
    expect(hasFailed).toBe(false);
  });

  test('leaves everything else listable and droppable', async () => {
    const pages: ChunkId[] = [];
    for (let after: ChunkId | undefined; ; ) {
      const page = await store.list({ limit: 50, ...(after && { after }) });
      pages.push(...page.map(({ id }) => id));
      after = page.at(-1)?.id;
      if (page.length < 50) break;
    }
    expect(pages.at(-1)).toEqual(ids.at(-1));
    expect(pages[0]).toBeDefined();
    await store.drop(ids, { shard: 1, incarnation: 1, epoch: 1 });
    expect(await store.usage()).toMatchObject({ chunkCount: 0 });
    expect(await store.listQuarantined({ homes, limit: CHUNKS })).toEqual([]);
    expect(await store.have(ids)).toEqual(ids.map(() => null));
    expect(hasFailed).toBe(false);
  });
});
