// What every ChunkPort promises (src/ports/chunks.ts), run over each adapter: the chunk store over each kind of store.
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MessageChannel } from 'node:worker_threads';
import { crc32 } from 'node:zlib';
import { afterEach, describe, expect, test } from 'vitest';
import { createReplicatedChunks } from '../../src/chunks/copies/replicated-chunks.ts';
import { openChunkStore } from '../../src/chunks/disk/chunk-store.ts';
import { createDiskReserve } from '../../src/chunks/disk/disk-reserve.ts';
import { CHUNK_COLUMNS, CHUNK_PLACES, dataKey, indexKey } from '../../src/chunks/disk/keyspace.ts';
import { createKnownPlacement } from '../../src/chunks/placement/known-placement.ts';
import { makePlacement } from '../../src/chunks/placement/placement.ts';
import type { PeerCredentials } from '../../src/platform/chunk-http/peer-proof.ts';
import { openSeparatedKv } from '../../src/platform/extents/open-separated.ts';
import { createMemoryKv } from '../../src/platform/memory/memory-kv.ts';
import { systemClock } from '../../src/platform/system-clock.ts';
import { createLineChunks, serveChunks } from '../../src/platform/threads/chunk-line.ts';
import { createThreadLine } from '../../src/platform/threads/thread-line.ts';
import type { ChunkPort, Fence } from '../../src/ports/chunks.ts';
import type { KvPort } from '../../src/ports/kv.ts';
import { LIMITS } from '../../src/types/limits.ts';
import { type BlobId, makeBlobId } from '../../src/types/names.ts';
import { createPeerAuthority } from '../support/coordination/peer-certificates.ts';
import {
  asChunkPort,
  connectTo,
  memoryNode,
  ownDirectory,
  servedDirectory,
  serveNode,
  TEST_SECRET,
} from '../support/disks/chunk-nodes.ts';

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** With `separateFromBytes` the bytes of chunks from this size on lie in extents. */
async function openRocksdb(separateFromBytes = 0): Promise<KvPort> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-chunks-'));
  closers.push(() => rm(folder, { recursive: true }));
  const kv = await openSeparatedKv({
    folder,
    columns: { data: { reads: 'async', content: 'ciphertext' }, index: { reads: 'sync', content: 'rows' } },
    separated: CHUNK_PLACES,
    separateFromBytes,
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
/** Totals are of copies. */
const ofAll = (kvs: readonly KvPort[], chunkCount: number, liveBytes: number) => ({
  chunkCount: kvs.length * chunkCount,
  liveBytes: kvs.length * liveBytes,
});
const newBlob = (timeMs = 1000): BlobId => makeBlobId({ timeMs, homeShard: 7, random: randomBytes(8) });

/** A chunk port over the stores of its disks, which a test may look into and open again. */
interface World {
  kvs: readonly KvPort[];
  open(): Promise<ChunkPort>;
}

async function ownStore(openKv: () => Promise<KvPort>): Promise<World> {
  const kv = await openKv();
  return { kvs: [kv], open: () => openStore(kv) };
}

const DISK = 'd'.repeat(32);

async function overHttp(openKv: () => Promise<KvPort>, credentials: PeerCredentials): Promise<World> {
  const kv = await openKv();
  const client = connectTo({ credentials });
  closers.push(() => client.close());
  return {
    kvs: [kv],
    async open() {
      const node = memoryNode([[DISK, await openStore(kv)]]);
      const server = await serveNode(node, { credentials, log });
      closers.push(() => server.stop());
      const disk = { id: DISK, nodeId: 'n', zone: 'z', capacityBytes: 1, address: server.address };
      return asChunkPort(client.chunksOf(disk));
    },
  };
}

async function overThreads(openKv: () => Promise<KvPort>): Promise<World> {
  const kv = await openKv();
  return {
    kvs: [kv],
    async open() {
      const { port1, port2 } = new MessageChannel();
      closers.push(async () => port1.close());
      const chunks = await openStore(kv);
      const broken = (error: Error) => expect.unreachable(error.message);
      serveChunks(createThreadLine(port2, broken), { chunks, takeSpare: () => new ArrayBuffer(64) });
      return createLineChunks(createThreadLine(port1, broken), (spare) => expect(spare.byteLength).toBe(64));
    },
  };
}

/** Waits for the last copy of each chunk, so that tests may count them. */
const patientClock = {
  ...systemClock,
  sleep: (ms: number, signal?: AbortSignal) =>
    systemClock.sleep(ms === LIMITS.lastCopyPatienceMs ? 10_000 : ms, signal),
};

/** Three disks of three zones, in this process or behind HTTP. */
async function replicated(openKv: () => Promise<KvPort>, way: 'own' | 'http'): Promise<World> {
  const kvs = await Promise.all([openKv(), openKv(), openKv()]);
  return {
    kvs,
    async open() {
      const stores = await Promise.all(kvs.map(openStore));
      const nodes = stores.map((store, at) => memoryNode([[`${at}`.repeat(32), store]]));
      const reached = way === 'own' ? ownDirectory(nodes) : await servedDirectory(nodes, log);
      closers.push(() => reached.close());
      const map = makePlacement({ disks: reached.disks, copies: 3 });
      const placement = createKnownPlacement(map);
      const { directory } = reached;
      const chunks = createReplicatedChunks({ placement, directory, clock: patientClock, log });
      closers.push(() => chunks.close());
      return chunks;
    },
  };
}

const openMemory = async () => createMemoryKv(CHUNK_COLUMNS);
const authority = await createPeerAuthority();

describe.each<[string, () => Promise<World>]>([
  ['over memory', () => ownStore(openMemory)],
  ['over rocksdb', () => ownStore(() => openRocksdb())],
  ['over rocksdb with extents', () => ownStore(() => openRocksdb(1))],
  ['over a line of threads, to rocksdb', () => overThreads(() => openRocksdb())],
  ['over a line of threads, to rocksdb with extents', () => overThreads(() => openRocksdb(1))],
  ['over HTTP with the secret', () => overHttp(openMemory, TEST_SECRET)],
  [
    'over HTTP with certificates, to rocksdb',
    async () => overHttp(() => openRocksdb(), await authority.issue()),
  ],
  ['over three disks in memory', () => replicated(openMemory, 'own')],
  ['over three disks of rocksdb with extents behind HTTP', () => replicated(() => openRocksdb(1), 'http')],
])('%s', (name, openWorld) => {
  test('counts all chunks, and returns the stored totals beside them', async () => {
    const { kvs, open } = await openWorld();
    const store = await open();
    expect(await store.recount()).toEqual({
      counted: { chunkCount: 0, liveBytes: 0 },
      kept: { chunkCount: 0, liveBytes: 0 },
    });
    const blobId = newBlob();
    for (let index = 0; index < 3; index++) await store.put({ blobId, index }, randomBytes(10));
    await store.drop([{ blobId, index: 1 }], fence);
    const sound = ofAll(kvs, 2, 20);
    expect(await store.recount()).toEqual({ counted: sound, kept: sound });
    for (const kv of kvs)
      await kv.commit([{ column: 'index', key: indexKey({ blobId, index: 0 }), value: null }]);
    expect(await store.recount()).toEqual({ counted: ofAll(kvs, 1, 10), kept: sound });
  });

  test('returns what was put, and reports what is missing', async () => {
    const { open } = await openWorld();
    const store = await open();
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

  test('gives a part that its reader proves, alone or with the whole chunk, and all of what is to be verified', async () => {
    const { kvs, open } = await openWorld();
    const store = await open();
    const id = { blobId: newBlob(), index: 0 };
    const body = randomBytes(300_000);
    await store.put(id, Uint8Array.from(body));
    const parts = [
      { offsetBytes: 0, sizeBytes: 1 },
      { offsetBytes: 12_345, sizeBytes: 67_890 },
      { offsetBytes: 299_000, sizeBytes: 1000 },
    ];
    for (const part of parts) {
      const read = await store.get(id, { isProven: true, part });
      if (read.kind !== 'found') throw new Error(read.kind);
      const isAlone = read.bytes.length === part.sizeBytes;
      expect(isAlone).toBe(name.includes('extents'));
      const { offsetBytes, sizeBytes } = isAlone ? part : { offsetBytes: 0, sizeBytes: body.length };
      expect(body.subarray(offsetBytes, offsetBytes + sizeBytes).equals(read.bytes)).toBe(true);
      const whole = await store.get(id, { isProven: false, part });
      expect(whole.kind === 'found' && body.equals(whole.bytes)).toBe(true);
    }
    const [part] = parts;
    expect(await store.get({ ...id, index: 1 }, { isProven: true, part })).toEqual({ kind: 'missing' });
    // A copy without a row is none that counts.
    for (const kv of kvs) await kv.commit([{ column: 'index', key: indexKey(id), value: null }]);
    expect((await store.get(id, { isProven: true, part })).kind).not.toBe('found');
  });

  test('describes its chunks, in the requested order, without reading them', async () => {
    const { open } = await openWorld();
    const store = await open();
    const blobId = newBlob();
    const bodies = [100, 20_000].map((sizeBytes) => randomBytes(sizeBytes));
    for (const [index, body] of bodies.entries()) await store.put({ blobId, index }, Uint8Array.from(body));
    const known = bodies.map((body) => ({
      sizeBytes: body.length,
      checksum: crc32(body),
      receivedAtMs: 5000,
    }));
    expect(await store.have([1, 7, 0].map((index) => ({ blobId, index })))).toEqual([
      known[1],
      null,
      known[0],
    ]);
    expect(await store.have([{ blobId, index: 1 }])).toEqual([known[1]]);
    expect(await store.have([{ blobId, index: 2 }])).toEqual([null]);
    expect(await store.have([])).toEqual([]);
  });

  test('accepts the same bytes under an id again, and refuses others (R24)', async () => {
    const { kvs, open } = await openWorld();
    const store = await open();
    const id = { blobId: newBlob(), index: 0 };
    const body = randomBytes(50_000);
    await Promise.all([store.put(id, Uint8Array.from(body)), store.put(id, Uint8Array.from(body))]);
    await store.put(id, Uint8Array.from(body));
    const other = Uint8Array.from(body);
    other[0] = (other[0] ?? 0) ^ 1;
    await expect(store.put(id, other)).rejects.toThrow('other bytes');
    const read = await store.get(id);
    expect(read.kind === 'found' && body.equals(read.bytes)).toBe(true);
    expect(await store.usage()).toMatchObject(ofAll(kvs, 1, 50_000));
  });

  test('refuses other bytes under an id whose first put is still under way', async () => {
    const { open } = await openWorld();
    const store = await open();
    const id = { blobId: newBlob(), index: 0 };
    const [first, second] = await Promise.allSettled([
      store.put(id, randomBytes(100)),
      store.put(id, randomBytes(100)),
    ]);
    // Over a network either may be the first.
    expect([first.status, second.status].sort()).toEqual(['fulfilled', 'rejected']);
  });

  test('never returns wrong bytes', async () => {
    const { kvs, open } = await openWorld();
    const store = await open();
    const id = { blobId: newBlob(), index: 0 };
    await store.put(id, randomBytes(40_000));
    for (const kv of kvs) await kv.commit([{ column: 'data', key: dataKey(id), value: randomBytes(40_000) }]);
    expect(await store.get(id)).toEqual({ kind: 'damaged' });
    for (const kv of kvs) await kv.commit([{ column: 'data', key: dataKey(id), value: null }]);
    expect(await store.get(id)).toEqual({ kind: 'damaged' });
    expect(events).toContain('chunk-damaged');
  });

  test('drops by order, absent ones too, and refuses orders of an older epoch (R21)', async () => {
    const { kvs, open } = await openWorld();
    const store = await open();
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
    expect(await store.usage()).toMatchObject(ofAll(kvs, 1, 100));
    const reopened = await open();
    await expect(reopened.drop([{ blobId, index: 2 }], { ...fence, epoch: 2 })).rejects.toThrow();
    expect((await reopened.get({ blobId, index: 2 })).kind).toBe('found');
    // Epochs are each shard's own, and so are chunks.
    const other = { blobId: makeBlobId({ timeMs: 1000, homeShard: 8, random: randomBytes(8) }), index: 0 };
    await reopened.put(other, randomBytes(100));
    await expect(reopened.drop([{ blobId, index: 2 }], { ...fence, shard: 8, epoch: 9 })).rejects.toThrow();
    expect((await reopened.get({ blobId, index: 2 })).kind).toBe('found');
    await reopened.drop([other], { ...fence, shard: 8, epoch: 1 });
    await reopened.drop([{ blobId, index: 2 }], fence);
    expect(await reopened.usage()).toMatchObject({ chunkCount: 0, liveBytes: 0 });
  });

  test('lists ids, sizes and times of receipt in id order, page by page', async () => {
    const { open } = await openWorld();
    const store = await open();
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
    const { kvs, open } = await openWorld();
    const store = await open();
    const blobId = newBlob();
    await Promise.all([0, 1, 2].map((index) => store.put({ blobId, index }, randomBytes(100 + index))));
    await store.drop([{ blobId, index: 1 }], fence);
    expect(await (await open()).usage()).toMatchObject(ofAll(kvs, 2, 202));
  });

  test('refuses puts at the reserve; reads and drops continue', async () => {
    const { open } = await openWorld();
    const store = await open();
    const blobId = newBlob();
    await store.put({ blobId, index: 0 }, randomBytes(100));
    disk.freeBytes = 1e6 + 1000;
    try {
      const full = await (await openWorld()).open();
      await full.put({ blobId, index: 0 }, randomBytes(400));
      // As it is measured anew, whenever that is.
      disk.freeBytes = 1e6 + 200;
      await expect(full.put({ blobId, index: 1 }, randomBytes(400))).rejects.toMatchObject({
        code: 'InsufficientStorage',
      });
      expect((await full.get({ blobId, index: 1 })).kind).toBe('missing');
      expect((await full.get({ blobId, index: 0 })).kind).toBe('found');
      await full.drop([{ blobId, index: 0 }], fence);
      expect(await full.usage()).toMatchObject({ chunkCount: 0, liveBytes: 0 });
      const { diskFreeBytes } = await full.usage();
      expect(diskFreeBytes % disk.freeBytes).toBe(0);
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
