// Orders of a home shard over real disks behind HTTP; the workers of src/metadata/blobs are tested with simulated ones.
import { crc32 } from 'node:zlib';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  memoryNode,
  QUIET,
  type ReachedNodes,
  servedDirectory,
} from '../../../tests/support/disks/chunk-nodes.ts';
import { mapOf } from '../../../tests/support/disks/home-world.ts';
import { createMemoryKv } from '../../platform/memory/memory-kv.ts';
import { systemClock } from '../../platform/system-clock.ts';
import type { ChunkId } from '../../ports/chunks.ts';
import type { HomeDisks } from '../../ports/home-disks.ts';
import { makeBlobId } from '../../types/names.ts';
import { openChunkStore } from '../disk/chunk-store.ts';
import { createDiskOrders, serveDisk } from '../disk/disk-orders.ts';
import { createDiskReserve } from '../disk/disk-reserve.ts';
import { CHUNK_COLUMNS } from '../disk/keyspace.ts';
import { createKnownPlacement } from '../placement/known-placement.ts';
import { knownOwners } from '../placement/placement.ts';
import { createHomeDisks } from './home-disks.ts';

const NAMES = ['a', 'b', 'c', 'd'].map((letter) => letter.repeat(32));
const id: ChunkId = {
  blobId: makeBlobId({ timeMs: 1e12, homeShard: 3, random: new Uint8Array(8) }),
  index: 0,
};
const how = { fence: { shard: 3, incarnation: 1, epoch: 1 }, signal: new AbortController().signal };
const bytes = new Uint8Array(70_000).fill(5);

let reached: ReachedNodes;
let disks: HomeDisks;

beforeEach(async () => {
  const map = mapOf({ disks: 'abcd', owners: 'abc' });
  const placement = createKnownPlacement(map);
  const readSpace = async () => ({ freeBytes: 1e12, totalBytes: 1e12 });
  const nodes = [];
  for (const diskId of NAMES) {
    const reserve = createDiskReserve({ readSpace, clock: systemClock });
    const kv = createMemoryKv(CHUNK_COLUMNS);
    const store = await openChunkStore({ kv, reserve, clock: systemClock, log: QUIET });
    const node = memoryNode([]);
    const orders = createDiskOrders({
      diskId,
      store,
      node,
      log: QUIET,
      owners: knownOwners(placement),
      fetch: (from, chunk, signal) => {
        const disk = reached.disks.find((one) => one.id === from.diskId);
        if (disk === undefined) throw new Error('no such disk');
        return reached.directory.chunksOf(disk).get(chunk, { isProven: false, signal });
      },
    });
    node.disks.set(diskId, serveDisk(store, orders));
    nodes.push(node);
  }
  reached = await servedDirectory(nodes);
  const owners = map.owners.map(() => NAMES.slice(0, 3));
  placement.learn({ ...map, version: 2, auditFrom: 2, disks: reached.disks, owners });
  const telemetry = { count() {}, observe() {}, gauge() {}, gaugeAll() {} };
  disks = createHomeDisks({
    placement,
    directory: reached.directory,
    clock: systemClock,
    log: QUIET,
    telemetry,
    repairBytesPerSecond: 0,
  });
});
afterEach(() => reached.close());

async function put(...at: number[]): Promise<void> {
  for (const disk of at.map((number) => reached.disks[number])) {
    if (disk === undefined) continue;
    const options = { checksum: crc32(bytes), mapVersion: 2, signal: how.signal };
    await reached.directory.chunksOf(disk).put(id, bytes, options);
  }
}
async function where(): Promise<boolean[]> {
  const had = reached.disks.map((disk) => reached.directory.chunksOf(disk).have([id]));
  return (await Promise.all(had)).map(([chunk]) => chunk !== null);
}

test('owners get the copies that they lack, and misplaced copies are dropped', async () => {
  await put(0, 3);
  expect((await disks.look([id], how))?.states).toEqual([
    { kind: 'incomplete', copies: 1, holders: [NAMES[0]] },
  ]);
  const repaired = await disks.repair([{ id, holders: [NAMES[0] ?? '', NAMES[3] ?? ''] }], how);
  expect(repaired).toEqual({ mapVersion: 2, states: [{ kind: 'whole' }] });
  expect(await where()).toEqual([true, true, true, false]);
  const old = { ...how, fence: { ...how.fence, epoch: 0 } };
  expect(await disks.repair([{ id, holders: [] }], old)).toBeUndefined();
});

test('a chunk is lost only when no disk has it', async () => {
  expect((await disks.repair([{ id, holders: [] }], how))?.states).toEqual([{ kind: 'lost' }]);
  await put(3);
  expect((await disks.repair([{ id, holders: [] }], how))?.states).toEqual([{ kind: 'whole' }]);
  expect(await where()).toEqual([true, true, true, false]);
});
