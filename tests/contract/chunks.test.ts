// What every ChunkPort promises (src/ports/chunks.ts), run over each adapter: the chunk store over each kind of store.
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { createMemoryKv } from '../../src/adapters/memory-kv.ts';
import { openRocksdbKv } from '../../src/adapters/rocksdb-kv.ts';
import { systemClock } from '../../src/adapters/system-clock.ts';
import { type BlobId, makeBlobId } from '../../src/model/names.ts';
import type { ChunkPort, Fence } from '../../src/ports/chunks.ts';
import type { KvPort } from '../../src/ports/kv.ts';
import { openChunkStore } from '../../src/storage/chunk-store.ts';
import { createDiskReserve } from '../../src/storage/disk-reserve.ts';
import { CHUNK_COLUMNS, dataKey, indexKey } from '../../src/storage/keyspace.ts';

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function openRocksdb(): Promise<KvPort> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-chunks-'));
  closers.push(() => rm(folder, { recursive: true }));
  const kv = await openRocksdbKv({
    folder,
    columns: { data: { reads: 'async', content: 'ciphertext' }, index: { reads: 'sync', content: 'rows' } },
  });
  closers.push(() => kv.close());
  return kv;
}

const events: string[] = [];
const note = (_fields: object, event: string) => void events.push(event);
const log = { debug: note, info: note, warn: note, error: note };

const disk = { freeBytes: 1e12, totalBytes: 1e12 };

function openStore(kv: KvPort): Promise<ChunkPort> {
  const clock = { ...systemClock, wallMs: () => 5000 };
  const reserve = createDiskReserve({ readSpace: async () => disk, clock, reserveBytes: 1e6 });
  return openChunkStore({ kv, reserve, clock, log });
}

const fence: Fence = { shard: 7, incarnation: 1, epoch: 3 };
const newBlob = (timeMs = 1000): BlobId => makeBlobId({ timeMs, homeShard: 7, random: randomBytes(8) });

