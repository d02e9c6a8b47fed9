// Orders that the network of chunks holds back: who gave them hears of a broken connection, and they arrive nevertheless.
import { beforeEach, expect, test } from 'vitest';
import type { ServedDisk, ServedDisks } from '../../src/ports/chunk-server.ts';
import type { BlobId } from '../../src/types/names.ts';
import { Chance } from './chance.ts';
import { ChunkNetwork } from './chunk-network.ts';
import { SimulatedHost, SimulatedProcess } from './clock.ts';
import { Counts } from './counts.ts';
import { Network } from './network.ts';
import { Scheduler } from './scheduler.ts';

const DISK = { id: 'd', nodeId: 'n', zone: 'z', address: 'storage', capacityBytes: 1 };
const IDS = [{ blobId: '00'.repeat(16) as BlobId, index: 0 }];
const ORDER = { fence: { shard: 0, incarnation: 1, epoch: 1 }, mapVersion: 3 };

let scheduler: Scheduler;
let chunks: ChunkNetwork;
let orders: ReturnType<ReturnType<ChunkNetwork['directory']>['chunksOf']>;
const heard: string[] = [];
const told: string[] = [];

beforeEach(() => {
  heard.length = 0;
  told.length = 0;
  scheduler = new Scheduler();
  const network = new Network(scheduler, { chance: new Chance(5), counts: new Counts() });
  const start = (name: string) => {
    const host = new SimulatedHost(name, { scheduler, chance: new Chance(name.length) });
    const process = new SimulatedProcess(name, { host, chance: new Chance(1) });
    network.join(name, process);
    return process;
  };
  chunks = new ChunkNetwork(network, new Chance(7));
  const disk = {
    dropMisplaced: async () => void heard.push('dropMisplaced'),
    dropQuarantined: async () => void heard.push('dropQuarantined'),
  } as unknown as ServedDisk;
  const served: ServedDisks = {
    mapVersion: () => 3,
    adopt: async () => undefined,
    chunksOf: () => disk,
  };
  chunks.serve(start('storage'), served);
  const caller = { address: 'home', process: start('home'), onMapVersion: () => undefined };
  orders = chunks.directory(caller).chunksOf(DISK);
});

const runFor = (ms: number) => scheduler.run(() => false, scheduler.nowMs + ms);
const order = (kind: 'dropMisplaced' | 'dropQuarantined') =>
  orders[kind](IDS, ORDER).then(
    () => void told.push(`${kind} done`),
    (error: Error) => void told.push(`${kind} ${error.message}`),
  );

test('an order that is held back arrives when it is sent on, after its sender has given it up', async () => {
  const held: { to: string; send(): void }[] = [];
  const letGo = chunks.holdDrops((to, send) => held.push({ to, send }));
  void order('dropMisplaced');
  void order('dropQuarantined');
  await runFor(5000);
  expect(heard).toEqual(['dropQuarantined']);
  expect(told).toEqual(['dropQuarantined done', expect.stringMatching(/^dropMisplaced (?!done)/)]);
  letGo();
  void order('dropMisplaced');
  await runFor(5000);
  expect(heard).toEqual(['dropQuarantined', 'dropMisplaced']);
  expect(held.map(({ to }) => to)).toEqual(['storage']);
  held[0]?.send();
  await runFor(5000);
  expect(heard).toEqual(['dropQuarantined', 'dropMisplaced', 'dropMisplaced']);
  expect(told).toHaveLength(3);
});
