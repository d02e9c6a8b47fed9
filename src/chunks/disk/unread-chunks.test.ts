// A drive that leaves some reads unanswered, or answers them with a temporary error: the chunk is neither there nor gone.
import { randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { beforeEach, expect, test } from 'vitest';
import { settleAll } from '../../../tests/support/disks/replicated-world.ts';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import { must } from '../../base/assert.ts';
import { Corruption } from '../../base/corruption.ts';
import { createMemoryKv, type MemoryKv } from '../../platform/memory/memory-kv.ts';
import type { ChunkId } from '../../ports/chunks.ts';
import type { KvPort } from '../../ports/kv.ts';
import { ChunkUnread } from '../../types/chunk-refusals.ts';
import { LIMITS } from '../../types/limits.ts';
import { makeBlobId } from '../../types/names.ts';
import { type ChunkStore, openChunkStore } from './chunk-store.ts';
import { CHUNK_COLUMNS, dataKey, indexKey } from './keyspace.ts';
import { createScrub } from './scrub.ts';

const CHUNK_BYTES = 1000;
const fence = { shard: 1, incarnation: 1, epoch: 1 };
const { signal } = new AbortController();
const log = { debug() {}, info() {}, warn() {}, error() {} };
const reserve = {
  hold: async () => ({ release() {} }),
  measure: async () => ({ freeBytes: 1e12, totalBytes: 1e12 }),
};

let memory: MemoryKv;
let clock: ReturnType<typeof createManualClock>;
/** By data key: what a read waits for, or fails with. */
let faults: Map<string, () => Promise<void>>;
/** Reads that reached the drive. */
let asked: string[];
let unreadCount: number;
let store: ChunkStore;
let kv: KvPort;

const keyOf = (id: ChunkId) => Buffer.from(dataKey(id)).toString('hex');

beforeEach(async () => {
  memory = createMemoryKv(CHUNK_COLUMNS);
  clock = createManualClock(1_700_000_000_000);
  faults = new Map();
  asked = [];
  unreadCount = 0;
  kv = {
    ...memory,
    async getMany(column, keys) {
      if (column === 'data') {
        const [key] = keys.map((one) => Buffer.from(one).toString('hex'));
        asked.push(key ?? '');
        await faults.get(key ?? '')?.();
      }
      return memory.getMany(column, keys);
    },
    // A rewritten chunk is stored elsewhere on the drive.
    async commit(rows, options) {
      await memory.commit(rows, options);
      for (const { column, key } of rows)
        if (column === 'data') faults.delete(Buffer.from(key).toString('hex'));
    },
  };
  store = await open();
});

const open = () =>
  openChunkStore({ kv, reserve, log, clock, onQuarantined() {}, onUnread: () => void unreadCount++ });

async function putNew(count: number): Promise<{ ids: ChunkId[]; bodies: Buffer[] }> {
  const ids: ChunkId[] = [];
  const bodies: Buffer[] = [];
  for (let index = 0; index < count; index++) {
    const id = { blobId: makeBlobId({ timeMs: 1000 + index, homeShard: 1, random: randomBytes(8) }), index };
    const body = randomBytes(CHUNK_BYTES);
    await store.put(id, Uint8Array.from(body));
    ids.push(id);
    bodies.push(body);
  }
  return { ids, bodies };
}

/** Reads of the chunk are not answered before the returned function is called. */
function hang(id: ChunkId): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  faults.set(keyOf(id), () => promise);
  return resolve;
}

function failWith(id: ChunkId, error: Error): void {
  faults.set(keyOf(id), () => Promise.reject(error));
}

/** Runs the clock until `work` has ended; an unanswered read takes its time. */
async function ended<T>(work: Promise<T>): Promise<T> {
  let hasEnded = false;
  const over = () => {
    hasEnded = true;
  };
  work.then(over, over);
  for (let step = 0; step < 100 && !hasEnded; step++) {
    await settleAll();
    if (!hasEnded) clock.advance(LIMITS.chunkReadMaxMs / 4);
  }
  expect(hasEnded).toBe(true);
  return work;
}

