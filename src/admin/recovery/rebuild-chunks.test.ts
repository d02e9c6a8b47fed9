// Offline repairs of a chunk store whose large chunks lie in extents: from the extents alone, and without tables of rows.
import { randomBytes } from 'node:crypto';
import { cp, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { QUIET } from '../../../tests/support/disks/chunk-nodes.ts';
import { must } from '../../base/assert.ts';
import { openChunkStore } from '../../chunks/disk/chunk-store.ts';
import { CHUNK_PLACES } from '../../chunks/disk/keyspace.ts';
import { openDataDir } from '../../platform/disk/data-dir-lock.ts';
import { EXTENTS_FOLDER, openSeparatedKv } from '../../platform/extents/open-separated.ts';
import { isMarkedForRegain, markForRegain } from '../../platform/extents/regain-places.ts';
import { Manifest } from '../../platform/rocksdb/rocksdb-manifest.ts';
import { systemClock } from '../../platform/system-clock.ts';
import type { ChunkId, ChunkPort } from '../../ports/chunks.ts';
import { makeBlobId } from '../../types/names.ts';
import { CHUNK_COLUMNS } from '../open-databases.ts';
import { rebuildChunks } from './rebuild-chunks.ts';
import { salvage } from './salvage.ts';

const FROM_BYTES = 4096;
const FENCE = { shard: 0, incarnation: 1, epoch: 1 };
const reserve = {
  hold: async () => ({ release() {} }),
  measure: async () => ({ freeBytes: 1e12, totalBytes: 1e12 }),
};

let madeOnce: string;
let dataDir: string;
let chunks: string;
let bodies: Map<ChunkId, Buffer>;
let lines: string[];
const print = (line: string) => void lines.push(line);

async function withStore<T>(work: (store: ChunkPort) => Promise<T>): Promise<T> {
  const kv = await openSeparatedKv({
    folder: chunks,
    columns: CHUNK_COLUMNS,
    separated: CHUNK_PLACES,
    separateFromBytes: FROM_BYTES,
  });
  try {
    return await work(await openChunkStore({ kv, reserve, clock: systemClock, log: QUIET }));
  } finally {
    await kv.close();
  }
}

/** Of the chunks of a kind: how many are read right, and how many are missing. */
async function count(isOf: (sizeBytes: number) => boolean) {
  const found = { right: 0, missing: 0 };
  await withStore(async (store) => {
    for (const [id, body] of bodies) {
      if (!isOf(body.length)) continue;
      const read = await store.get(id);
      if (read.kind === 'missing') found.missing++;
      else if (read.kind === 'found' && body.equals(read.bytes)) found.right++;
    }
  });
  return found;
}
const isLarge = (sizeBytes: number) => sizeBytes >= FROM_BYTES;
const isSmall = (sizeBytes: number) => !isLarge(sizeBytes);

beforeAll(async () => {
  madeOnce = await mkdtemp(join(tmpdir(), 'holdfast-rebuild-'));
  chunks = join(madeOnce, 'chunks');
  const locked = await openDataDir({ path: madeOnce, shards: 1 });
  await locked.close();
  bodies = new Map(
    Array.from({ length: 400 }, (_, at) => [
      { blobId: makeBlobId({ timeMs: 1000 + at, homeShard: 0, random: randomBytes(8) }), index: 0 },
      randomBytes(at % 4 === 0 ? 500 : 5000),
    ]),
  );
  await withStore(async (store) => {
    await Promise.all([...bodies].map(([id, body]) => store.put(id, Uint8Array.from(body))));
  });
  // What is in memory goes into tables.
  await withStore(async () => {});
});
afterAll(() => rm(madeOnce, { recursive: true }));

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'holdfast-rebuild-'));
  await cp(madeOnce, dataDir, { recursive: true });
  chunks = join(dataDir, 'chunks');
  lines = [];
});
afterEach(() => rm(dataDir, { recursive: true }));