describe.each([
  ['over memory', async () => createMemoryKv(CHUNK_COLUMNS)],
  ['over rocksdb', openRocksdb],
])('%s', (_name, openKv) => {
  test('counts all chunks beside the totals that it keeps', async () => {
    const kv = await openKv();
    const store = await openStore(kv);
    expect(await store.recount()).toEqual({
      counted: { chunkCount: 0, liveBytes: 0 },
      kept: { chunkCount: 0, liveBytes: 0 },
    });
    const blobId = newBlob();
    for (let index = 0; index < 3; index++) await store.put({ blobId, index }, randomBytes(10));
    await store.drop([{ blobId, index: 1 }], fence);
    const sound = { chunkCount: 2, liveBytes: 20 };
    expect(await store.recount()).toEqual({ counted: sound, kept: sound });
    await kv.commit([{ column: 'index', key: indexKey({ blobId, index: 0 }), value: null }]);
    expect(await store.recount()).toEqual({ counted: { chunkCount: 1, liveBytes: 10 }, kept: sound });
  });

  test('gives back what was put, and says what is missing', async () => {
    const store = await openStore(await openKv());
    const blobId = newBlob();
    const bodies = [100_000, 1, 40_000].map((size) => randomBytes(size));
    await Promise.all(bodies.map((body, index) => store.put({ blobId, index }, Uint8Array.from(body))));
    for (const [index, body] of bodies.entries()) {
      const read = await store.get({ blobId, index });
      expect(read.kind === 'found' && body.equals(read.bytes)).toBe(true);
    }
    expect(await store.get({ blobId, index: 3 })).toEqual({ kind: 'missing' });
    expect(await store.get({ blobId: newBlob(), index: 0 })).toEqual({ kind: 'missing' });
  });

  test('takes the same bytes under an id again, and refuses others (R24)', async () => {
    const store = await openStore(await openKv());
    const id = { blobId: newBlob(), index: 0 };
    const body = randomBytes(50_000);
    await Promise.all([store.put(id, Uint8Array.from(body)), store.put(id, Uint8Array.from(body))]);
    await store.put(id, Uint8Array.from(body));
    const other = Uint8Array.from(body);
    other[0] = (other[0] ?? 0) ^ 1;
    await expect(store.put(id, other)).rejects.toThrow('other bytes');
    const read = await store.get(id);
    expect(read.kind === 'found' && body.equals(read.bytes)).toBe(true);
    expect(await store.usage()).toMatchObject({ chunkCount: 1, liveBytes: 50_000 });
  });

  test('refuses other bytes under an id whose first put is still under way', async () => {
    const store = await openStore(await openKv());
    const id = { blobId: newBlob(), index: 0 };
    const [first, second] = await Promise.allSettled([
      store.put(id, randomBytes(100)),
      store.put(id, randomBytes(100)),
    ]);
    expect([first.status, second.status]).toEqual(['fulfilled', 'rejected']);
  });

  test('never gives wrong bytes', async () => {
    const kv = await openKv();
    const store = await openStore(kv);
    const id = { blobId: newBlob(), index: 0 };
    await store.put(id, randomBytes(40_000));
    await kv.commit([{ column: 'data', key: dataKey(id), value: randomBytes(40_000) }]);
    expect(await store.get(id)).toEqual({ kind: 'damaged' });
    await kv.commit([{ column: 'data', key: dataKey(id), value: null }]);
    expect(await store.get(id)).toEqual({ kind: 'damaged' });
    expect(events).toContain('chunk-damaged');
  });

  test('drops by order, absent ones too, and refuses the order of an older epoch (R21)', async () => {
    const kv = await openKv();
    const store = await openStore(kv);
    const blobId = newBlob();
    for (const index of [0, 1, 2]) await store.put({ blobId, index }, randomBytes(100));
    const ids = [
      { blobId, index: 0 },
      { blobId, index: 1 },
      { blobId, index: 9 },
    ];
    await Promise.all([store.drop(ids, fence), store.drop(ids, fence)]);
    expect((await store.get({ blobId, index: 1 })).kind).toBe('missing');
    expect((await store.get({ blobId, index: 2 })).kind).toBe('found');
    expect(await store.usage()).toMatchObject({ chunkCount: 1, liveBytes: 100 });
    const reopened = await openStore(kv);
    await expect(reopened.drop([{ blobId, index: 2 }], { ...fence, epoch: 2 })).rejects.toThrow();
    expect((await reopened.get({ blobId, index: 2 })).kind).toBe('found');
    await reopened.drop([{ blobId, index: 2 }], { ...fence, shard: 8, epoch: 1 });
    expect(await reopened.usage()).toMatchObject({ chunkCount: 0, liveBytes: 0 });
  });

  test('lists ids, sizes and times of receipt in id order, page by page', async () => {
    const store = await openStore(await openKv());
    const blobs = [3000, 1000, 2000].map((timeMs) => newBlob(timeMs));
    for (const blobId of blobs)
      for (const index of [1, 0]) await store.put({ blobId, index }, randomBytes(10 + index));
    const listed = [];
    let after: { blobId: BlobId; index: number } | undefined;
    for (;;) {
      const page = await store.list({ limit: 4, ...(after && { after }) });
      listed.push(...page);
      after = page.at(-1)?.id;
      if (after === undefined) break;
    }
    expect(listed).toEqual(
      [...blobs].sort().flatMap((blobId) =>
        [0, 1].map((index) => ({
          id: { blobId, index },
          sizeBytes: 10 + index,
          receivedAtMs: 5000,
        })),
      ),
    );
  });

  test('keeps count over a restart', async () => {
    const kv = await openKv();
    const store = await openStore(kv);
    const blobId = newBlob();
    await Promise.all([0, 1, 2].map((index) => store.put({ blobId, index }, randomBytes(100 + index))));
    await store.drop([{ blobId, index: 1 }], fence);
    expect(await (await openStore(kv)).usage()).toMatchObject({ chunkCount: 2, liveBytes: 202 });
  });

  test('refuses puts at the reserve; reads and drops go on', async () => {
    const store = await openStore(await openKv());
    const blobId = newBlob();
    await store.put({ blobId, index: 0 }, randomBytes(100));
    disk.freeBytes = 1e6 + 1000;
    try {
      const full = await openStore(await openKv());
      await full.put({ blobId, index: 0 }, randomBytes(400));
      await expect(full.put({ blobId, index: 1 }, randomBytes(400))).rejects.toMatchObject({
        code: 'InsufficientStorage',
      });
      expect((await full.get({ blobId, index: 1 })).kind).toBe('missing');
      expect((await full.get({ blobId, index: 0 })).kind).toBe('found');
      await full.drop([{ blobId, index: 0 }], fence);
      expect(await full.usage()).toMatchObject({ chunkCount: 0, diskFreeBytes: 1e6 + 1000 });
    } finally {
      disk.freeBytes = 1e12;
    }
  });
});

test('a failed disk is ServiceUnavailable, and nothing is counted', async () => {
  const kv = createMemoryKv(CHUNK_COLUMNS);
  const store = await openStore(kv);
  kv.fail(new Error('the disk is gone'));
  await expect(store.put({ blobId: newBlob(), index: 0 }, randomBytes(10))).rejects.toMatchObject({
    code: 'ServiceUnavailable',
  });
  expect(await store.usage()).toMatchObject({ chunkCount: 0, liveBytes: 0 });
});