/** Tries to read the chunk twice, with time in between. */
async function makeSure(id: ChunkId): Promise<void> {
  await ended(store.verify(id));
  clock.advance(LIMITS.unreadChunkAgainMs);
  await ended(store.verify(id));
}

test('an unanswered read ends with an unknown result, and delays no other read and no order', async () => {
  const { ids } = await putNew(3);
  const [bad, good, gone] = ids as [ChunkId, ChunkId, ChunkId];
  hang(bad);
  const inspected = store.verify(bad);
  const read = store.get(bad).catch((error: unknown) => error);
  await settleAll();
  expect(await store.verify(good)).toMatchObject({ kind: 'whole' });
  await store.obey({ ...fence, epoch: 2 }, [good]);
  await store.drop([gone], { ...fence, epoch: 2 });
  expect(await store.verify(gone)).toEqual({ kind: 'missing', isQuarantined: false });
  expect(await ended(inspected)).toEqual({ kind: 'unread' });
  expect(await read).toBeInstanceOf(ChunkUnread);
  expect([store.quarantinedCount, unreadCount]).toEqual([0, 2]);
  expect(await store.usage()).toMatchObject({ chunkCount: 2 });
});

test('time in which the process did not run is not held against the drive', async () => {
  const { ids } = await putNew(1);
  const [id] = ids as [ChunkId];
  const goOn = hang(id);
  const inspected = store.verify(id);
  await settleAll();
  clock.advance(10 * LIMITS.chunkReadMaxMs);
  goOn();
  expect(await inspected).toMatchObject({ kind: 'whole' });
});

test('a drive is not asked again for a read it does not answer, and for nothing when there are several', async () => {
  const { ids } = await putNew(4);
  const [first, second, good, other] = ids as [ChunkId, ChunkId, ChunkId, ChunkId];
  const goOn = hang(first);
  hang(second);
  expect(await ended(store.verify(first))).toEqual({ kind: 'unread' });
  asked = [];
  expect(await store.verify(first)).toEqual({ kind: 'unread' });
  expect(asked).toEqual([]);
  expect(await store.verify(good)).toMatchObject({ kind: 'whole' });
  const late = ended(store.verify(second));
  expect(await late).toEqual({ kind: 'unread' });
  asked = [];
  // The state of the drive and of its chunks is unknown then.
  await expect(store.verify(good)).rejects.toMatchObject({ code: 'ServiceUnavailable' });
  await expect(store.get(other)).rejects.not.toBeInstanceOf(ChunkUnread);
  expect(asked).toEqual([]);
  goOn();
  await settleAll();
  expect(await store.verify(good)).toMatchObject({ kind: 'whole' });
  expect(await store.verify(first)).toMatchObject({ kind: 'whole' });
});

test('reads that queue behind unanswered reads are refused, and do not wait on', async () => {
  const { ids } = await putNew(8);
  for (const id of ids.slice(0, 3)) hang(id);
  const reads = Promise.allSettled(ids.map((id) => store.get(id)));
  const settled = await ended(reads);
  expect(settled.map(({ status }) => status)).toEqual(ids.map(() => 'rejected'));
  expect(asked.length).toBeLessThanOrEqual(LIMITS.chunkReadsAtOnceMax);
});

test('a hanging drive occupies no more threads than its places', async () => {
  const { ids } = await putNew(10);
  for (const id of ids) hang(id);
  const reads = ids.map(async (id, at) => {
    await clock.sleep((at * LIMITS.chunkReadMaxMs) / 4);
    return store.get(id);
  });
  const settled = await ended(Promise.allSettled(reads));
  expect(settled.map(({ status }) => status)).toEqual(ids.map(() => 'rejected'));
  expect(asked.length).toBeLessThanOrEqual(LIMITS.chunkReadsAtOnceMax);
});