test('a database that is lost is made anew from the extents; what lay in it alone is gone', async () => {
  await rm(join(chunks, 'CURRENT'));
  for (const name of await readdir(chunks)) if (name.endsWith('.sst')) await rm(join(chunks, name));
  const before = await readdir(chunks);
  expect(await rebuildChunks({ dataDir, print })).toBe(2);
  expect(await readdir(chunks)).toEqual(before);
  expect(lines.at(-1)).toMatch(/^Nothing was changed\./);
  expect(await rebuildChunks({ dataDir, print, yes: true })).toBe(0);
  expect(lines).toContain('300 chunks were found, and have rows again.');
  expect(await count(isLarge)).toEqual({ right: 300, missing: 0 });
  expect(await count(isSmall)).toEqual({ right: 0, missing: 100 });
  await withStore(async (store) => {
    expect(await store.usage()).toMatchObject({ chunkCount: 300, liveBytes: 300 * 5000 });
    expect(await store.list({ limit: 1000 })).toHaveLength(300);
    // Rows are whole: what is dropped goes, and its room with it.
    await store.drop([...bodies.keys()], FENCE);
    expect(await store.usage()).toMatchObject({ chunkCount: 0, liveBytes: 0 });
  });
});

test('a rebuild that was cut short is done by the next one', async () => {
  await markForRegain(join(chunks, EXTENTS_FOLDER));
  for (const name of await readdir(chunks)) if (name !== EXTENTS_FOLDER) await rm(join(chunks, name));
  expect(await rebuildChunks({ dataDir, print, yes: true })).toBe(0);
  expect(await count(isLarge)).toEqual({ right: 300, missing: 0 });
});

test('without extents nothing is rebuilt, nor anything of a folder that is no data folder', async () => {
  await rm(join(chunks, EXTENTS_FOLDER), { recursive: true });
  await expect(rebuildChunks({ dataDir, print, yes: true })).rejects.toThrow('nothing to rebuild from');
  expect(await readdir(chunks)).toContain('CURRENT');
  await expect(rebuildChunks({ dataDir: chunks, print, yes: true })).rejects.toThrow('not the data folder');
});

test('salvage takes out a table of rows that has lost a block, and finds what they said again', async () => {
  const table = await indexTable();
  const bytes = await readFile(table.path);
  // Of the rows of places, which come behind the others.
  const at = Math.floor(bytes.length * 0.75);
  bytes[at] = must(bytes[at], 'within the table') ^ 1;
  await writeFile(table.path, bytes);
  expect(await salvage({ dataDir, print, yes: true })).toBe(0);
  expect(lines).toContainEqual(expect.stringMatching(/\.sst has lost bytes: .* of rows of chunks$/));
  expect(await count(() => true)).toEqual({ right: 400, missing: 0 });
});

test('a salvage that was cut short behind the tables that it took out loses nothing, whoever opens the store next', async () => {
  const extents = join(chunks, EXTENTS_FOLDER);
  const manifest = await Manifest.read(chunks);
  await markForRegain(extents);
  await manifest.remove([(await indexTable()).number]);
  const kv = await openSeparatedKv({
    folder: chunks,
    columns: CHUNK_COLUMNS,
    separated: CHUNK_PLACES,
    separateFromBytes: FROM_BYTES,
  });
  // More than a file that is free would hold off.
  await kv.commit([{ column: 'data', key: Buffer.alloc(20, 1), value: randomBytes(100_000) }]);
  await kv.close();
  expect(isMarkedForRegain(extents)).toBe(false);
  expect(await salvage({ dataDir, print, yes: true })).toBe(0);
  expect(await count(() => true)).toEqual({ right: 400, missing: 0 });
});

/** The largest table of the index. */
async function indexTable(): Promise<{ number: number; path: string }> {
  const tables = (await Manifest.read(chunks)).tables().filter(({ column }) => column !== 'default');
  const sized = tables.map(async ({ number, name }) => {
    const path = join(chunks, name);
    return { number, path, sizeBytes: (await stat(path)).size };
  });
  return must((await Promise.all(sized)).sort((a, b) => b.sizeBytes - a.sizeBytes)[0], 'a table');
}
