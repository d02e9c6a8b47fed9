// Damaged copies on a disk with room and on one at its reserve (R20, R40).
import { randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { beforeEach, expect, test } from 'vitest';
import { createManualClock } from '../../../tests/support/simulated.ts';
import { must } from '../../base/assert.ts';
import { Corruption } from '../../base/corruption.ts';
import { createMemoryKv, type MemoryKv } from '../../platform/memory/memory-kv.ts';
import type { ChunkId } from '../../ports/chunks.ts';
import { makeBlobId } from '../../types/names.ts';
import { type ChunkStore, openChunkStore } from './chunk-store.ts';
import { asideDataKey, asideKey, CHUNK_COLUMNS, dataKey } from './keyspace.ts';

const fence = { shard: 1, incarnation: 1, epoch: 1 };
const log = { debug() {}, info() {}, warn() {}, error() {} };
const CHUNK_BYTES = 1000;

let memory: MemoryKv;
let store: ChunkStore;
let roomBytes: number;
let heldBytes: number;
/** Of bytes, or a row, at this key. */
let lostKey: string | undefined;
let dataReadCount: number;
const hex = (key: Uint8Array) => Buffer.from(key).toString('hex');

beforeEach(async () => {
  memory = createMemoryKv(CHUNK_COLUMNS);
  roomBytes = Number.POSITIVE_INFINITY;
  heldBytes = 0;
  lostKey = undefined;
  dataReadCount = 0;
  store = await open();
});

function open(): Promise<ChunkStore> {
  const reserve = {
    async hold(sizeBytes: number) {
      if (sizeBytes > roomBytes) return undefined;
      roomBytes -= sizeBytes;
      heldBytes += sizeBytes;
      return {
        release() {
          heldBytes -= sizeBytes;
        },
      };
    },
    measure: async () => ({ freeBytes: 1e12, totalBytes: 1e12 }),
  };
  const kv = {
    ...memory,
    async getMany(column: string, keys: readonly Uint8Array[]) {
      if (keys.some((key) => hex(key) === lostKey)) throw new Corruption('lost');
      if (column === 'data') dataReadCount++;
      return memory.getMany(column, keys);
    },
  };
  return openChunkStore({ kv, reserve, log, clock: createManualClock(1_700_000_000_000), onAside() {} });
}

/** Of which a bit has flipped. */
async function putDamaged(): Promise<{ id: ChunkId; body: Buffer; bad: Buffer }> {
  const id = { blobId: makeBlobId({ timeMs: 1000, homeShard: 1, random: randomBytes(8) }), index: 0 };
  const body = randomBytes(CHUNK_BYTES);
  await store.put(id, Uint8Array.from(body));
  const bad = Buffer.from(body);
  bad[7] = (bad[7] ?? 0) ^ 1;
  await memory.commit([{ column: 'data', key: dataKey(id), value: Uint8Array.from(bad) }]);
  return { id, body, bad };
}

async function dataOf(id: ChunkId): Promise<{ inPlace: Buffer | undefined; aside: Buffer | undefined }> {
  const [inPlace, aside] = await memory.getMany('data', [dataKey(id), asideDataKey(id)]);
  return { inPlace: inPlace && Buffer.from(inPlace), aside: aside && Buffer.from(aside) };
}

/** It is none, and told of. */
async function expectAside(id: ChunkId): Promise<void> {
  expect(await store.get(id)).toEqual({ kind: 'missing' });
  expect(await store.get(id, { isProven: true })).toEqual({ kind: 'missing' });
  expect(await store.verify(id)).toEqual({ kind: 'missing', isAside: true });
  expect(await store.lookUp([id])).toEqual([{ kind: 'missing', isAside: true }]);
  expect(await store.have([id])).toEqual([null]);
  expect(await store.listAside({ homes: [1], limit: 10 })).toEqual([id]);
  expect(await store.usage()).toMatchObject({ chunkCount: 0, liveBytes: 0, asideCount: 1 });
}

test('a damaged copy is moved within the room that there is', async () => {
  const { id, bad } = await putDamaged();
  roomBytes = CHUNK_BYTES;
  expect(await store.get(id)).toEqual({ kind: 'damaged' });
  expect(await dataOf(id)).toEqual({ inPlace: undefined, aside: bad });
  expect([roomBytes, heldBytes]).toEqual([0, 0]);
  await expectAside(id);
});

test('at the reserve it stays where it is and counts as none, also after a restart', async () => {
  const { id, bad } = await putDamaged();
  roomBytes = CHUNK_BYTES - 1;
  expect(await store.get(id)).toEqual({ kind: 'damaged' });
  for (const isAnew of [false, true]) {
    if (isAnew) store = await open();
    await expectAside(id);
    expect(await dataOf(id)).toEqual({ inPlace: bad, aside: undefined });
  }
  const { counted, kept } = await store.recount();
  expect(kept).toEqual(counted);
  await store.dropAside([id], fence);
  expect(await dataOf(id)).toEqual({ inPlace: undefined, aside: undefined });
  expect([store.asideCount, await store.verify(id)]).toEqual([0, { kind: 'missing', isAside: false }]);
});

test('a new copy comes in its place as soon as there is room for both, and it is kept beside that', async () => {
  const { id, body, bad } = await putDamaged();
  roomBytes = 0;
  await store.verify(id);
  roomBytes = CHUNK_BYTES * 2 - 1;
  await expect(store.put(id, Uint8Array.from(body))).rejects.toMatchObject({ code: 'InsufficientStorage' });
  expect((await dataOf(id)).inPlace).toEqual(bad);
  roomBytes = CHUNK_BYTES * 2;
  const checksum = { sizeBytes: CHUNK_BYTES, crc32: crc32(body) };
  // The room of what is fetched is held before, and given back.
  roomBytes += CHUNK_BYTES;
  expect(await store.fill(id, checksum, async () => Uint8Array.from(body))).toBe(true);
  expect(await dataOf(id)).toEqual({ inPlace: body, aside: bad });
  expect(await store.verify(id)).toMatchObject({ kind: 'whole' });
  expect([heldBytes, store.asideCount]).toEqual([0, 1]);
  await store.dropAside([id], fence);
  expect(await dataOf(id)).toEqual({ inPlace: body, aside: undefined });
  expect([store.asideCount, (await store.get(id)).kind]).toEqual([0, 'found']);
});

test('one that has become unreadable in its place is given up when a new copy comes', async () => {
  const { id, body } = await putDamaged();
  roomBytes = 0;
  await store.verify(id);
  lostKey = hex(dataKey(id));
  await expectAside(id);
  roomBytes = CHUNK_BYTES;
  await store.put(id, Uint8Array.from(body));
  lostKey = undefined;
  expect(await dataOf(id)).toEqual({ inPlace: body, aside: undefined });
  await store.dropAside([id], fence);
  expect(await store.verify(id)).toMatchObject({ kind: 'whole' });
});

test('one whose row cannot be read is kept beside the new copy all the same, and its drop takes it alone', async () => {
  const { id, body, bad } = await putDamaged();
  roomBytes = 0;
  await store.verify(id);
  lostKey = hex(asideKey(id));
  roomBytes = CHUNK_BYTES * 10;
  await store.put(id, Uint8Array.from(body));
  lostKey = undefined;
  expect(await dataOf(id)).toEqual({ inPlace: body, aside: bad });
  expect(await store.listAside({ homes: [1], limit: 10 })).toEqual([id]);
  await store.dropAside([id], fence);
  expect(await dataOf(id)).toEqual({ inPlace: body, aside: undefined });
  expect([(await store.have([id]))[0] !== null, (await store.get(id)).kind]).toEqual([true, 'found']);
});

test('a drop of what is aside takes no copy that counts, whatever its row says', async () => {
  const { id, body } = await putDamaged();
  roomBytes = 0;
  await store.verify(id);
  const [stale = null] = await memory.getMany('index', [asideKey(id)]);
  roomBytes = CHUNK_BYTES * 10;
  await store.put(id, Uint8Array.from(body));
  await memory.commit([{ column: 'index', key: asideKey(id), value: stale }]);
  await store.dropAside([id], fence);
  expect([(await dataOf(id)).inPlace, (await store.get(id)).kind]).toEqual([body, 'found']);
});

test('a row that was lost and is written anew is counted: what is counted is what others look at', async () => {
  const [first, second] = [await putDamaged(), await putDamaged()];
  roomBytes = 0;
  await store.verify(first.id);
  lostKey = hex(asideKey(second.id));
  await store.verify(second.id);
  lostKey = undefined;
  await store.dropAside([first.id], fence);
  expect(await store.listAside({ homes: [1], limit: 10 })).toEqual([second.id]);
  roomBytes = CHUNK_BYTES * 10;
  await store.put(second.id, Uint8Array.from(second.body));
  expect(await dataOf(second.id)).toEqual({ inPlace: second.body, aside: second.bad });
});

test('who asks for one in its place again and again reads it once each time, and waits for no turn', async () => {
  const { id } = await putDamaged();
  roomBytes = 0;
  await store.verify(id);
  dataReadCount = 0;
  memory.holdCommits();
  const order = store.obey({ ...fence, epoch: 2 });
  for (let count = 0; count < 10; count++) expect(await store.get(id)).toEqual({ kind: 'missing' });
  memory.releaseCommits();
  await order;
  expect(dataReadCount).toBe(10);
});

test('an order to drop it takes no copy that is put at the same time', async () => {
  for (const isPutFirst of [true, false]) {
    roomBytes = Number.POSITIVE_INFINITY;
    const { id, body } = await putDamaged();
    roomBytes = 0;
    await store.verify(id);
    roomBytes = Number.POSITIVE_INFINITY;
    memory.holdCommits();
    const put = () => store.put(id, Uint8Array.from(body));
    const drop = () => store.dropAside([id], fence);
    const both = isPutFirst ? [put(), drop()] : [drop(), put()];
    await new Promise((resolve) => setImmediate(resolve));
    memory.releaseCommits();
    await Promise.all(both);
    expect(await dataOf(id)).toEqual({ inPlace: body, aside: undefined });
    expect([store.asideCount, (await store.get(id)).kind]).toEqual([0, 'found']);
  }
});

test('a chunk that goes takes with it what has stayed in its place', async () => {
  const { id } = await putDamaged();
  roomBytes = 0;
  await store.verify(id);
  await store.drop([id], fence);
  expect(await dataOf(id)).toEqual({ inPlace: undefined, aside: undefined });
  expect(must((await store.usage()).asideCount, 'it is told')).toBe(0);
});

test('many damaged copies take no more than there is above the reserve', async () => {
  const damaged = [];
  for (let count = 0; count < 50; count++) damaged.push(await putDamaged());
  roomBytes = CHUNK_BYTES * 3;
  for (const { id } of damaged) await store.verify(id);
  expect(store.asideCount).toBe(50);
  const found = await Promise.all(damaged.map(({ id }) => dataOf(id)));
  expect(found.filter(({ aside }) => aside !== undefined)).toHaveLength(3);
  expect(found.filter(({ inPlace }) => inPlace !== undefined)).toHaveLength(47);
});