test('a lost row with unreadable bytes delays neither its neighbours nor a drop', async () => {
  const { ids } = await putNew(3);
  const [lost, good, gone] = ids as [ChunkId, ChunkId, ChunkId];
  const rowOf = (id: ChunkId) => Buffer.from(indexKey(id)).toString('hex');
  let lostRow = rowOf(lost);
  const { getMany } = kv;
  kv.getMany = async (column, keys) => {
    if (column === 'index' && keys.some((key) => Buffer.from(key).toString('hex') === lostRow))
      throw new Corruption('block checksum mismatch');
    return getMany.call(kv, column, keys);
  };
  failWith(lost, new Error('IO error: While pread: Too many open files'));
  expect(await store.lookUp([lost, good])).toMatchObject([{ kind: 'unread' }, { kind: 'whole' }]);
  expect(await store.verify(lost)).toEqual({ kind: 'unread' });
  expect(await store.have([lost, good])).toMatchObject([null, { sizeBytes: CHUNK_BYTES }]);
  lostRow = rowOf(gone);
  failWith(gone, new Error('IO error: While pread: Too many open files'));
  await store.drop([gone, good], fence);
  lostRow = '';
  expect(await store.lookUp([gone, good])).toMatchObject([{ kind: 'missing' }, { kind: 'missing' }]);
});

test('lost bytes are a loss, other errors are not', async () => {
  const { ids } = await putNew(2);
  const [lost, unknown] = ids as [ChunkId, ChunkId];
  failWith(lost, new Corruption('IO error: While pread: Structure needs cleaning'));
  failWith(unknown, new Error('IO error: While pread: Too many open files'));
  expect(await store.verify(lost)).toEqual({ kind: 'missing', isQuarantined: true });
  expect(await store.verify(unknown)).toEqual({ kind: 'unread' });
  expect(await store.listQuarantined({ homes: [1], limit: 10 })).toEqual([lost]);
  faults.clear();
  expect(await store.verify(unknown)).toMatchObject({ kind: 'whole' });
  expect(await store.lookUp([lost, unknown])).toMatchObject([{ kind: 'missing' }, { kind: 'whole' }]);
});

test('a chunk that stays unreadable is reported to its home, also after a restart, until it can be read', async () => {
  const { ids } = await putNew(3);
  const [quarantined, bad, other] = ids as [ChunkId, ChunkId, ChunkId];
  failWith(bad, new Error('not now'));
  await store.verify(bad);
  await store.verify(bad);
  expect(await store.listQuarantined({ homes: [1], limit: 10 })).toEqual([]);
  expect(await store.lookUp([bad])).toMatchObject([{ kind: 'whole' }]);
  await makeSure(bad);
  failWith(quarantined, new Corruption('lost'));
  await store.verify(quarantined);
  const expectReported = async () => {
    expect(await store.listQuarantined({ homes: [1], limit: 10 })).toEqual([quarantined, bad]);
    expect(await store.listQuarantined({ homes: [1], limit: 1 })).toEqual([quarantined]);
    expect(await store.listQuarantined({ homes: [1], after: quarantined, limit: 10 })).toEqual([bad]);
    expect(await store.listQuarantined({ homes: [2], limit: 10 })).toEqual([]);
    expect(await store.lookUp([bad, other])).toMatchObject([{ kind: 'unread' }, { kind: 'whole' }]);
    expect((await store.usage()).unreadCount).toBe(1);
  };
  await expectReported();
  store = await open();
  await expectReported();
  faults.clear();
  expect(await store.verify(bad)).toMatchObject({ kind: 'whole' });
  expect(await store.listQuarantined({ homes: [1], limit: 10 })).toEqual([quarantined]);
  expect((await store.usage()).unreadCount).toBeUndefined();
  store = await open();
  expect(await store.listQuarantined({ homes: [1], limit: 10 })).toEqual([quarantined]);
});

