// The simulated registry of shards: its contract, and what goes wrong with it.
import { beforeEach, expect, test } from 'vitest';
import type { ShardRecord, ShardRegistryPort } from '../../src/ports/shard-registry.ts';
import { Chance } from './chance.ts';
import { SimulatedHost, SimulatedProcess } from './clock.ts';
import { Counts } from './counts.ts';
import { Network } from './network.ts';
import { REGISTRY_HOST, SimulatedRegistry } from './registry.ts';
import { Scheduler } from './scheduler.ts';

let scheduler: Scheduler;
let network: Network;
let registry: SimulatedRegistry;
let process: SimulatedProcess;
let port: ShardRegistryPort;

beforeEach(() => {
  scheduler = new Scheduler();
  const counts = new Counts();
  network = new Network(scheduler, { chance: new Chance(1), counts });
  registry = new SimulatedRegistry(scheduler, { network, chance: new Chance(2), counts });
  const host = new SimulatedHost('h', { scheduler, chance: new Chance(3) });
  process = new SimulatedProcess('p', { host, chance: new Chance(4) });
  port = registry.port(process);
});

const record = (epoch: number, nonce = 'n'): ShardRecord => ({
  incarnation: 1,
  epoch,
  primary: null,
  voters: [],
  prevVoters: null,
  learners: [],
  nonce,
});

async function settled<T>(promise: Promise<T>): Promise<T> {
  let isSettled = false;
  const done = () => {
    isSettled = true;
  };
  promise.then(done, done);
  await scheduler.run(() => isSettled, scheduler.nowMs + 60_000);
  return promise;
}
const swap = (expected: number, epoch: number) => settled(port.swap(0, { expected, record: record(epoch) }));

test('of swaps that expect the same revision one wins', async () => {
  expect(await settled(port.read(0))).toBeUndefined();
  expect(await swap(0, 1)).toEqual({ kind: 'done', revision: 1 });
  expect(await swap(0, 2)).toEqual({ kind: 'lost' });
  const racing = [2, 3].map((epoch) => port.swap(0, { expected: 1, record: record(epoch) }));
  const kinds = (await settled(Promise.all(racing))).map(({ kind }) => kind).sort();
  expect(kinds).toEqual(['done', 'lost']);
  expect(await settled(port.read(0))).toMatchObject({ revision: 2, registryRevision: 2 });
});

test('a swap with a late answer is done at once', async () => {
  const end = registry.troubles.change({ swapAnswerMs: 1000 });
  const swapped = port.swap(0, { expected: 0, record: record(1) });
  await scheduler.run(() => registry.get(0) !== undefined, scheduler.nowMs + 900);
  expect(registry.get(0)).toMatchObject({ revision: 1 });
  const beganMs = scheduler.nowMs;
  expect(await settled(swapped)).toEqual({ kind: 'done', revision: 1 });
  expect(scheduler.nowMs - beganMs).toBeGreaterThan(900);
  end();
});

test('records are copies', async () => {
  const own = record(1);
  await settled(port.swap(0, { expected: 0, record: own }));
  own.epoch = 99;
  const read = await settled(port.read(0));
  expect(read?.record.epoch).toBe(1);
});

test('nobody answers when the registry is away, or behind a cut', async () => {
  const back = registry.troubles.change({ isAway: true });
  await expect(settled(port.read(0))).rejects.toThrow('away');
  await expect(swap(0, 1)).rejects.toThrow('away');
  back();
  expect(await settled(port.read(0))).toBeUndefined();
  const heal = network.cut(REGISTRY_HOST, 'h');
  await expect(swap(0, 1)).rejects.toThrow('away');
  heal();
  // The way there was open: it was done.
  expect(await settled(port.read(0))).toMatchObject({ revision: 1 });
});

test('an ambiguous swap is done, a late one is done later, if it still can be', async () => {
  let end = registry.troubles.change({ ambiguousShare: 1 });
  await expect(swap(0, 1)).rejects.toThrow('did not answer');
  end();
  expect((await settled(port.read(0)))?.record.epoch).toBe(1);
  end = registry.troubles.change({ lateShare: 1 });
  await expect(swap(1, 2)).rejects.toThrow('did not answer');
  end();
  await scheduler.run(() => false, scheduler.nowMs + 20_000);
  expect((await settled(port.read(0)))?.record.epoch).toBe(2);
  end = registry.troubles.change({ lateShare: 1 });
  const late = swap(2, 3);
  end();
  await expect(late).rejects.toThrow('did not answer');
  await settled(port.swap(0, { expected: 2, record: record(4) })).catch(() => undefined);
  await scheduler.run(() => false, scheduler.nowMs + 20_000);
  expect([3, 4]).toContain((await settled(port.read(0)))?.record.epoch);
  expect((await settled(port.read(0)))?.revision).toBe(3);
});

test('a watch tells changes until it ends, or falls silent', async () => {
  const told: number[] = [];
  const ending = new AbortController();
  port.watch((shard, { record: { epoch } }) => told.push(shard * 100 + epoch), ending.signal);
  registry.put(3, record(1));
  await scheduler.run(() => false, scheduler.nowMs + 100);
  const heal = registry.troubles.change({ isSilent: true });
  registry.put(3, record(2));
  await scheduler.run(() => false, scheduler.nowMs + 100);
  heal();
  registry.put(3, record(3));
  await scheduler.run(() => false, scheduler.nowMs + 100);
  ending.abort();
  registry.put(3, record(4));
  await scheduler.run(() => false, scheduler.nowMs + 100);
  expect(told).toEqual([301, 303]);
});

test('set back, records and revisions are those of the backup; afterwards the highest epochs count', async () => {
  registry.put(0, record(1));
  registry.backUp();
  expect(registry.setBack()).toBeUndefined();
  registry.put(0, record(2));
  registry.put(1, record(7));
  const restore = registry.setBack();
  expect(await settled(port.read(0))).toMatchObject({
    revision: 1,
    registryRevision: 1,
    record: { epoch: 1 },
  });
  expect(await settled(port.read(1))).toBeUndefined();
  restore?.();
  const now = await settled(port.read(0));
  expect(now?.record.epoch).toBe(2);
  expect(now?.registryRevision).toBeGreaterThan(3);
  expect((await settled(port.read(1)))?.record.epoch).toBe(7);
});
