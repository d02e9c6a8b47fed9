import { randomBytes } from 'node:crypto';
import { beforeEach, expect, test } from 'vitest';
import { settleAll } from '../../../tests/support/disks/replicated-world.ts';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import { Corruption } from '../../base/corruption.ts';
import { createMemoryKv, type MemoryKv } from '../../platform/memory/memory-kv.ts';
import type { ChunkId } from '../../ports/chunks.ts';
import type { KvPort } from '../../ports/kv.ts';
import { AppError } from '../../types/errors.ts';
import { makeBlobId } from '../../types/names.ts';
import { type ChunkStore, openChunkStore } from './chunk-store.ts';
import { CHUNK_COLUMNS, dataKey, indexKey, quarantineKey } from './keyspace.ts';

const fence = { shard: 1, incarnation: 1, epoch: 1 };
const log = { debug() {}, info() {}, warn() {}, error() {} };
const reserve = {
  hold: async () => ({ release() {} }),
  measure: async () => ({ freeBytes: 1e12, totalBytes: 1e12 }),
};

let memory: MemoryKv;
/** The store underneath, where a test can refuse commits and lose or delay reads. */
let kv: KvPort;
let isFull: boolean;
let store: ChunkStore;

beforeEach(async () => {
  memory = createMemoryKv(CHUNK_COLUMNS);
  isFull = false;
  kv = {
    ...memory,
    commit: (rows, options) =>
      isFull ? Promise.reject(new AppError('SlowDown')) : memory.commit(rows, options),
  };
  store = await open();
});

const open = () =>
  openChunkStore({ kv, reserve, log, clock: createManualClock(1_700_000_000_000), onQuarantined() {} });

function newId(): ChunkId {
  return { blobId: makeBlobId({ timeMs: 1000, homeShard: 1, random: randomBytes(8) }), index: 0 };
}

async function putNew(count: number): Promise<ChunkId[]> {
  const ids = Array.from({ length: count }, newId);
  for (const id of ids) await store.put(id, randomBytes(100));
  return ids;
}

async function expectCounted(): Promise<void> {
  const { counted, kept } = await store.recount();
  expect(kept).toEqual(counted);
}

test('a chunk that is being dropped is neither found nor stored again before the drop has ended (R38)', async () => {
  const [id] = await putNew(1);
  if (id === undefined) throw new Error('one was put');
  const bytes = (await store.get(id)) as { bytes: Uint8Array };
  memory.holdCommits();
  const order: string[] = [];
  const note = async (what: string, done: Promise<unknown>) => {
    const said = await done;
    order.push(what);
    return said;
  };
  const dropped = note(
    'dropped',
    store.dropIf([id], fence, () => {}),
  );
  const seen = note('seen', store.lookUp([id]));
  const read = note('read', store.verify(id));
  const put = note('put', store.put(id, bytes.bytes));
  await settleAll();
  expect(order).toEqual([]);
  memory.releaseCommits();
  expect(await seen).toEqual([{ kind: 'missing', isQuarantined: false }]);
  await Promise.all([dropped, put, read]);
  expect(order[0]).toBe('dropped');
  expect((await store.get(id)).kind).toBe('found');
  await expectCounted();
  // One that is ordered while a put is under way takes it along.
  const other = newId();
  memory.holdCommits();
  const late = store.put(other, randomBytes(100));
  const gone = store.dropIf([other], fence, () => {});
  await settleAll();
  memory.releaseCommits();
  await Promise.all([late, gone]);
  expect((await store.get(other)).kind).toBe('missing');
  // And one that joins a put which a drop takes along is stored anew.
  const third = newId();
  const same = randomBytes(100);
  memory.holdCommits();
  const first = store.put(third, same);
  const taken = store.dropIf([third], fence, () => {});
  const again = store.put(third, same);
  await settleAll();
  memory.releaseCommits();
  await Promise.all([first, taken, again]);
  expect((await store.get(third)).kind).toBe('found');
  await expectCounted();
});

test('a drop that fails because the disk is too busy changes no count', async () => {
  const ids = await putNew(3);
  isFull = true;
  await expect(store.drop(ids, fence)).rejects.toThrow();
  isFull = false;
  await putNew(1);
  await expectCounted();
});

test('a damaged copy that could not be quarantined stays counted until it is', async () => {
  const [id = newId()] = await putNew(2);
  await memory.commit([{ column: 'data', key: dataKey(id), value: randomBytes(100) }]);
  isFull = true;
  await expect(store.get(id)).rejects.toThrow();
  isFull = false;
  expect(await store.get(id)).toEqual({ kind: 'damaged' });
  await expectCounted();
  expect(store.quarantinedCount).toBe(1);
});

test('an order that names a chunk twice counts it once', async () => {
  const [id = newId(), other = newId()] = await putNew(3);
  await memory.commit([{ column: 'data', key: dataKey(other), value: randomBytes(100) }]);
  await store.get(other);
  await store.dropQuarantined([other, other], { ...fence, epoch: 2 });
  expect(store.quarantinedCount).toBe(0);
  await store.drop([id, id], { ...fence, epoch: 2 });
  await expectCounted();
});

test('a copy that is put while the remains of an old one are quarantined stays', async () => {
  const [id = newId()] = await putNew(1);
  const bytes = randomBytes(100);
  // Its row is gone, so the remains are quarantined.
  await memory.commit([{ column: 'index', key: indexKey(id), value: null }]);
  const looked = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  let readCount = 0;
  const { getMany } = memory;
  kv.getMany = async (column, keys) => {
    const found = await getMany(column, keys);
    // A caller has judged the old copy already and is about to quarantine it.
    if (column === 'data' && ++readCount === 3) {
      looked.resolve();
      await goOn.promise;
    }
    return found;
  };
  const read = store.get(id);
  await looked.promise;
  const put = store.put(id, Uint8Array.from(bytes));
  const isPut = await Promise.race([
    put.then(() => true),
    new Promise((later) => setImmediate(later, false)),
  ]);
  goOn.resolve();
  await Promise.allSettled([read, put]);
  expect(isPut).toBe(false);
  const found = await store.get(id);
  expect(found.kind === 'found' && Buffer.from(found.bytes)).toEqual(bytes);
});

test('a chunk whose quarantine row cannot be read counts as quarantined, and the others are still reported', async () => {
  const [bad = newId(), good = newId()] = await putNew(2);
  await memory.commit([{ column: 'data', key: dataKey(bad), value: randomBytes(100) }]);
  await store.get(bad);
  const missing = newId();
  const lost = [quarantineKey(missing)].map((key) => Buffer.from(key).toString('hex'));
  const { getMany } = memory;
  kv.getMany = async (column, keys) => {
    if (column === 'index' && keys.some((key) => lost.includes(Buffer.from(key).toString('hex'))))
      throw new Corruption('block checksum mismatch');
    return getMany(column, keys);
  };
  const kept = { kind: 'whole', sizeBytes: 100 };
  expect(await store.lookUp([good, bad, missing])).toMatchObject([
    kept,
    { kind: 'missing', isQuarantined: true },
    { kind: 'missing', isQuarantined: true },
  ]);
  expect(await store.verify(missing)).toEqual({ kind: 'missing', isQuarantined: true });
});