test('it is rewritten from another copy, and served from there while the old read is unanswered', async () => {
  const { ids, bodies } = await putNew(2);
  const [bad] = ids as [ChunkId];
  const [body] = bodies as [Buffer];
  const [before] = await store.have([bad]);
  hang(bad);
  await makeSure(bad);
  const facts = { sizeBytes: CHUNK_BYTES, crc32: crc32(body) };
  expect(await ended(store.fill(bad, facts, async () => undefined))).toBe(false);
  expect(await store.lookUp([bad])).toEqual([{ kind: 'unread' }]);
  expect(await ended(store.fill(bad, facts, async () => Uint8Array.from(body)))).toBe(true);
  expect(await store.verify(bad)).toMatchObject({ kind: 'whole' });
  expect(await store.lookUp([bad])).toMatchObject([{ kind: 'whole' }]);
  expect(await store.listQuarantined({ homes: [1], limit: 10 })).toEqual([]);
  const read = await store.get(bad);
  expect(read.kind === 'found' && body.equals(read.bytes)).toBe(true);
  // It is the same chunk, and counted once.
  expect(await store.have([bad])).toEqual([before]);
  const { counted, kept } = await store.recount();
  expect([kept, counted.chunkCount]).toEqual([counted, 2]);
});

test('a repeated put is answered as stored once the chunk can be read', async () => {
  const { ids, bodies } = await putNew(1);
  const [id] = ids as [ChunkId];
  hang(id);
  await makeSure(id);
  await expect(store.put(id, randomBytes(CHUNK_BYTES))).rejects.toThrow('other bytes');
  expect(await store.lookUp([id])).toEqual([{ kind: 'unread' }]);
  await store.put(id, Uint8Array.from(bodies[0] as Buffer));
  expect(await store.lookUp([id])).toMatchObject([{ kind: 'whole' }]);
  expect(await store.verify(id)).toMatchObject({ kind: 'whole' });
  const { counted, kept } = await store.recount();
  expect([kept, counted.chunkCount]).toEqual([counted, 1]);
});

test('a chunk that is both quarantined and unreadable is listed once', async () => {
  const { ids, bodies } = await putNew(1);
  const [id] = ids as [ChunkId];
  failWith(id, new Corruption('lost'));
  await store.verify(id);
  await store.put(id, Uint8Array.from(bodies[0] as Buffer));
  failWith(id, new Error('not now'));
  await makeSure(id);
  expect(await store.listQuarantined({ homes: [1], limit: 10 })).toEqual([id]);
});

test('a dropped chunk is not reported any more', async () => {
  const { ids } = await putNew(1);
  const [bad] = ids as [ChunkId];
  hang(bad);
  await makeSure(bad);
  await store.drop([bad], fence);
  expect(await store.listQuarantined({ homes: [1], limit: 10 })).toEqual([]);
  expect(await store.lookUp([bad])).toEqual([{ kind: 'missing', isQuarantined: false }]);
  store = await open();
  expect(await store.listQuarantined({ homes: [1], limit: 10 })).toEqual([]);
});

test('the number of remembered chunks is bounded', async () => {
  const { ids } = await putNew(LIMITS.unreadChunksMax + 1);
  for (const id of ids) failWith(id, new Error('not now'));
  for (const id of ids) await store.verify(id);
  clock.advance(LIMITS.unreadChunkAgainMs);
  for (const id of ids) await store.verify(id);
  expect(await store.listQuarantined({ homes: [1], limit: 1000 })).toEqual(
    ids.slice(0, LIMITS.unreadChunksMax),
  );
});

test('the scrub continues behind an unreadable chunk, and tries it again', async () => {
  const { ids } = await putNew(200);
  const bad = must(ids[40], 'one of them');
  hang(bad);
  const scrub = createScrub({ kv, clock, log, store, bytesPerSecond: 1e9, periodMs: 3600_000 });
  do await ended(scrub.work(signal));
  while (scrub.progress().share < 1);
  expect(new Set(asked)).toEqual(new Set(ids.map(keyOf)));
  expect(scrub.progress().foundCount).toBe(0);
  expect(await store.listQuarantined({ homes: [1], limit: 10 })).toEqual([]);
  clock.advance(LIMITS.unreadChunkAgainMs);
  await ended(scrub.work(signal));
  expect(await store.listQuarantined({ homes: [1], limit: 10 })).toEqual([bad]);
  expect(await store.usage()).toMatchObject({ chunkCount: 200, quarantinedCount: 0, unreadCount: 1 });
});
