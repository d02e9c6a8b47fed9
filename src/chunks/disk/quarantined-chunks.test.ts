// Quarantine of damaged copies, on a disk with room and on a disk at its reserve (R20, R40).
import { randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { beforeEach, expect, test } from 'vitest';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import { must } from '../../base/assert.ts';
import { Corruption } from '../../base/corruption.ts';
import { createMemoryKv, type MemoryKv } from '../../platform/memory/memory-kv.ts';
import type { ChunkId } from '../../ports/chunks.ts';
import { makeBlobId } from '../../types/names.ts';
import { type ChunkStore, openChunkStore } from './chunk-store.ts';
import { CHUNK_COLUMNS, dataKey, quarantineDataKey, quarantineKey } from './keyspace.ts';

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
  return openChunkStore({
    kv,
    reserve,
    log,
    clock: createManualClock(1_700_000_000_000),
    onQuarantined() {},
  });
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

async function dataOf(
  id: ChunkId,
): Promise<{ inPlace: Buffer | undefined; quarantined: Buffer | undefined }> {
  const [inPlace, quarantined] = await memory.getMany('data', [dataKey(id), quarantineDataKey(id)]);
  return { inPlace: inPlace && Buffer.from(inPlace), quarantined: quarantined && Buffer.from(quarantined) };
}

/** The chunk counts as missing, and the damaged copy is reported. */
async function expectQuarantined(id: ChunkId): Promise<void> {
  expect(await store.get(id)).toEqual({ kind: 'missing' });
  expect(await store.get(id, { isProven: true })).toEqual({ kind: 'missing' });
  expect(await store.verify(id)).toEqual({ kind: 'missing', isQuarantined: true });
  expect(await store.lookUp([id])).toEqual([{ kind: 'missing', isQuarantined: true }]);
  expect(await store.have([id])).toEqual([null]);
  expect(await store.listQuarantined({ homes: [1], limit: 10 })).toEqual([id]);
  expect(await store.usage()).toMatchObject({ chunkCount: 0, liveBytes: 0, quarantinedCount: 1 });
}

test('a damaged copy is moved to quarantine when the disk has room', async () => {
  const { id, bad } = await putDamaged();
  roomBytes = CHUNK_BYTES;
  expect(await store.get(id)).toEqual({ kind: 'damaged' });
  expect(await dataOf(id)).toEqual({ inPlace: undefined, quarantined: bad });
  expect([roomBytes, heldBytes]).toEqual([0, 0]);
  await expectQuarantined(id);
});

test('at the reserve a damaged copy stays in its place and counts as missing, also after a restart', async () => {
  const { id, bad } = await putDamaged();
  roomBytes = CHUNK_BYTES - 1;
  expect(await store.get(id)).toEqual({ kind: 'damaged' });
  for (const isAnew of [false, true]) {
    if (isAnew) store = await open();
    await expectQuarantined(id);
    expect(await dataOf(id)).toEqual({ inPlace: bad, quarantined: undefined });
  }
  const { counted, kept } = await store.recount();
  expect(kept).toEqual(counted);
  await store.dropQuarantined([id], fence);
  expect(await dataOf(id)).toEqual({ inPlace: undefined, quarantined: undefined });
  expect([store.quarantinedCount, await store.verify(id)]).toEqual([
    0,
    { kind: 'missing', isQuarantined: false },
  ]);
});

test('a new copy replaces a damaged one as soon as there is room for both, and the damaged one is kept beside it', async () => {
  const { id, body, bad } = await putDamaged();
  roomBytes = 0;
  await store.verify(id);
  roomBytes = CHUNK_BYTES * 2 - 1;
  await expect(store.put(id, Uint8Array.from(body))).rejects.toMatchObject({ code: 'InsufficientStorage' });
  expect((await dataOf(id)).inPlace).toEqual(bad);
  roomBytes = CHUNK_BYTES * 2;
  const checksum = { sizeBytes: CHUNK_BYTES, crc32: crc32(body) };
  // The room for the fetched bytes is reserved first, and released afterwards.
  roomBytes += CHUNK_BYTES;
  expect(await store.fill(id, checksum, async () => Uint8Array.from(body))).toBe(true);
  expect(await dataOf(id)).toEqual({ inPlace: body, quarantined: bad });
  expect(await store.verify(id)).toMatchObject({ kind: 'whole' });
  expect([heldBytes, store.quarantinedCount]).toEqual([0, 1]);
  await store.dropQuarantined([id], fence);
  expect(await dataOf(id)).toEqual({ inPlace: body, quarantined: undefined });
  expect([store.quarantinedCount, (await store.get(id)).kind]).toEqual([0, 'found']);
});

test('a damaged copy that can no longer be read is dropped when a new copy arrives', async () => {
  const { id, body } = await putDamaged();
  roomBytes = 0;
  await store.verify(id);
  lostKey = hex(dataKey(id));
  await expectQuarantined(id);
  roomBytes = CHUNK_BYTES;
  await store.put(id, Uint8Array.from(body));
  lostKey = undefined;
  expect(await dataOf(id)).toEqual({ inPlace: body, quarantined: undefined });
  await store.dropQuarantined([id], fence);
  expect(await store.verify(id)).toMatchObject({ kind: 'whole' });
});

test('a damaged copy whose row cannot be read is kept beside the new copy, and its drop removes only the damaged one', async () => {
  const { id, body, bad } = await putDamaged();
  roomBytes = 0;
  await store.verify(id);
  lostKey = hex(quarantineKey(id));
  roomBytes = CHUNK_BYTES * 10;
  await store.put(id, Uint8Array.from(body));
  lostKey = undefined;
  expect(await dataOf(id)).toEqual({ inPlace: body, quarantined: bad });
  expect(await store.listQuarantined({ homes: [1], limit: 10 })).toEqual([id]);
  await store.dropQuarantined([id], fence);
  expect(await dataOf(id)).toEqual({ inPlace: body, quarantined: undefined });
  expect([(await store.have([id]))[0] !== null, (await store.get(id)).kind]).toEqual([true, 'found']);
});

test('dropping quarantined copies never removes a copy that counts, whatever the quarantine row says', async () => {
  const { id, body } = await putDamaged();
  roomBytes = 0;
  await store.verify(id);
  const [stale = null] = await memory.getMany('index', [quarantineKey(id)]);
  roomBytes = CHUNK_BYTES * 10;
  await store.put(id, Uint8Array.from(body));
  await memory.commit([{ column: 'index', key: quarantineKey(id), value: stale }]);
  await store.dropQuarantined([id], fence);
  expect([(await dataOf(id)).inPlace, (await store.get(id)).kind]).toEqual([body, 'found']);
});

test('a quarantine row that was lost and is written again is counted once', async () => {
  const [first, second] = [await putDamaged(), await putDamaged()];
  roomBytes = 0;
  await store.verify(first.id);
  lostKey = hex(quarantineKey(second.id));
  await store.verify(second.id);
  lostKey = undefined;
  await store.dropQuarantined([first.id], fence);
  expect(await store.listQuarantined({ homes: [1], limit: 10 })).toEqual([second.id]);
  roomBytes = CHUNK_BYTES * 10;
  await store.put(second.id, Uint8Array.from(second.body));
  expect(await dataOf(second.id)).toEqual({ inPlace: second.body, quarantined: second.bad });
});

test('repeated reads of a damaged copy in its place read it once each, and do not queue', async () => {
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

test('an order to drop a quarantined copy spares a copy that is put at the same time', async () => {
  for (const isPutFirst of [true, false]) {
    roomBytes = Number.POSITIVE_INFINITY;
    const { id, body } = await putDamaged();
    roomBytes = 0;
    await store.verify(id);
    roomBytes = Number.POSITIVE_INFINITY;
    memory.holdCommits();
    const put = () => store.put(id, Uint8Array.from(body));
    const drop = () => store.dropQuarantined([id], fence);
    const both = isPutFirst ? [put(), drop()] : [drop(), put()];
    await new Promise((resolve) => setImmediate(resolve));
    memory.releaseCommits();
    await Promise.all(both);
    expect(await dataOf(id)).toEqual({ inPlace: body, quarantined: undefined });
    expect([store.quarantinedCount, (await store.get(id)).kind]).toEqual([0, 'found']);
  }
});

test('dropping a chunk also drops its damaged copy that stayed in place', async () => {
  const { id } = await putDamaged();
  roomBytes = 0;
  await store.verify(id);
  await store.drop([id], fence);
  expect(await dataOf(id)).toEqual({ inPlace: undefined, quarantined: undefined });
  expect(must((await store.usage()).quarantinedCount, 'it is told')).toBe(0);
});

test('many damaged copies use no more than the room above the reserve', async () => {
  const damaged = [];
  for (let count = 0; count < 50; count++) damaged.push(await putDamaged());
  roomBytes = CHUNK_BYTES * 3;
  for (const { id } of damaged) await store.verify(id);
  expect(store.quarantinedCount).toBe(50);
  const found = await Promise.all(damaged.map(({ id }) => dataOf(id)));
  expect(found.filter(({ quarantined }) => quarantined !== undefined)).toHaveLength(3);
  expect(found.filter(({ inPlace }) => inPlace !== undefined)).toHaveLength(47);
});
