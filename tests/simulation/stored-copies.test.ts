import { beforeEach, expect, test } from 'vitest';
import { CHUNK_COLUMNS, dataKey } from '../../src/chunks/disk/keyspace.ts';
import type { ChunkId } from '../../src/ports/chunks.ts';
import { makeBlobId } from '../../src/types/names.ts';
import { Chance } from './chance.ts';
import { SimulatedHost, SimulatedProcess } from './clock.ts';
import { SimulatedDisk } from './disk.ts';
import { Scheduler } from './scheduler.ts';
import { chunkOf, nameOf, StoredCopies } from './stored-copies.ts';

const ID: ChunkId = {
  blobId: makeBlobId({ timeMs: 1000, homeShard: 1, random: Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8) }),
  index: 3,
};

let one: SimulatedDisk;
let other: SimulatedDisk;
let copies: StoredCopies;
let dropped: ChunkId[];
let process: SimulatedProcess;
let scheduler: Scheduler;

beforeEach(() => {
  const chance = new Chance(1);
  scheduler = new Scheduler();
  process = new SimulatedProcess('p', { host: new SimulatedHost('h', { scheduler, chance }), chance });
  [one, other] = [1, 2].map((at) => new SimulatedDisk(CHUNK_COLUMNS, chance.fork(`${at}`))) as [
    SimulatedDisk,
    SimulatedDisk,
  ];
  dropped = [];
  copies = new StoredCopies({ onDropped: (id) => dropped.push(id), nowMs: () => scheduler.nowMs });
  for (const disk of [one, other]) {
    copies.watch(disk, disk === one ? 'a' : 'b');
    put(disk, Uint8Array.of(7));
  }
});

function put(disk: SimulatedDisk, value: Uint8Array | null): void {
  disk.apply(disk.append([{ column: 'data', key: dataKey(ID), value }]), true);
}
const has = () => [one, other].map((disk) => copies.disksOf(ID).has(disk));

test('nodes are counted, not disks', () => {
  expect(copies.nodesOf(ID)).toBe(2);
  copies.watch(other, 'a');
  expect(copies.nodesOf(ID)).toBe(1);
  put(one, null);
  put(other, null);
  expect(copies.nodesOf(ID)).toBe(0);
});

test('a name identifies the chunk', () => {
  expect(chunkOf(nameOf(ID))).toEqual(ID);
});

test('a put copy is there, and its drop is reported', () => {
  expect(has()).toEqual([true, true]);
  put(one, null);
  expect([has(), dropped]).toEqual([[false, true], [ID]]);
});

test('a damaged copy counts as none until it is rewritten; its removal is no drop', () => {
  copies.damage(one, ID);
  expect([has(), copies.lostOf(ID)]).toEqual([[false, true], 1]);
  put(one, null);
  expect(dropped).toEqual([]);
  put(one, Uint8Array.of(7));
  expect(has()).toEqual([true, true]);
  copies.noteWhole(ID);
  expect(copies.lostOf(ID)).toBe(0);
});

test('losses of a disk are seen when it is opened again', () => {
  one.wipe();
  expect(has()).toEqual([true, true]);
  one.open(process);
  expect([has(), copies.lostOf(ID)]).toEqual([[false, true], 1]);
  other.open(process);
  expect([has(), dropped]).toEqual([[false, true], []]);
});

test('a removed disk has nothing', () => {
  copies.retire(other);
  expect([has(), dropped, [...copies.on(one)]]).toEqual([[true, false], [ID], [nameOf(ID)]]);
});

test('a chunk that lost a copy is short since then, until it is whole; a dropped one is not', async () => {
  put(other, null);
  expect(copies.short()).toEqual([]);
  await scheduler.run(() => false, 5000);
  copies.damage(one, ID);
  expect(copies.short()).toEqual([{ id: ID, atMs: 5000 }]);
  copies.noteWhole(ID);
  expect(copies.short()).toEqual([]);
});
