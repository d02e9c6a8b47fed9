// What a disk does that has lost bytes (R40): bits are flipped in tables of RocksDB, below its checksums, and in extents.
import { randomBytes } from 'node:crypto';
import { cp, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { must } from '../../src/base/assert.ts';
import { type ChunkStore, openChunkStore } from '../../src/chunks/disk/chunk-store.ts';
import { CHUNK_PLACES } from '../../src/chunks/disk/keyspace.ts';
import { createScrub } from '../../src/chunks/disk/scrub.ts';
import { BLOCK_BYTES } from '../../src/platform/extents/extent-record.ts';
import { EXTENTS_FOLDER, openSeparatedKv } from '../../src/platform/extents/open-separated.ts';
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

type Form = 'tables' | 'extents';
const FORMS: readonly Form[] = ['tables', 'extents'];

/** By where bytes of chunks lie: of a disk that is whole, made once. */
const originals = new Map<Form, string>();
let form: Form;
let folder: string;
let kv: KvPort;
let store: ChunkStore;
let ids: ChunkId[];
let bodies: Map<string, Buffer>;
let hasFailed: boolean;

async function open(): Promise<void> {
  kv = await openSeparatedKv({
    folder,
    separated: CHUNK_PLACES,
    separateFromBytes: form === 'tables' ? 0 : 1,
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
  ids = Array.from({ length: CHUNKS }, (_, at) => ({
    blobId: makeBlobId({ timeMs: 1000 + at, homeShard: 1, random: randomBytes(8) }),
    index: 0,
  }));
  bodies = new Map(ids.map(({ blobId }) => [blobId, randomBytes(CHUNK_BYTES)]));
  for (form of FORMS) {
    folder = await mkdtemp(join(tmpdir(), 'holdfast-rot-'));
    originals.set(form, folder);
    await open();
    await Promise.all(ids.map((id) => refill(id)));
    // What is in memory goes to tables at the next opening.
    await kv.close();
    await open();
    await kv.close();
  }
});

afterAll(async () => {
  for (const original of originals.values()) await rm(original, { recursive: true });
});

async function copyOf(which: Form): Promise<void> {
  form = which;
  folder = await mkdtemp(join(tmpdir(), 'holdfast-rot-'));
  await cp(must(originals.get(which), 'made before'), folder, { recursive: true });
}

afterEach(async () => {
  await kv.close();
  await rm(folder, { recursive: true });
});

/** In the table of the chunks' bytes, or in that of the index. */
async function flipInTable(column: 'data' | 'index', share: number): Promise<void> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.sst'));
  const sized = names.map(async (name) => {
    const path = join(folder, name);
    return { path, sizeBytes: (await stat(path)).size };
  });
  const files = (await Promise.all(sized)).sort((a, b) => a.sizeBytes - b.sizeBytes);
  const { path, sizeBytes } = must(column === 'data' ? files.at(-1) : files[0], 'a table');
  await flipBit(path, Math.floor(sizeBytes * share));
}

/** In some record of the only extent file. */
async function flipInExtent(part: 'head' | 'body'): Promise<void> {
  const [name = ''] = await readdir(join(folder, EXTENTS_FOLDER));
  const recordAt = 2 * BLOCK_BYTES * Math.floor(CHUNKS / 3);
  await flipBit(join(folder, EXTENTS_FOLDER, name), recordAt + (part === 'head' ? 40 : BLOCK_BYTES + 100));
}

async function flipBit(path: string, at: number): Promise<void> {
  const bytes = await readFile(path);
  bytes[at] = must(bytes[at], 'within the file') ^ 1;
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

/** As a writer, or other disks, would give it. */
function refill(id: ChunkId): Promise<boolean> {
  const bytes = must(bodies.get(id.blobId), 'its bytes');
  return store.put(id, Uint8Array.from(bytes)).then(() => true);
}

interface Damage {
  what: string;
  which: Form;
  damage(): Promise<void>;
  /** Of the copies that are lost by it, bytes are there still. */
  keepsBytes: boolean;
}

const ofIndex = (share: number) => () => flipInTable('index', share);
const DAMAGES: readonly Damage[] = [
  { what: 'a table of bytes', which: 'tables', damage: () => flipInTable('data', 0.3), keepsBytes: false },
  { what: 'the beginning of the index', which: 'tables', damage: ofIndex(0.05), keepsBytes: true },
  { what: 'the middle of the index', which: 'tables', damage: ofIndex(0.5), keepsBytes: true },
  { what: 'a head in an extent', which: 'extents', damage: () => flipInExtent('head'), keepsBytes: false },
  { what: 'a body in an extent', which: 'extents', damage: () => flipInExtent('body'), keepsBytes: true },
  { what: 'the index beside extents', which: 'extents', damage: ofIndex(0.2), keepsBytes: true },
  { what: 'rows of places', which: 'extents', damage: ofIndex(0.75), keepsBytes: false },
];
/** Of these the index is whole: RocksDB may merge its tables. */
const INDEX_WHOLE = ['a table of bytes', 'a head in an extent', 'a body in an extent'];

describe.each(DAMAGES)('a bit in $what', ({ what, which, damage, keepsBytes }) => {
  beforeEach(async () => {
    await copyOf(which);
    await damage();
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
    expect(kept).toHaveLength(keepsBytes ? lost.length : 0);
    if (INDEX_WHOLE.includes(what)) {
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
