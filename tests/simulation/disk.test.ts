// The simulated disk: what is left of commits after the end of a process, a loss of power and a cut log.
import { beforeEach, expect, test } from 'vitest';
import { fromUtf8, utf8 } from '../../src/base/bytes/bytes.ts';
import type { KvPort, KvPut } from '../../src/ports/kv.ts';
import { Chance } from './chance.ts';
import { SimulatedHost, SimulatedProcess } from './clock.ts';
import { SimulatedDisk } from './disk.ts';
import { Scheduler } from './scheduler.ts';

let scheduler: Scheduler;
let host: SimulatedHost;
let disk: SimulatedDisk;
let process: SimulatedProcess;

const put = (key: string, value: string | null = 'v'): KvPut => ({
  column: 'rows',
  key: utf8(key),
  value: value === null ? null : utf8(value),
});
const keysOf = (ofDisk: SimulatedDisk) => Array.from(ofDisk.rows('rows'), ({ key }) => fromUtf8(key));
const runFor = (ms: number) => scheduler.run(() => false, scheduler.nowMs + ms);

function build(seed: number): void {
  scheduler = new Scheduler();
  host = new SimulatedHost('h', { scheduler, chance: new Chance(1) });
  disk = new SimulatedDisk(['rows'], new Chance(seed));
  start();
}
function start(): KvPort {
  process = new SimulatedProcess('p', { host, chance: new Chance(2) });
  return disk.open(process);
}
beforeEach(() => build(1));

/** Runs the world until `promise` settles. */
async function settled<T>(promise: Promise<T>): Promise<T> {
  let isSettled = false;
  const done = () => {
    isSettled = true;
  };
  promise.then(done, done);
  await scheduler.run(() => isSettled, scheduler.nowMs + 60_000);
  return promise;
}

/** What was left of ten commits after `lose`, over many seeds; the first `synced` of them were. */
async function leftOver(synced: number, lose: () => void): Promise<Set<number>> {
  const left = new Set<number>();
  for (let seed = 0; seed < 60; seed++) {
    build(seed);
    const kv = disk.open(process);
    for (let i = 0; i < 10; i++) await settled(kv.commit([put(`k${i}`)], { sync: i < synced }));
    process.kill();
    lose();
    start();
    const keys = keysOf(disk);
    // Always a beginning: never a hole.
    expect(keys).toEqual(Array.from({ length: keys.length }, (_, i) => `k${i}`));
    left.add(keys.length);
  }
  return left;
}

test('the end of a process loses no written data', async () => {
  expect(await leftOver(4, () => undefined)).toEqual(new Set([10]));
});

test('a loss of power leaves what was synced, and some of the rest', async () => {
  const left = await leftOver(4, () => disk.losePower());
  expect([...left].sort((a, b) => a - b)).toEqual([4, 5, 6, 7, 8, 9, 10]);
});

test('a cut log may lose synced data, but not tables', async () => {
  const left = await leftOver(10, () => disk.cutLog());
  expect(Math.min(...left)).toBe(0);
  expect(Math.max(...left)).toBe(9);
  const kept = await leftOver(4, () => {
    disk.flush();
    disk.cutLog();
  });
  expect(Math.min(...kept)).toBe(4);
});

test('a commit under way at the end of a process is there or not, and never acknowledged', async () => {
  const outcomes = new Set<number>();
  for (let seed = 0; seed < 40; seed++) {
    build(seed);
    const kv = disk.open(process);
    let isTold = false;
    kv.commit([put('a'), put('b')]).then(() => {
      isTold = true;
    });
    const steps = seed % 4;
    await scheduler.run(() => scheduler.stepCount >= steps, 1000);
    process.kill();
    await runFor(100);
    start();
    if (isTold) expect(keysOf(disk)).toHaveLength(2);
    outcomes.add(keysOf(disk).length);
  }
  expect([...outcomes].sort()).toEqual([0, 2]);
});

test('a failed sync is final, and the next process finds a working store', async () => {
  const kv = disk.open(process);
  await settled(kv.commit([put('a')]));
  const failing = kv.commit([put('b')]);
  disk.failSync();
  await expect(settled(failing)).rejects.toThrow('the sync failed');
  expect((await kv.failed).message).toContain('the sync failed');
  await expect(kv.commit([put('c')])).rejects.toThrow('the sync failed');
  process.kill();
  const next = start();
  await settled(next.commit([put('c')]));
  expect(keysOf(disk)).toContain('c');
});

test('a corrupt row cannot be read until it is rewritten, also by the next process', async () => {
  const kv = disk.open(process);
  await settled(kv.commit([put('a'), put('b')]));
  expect(disk.corrupt('rows', (key) => fromUtf8(key) === 'a')).toEqual(Buffer.from('a'));
  const failure = { name: 'Corruption' };
  await expect(settled(kv.getMany('rows', [utf8('b'), utf8('a')]))).rejects.toMatchObject(failure);
  const all = { column: 'rows', gte: utf8('a'), lt: utf8('z'), limit: 9 };
  await expect(settled(kv.range(all))).rejects.toMatchObject(failure);
  process.kill();
  const next = start();
  await expect(settled(next.range(all))).rejects.toMatchObject(failure);
  expect(await settled(next.getMany('rows', [utf8('b')]))).toHaveLength(1);
  await settled(next.commit([put('a', 'new')]));
  expect(await settled(next.range(all))).toHaveLength(2);
});

test('corrupt rows can be cleared without being read; a loss of power may restore them', async () => {
  const range = { column: 'rows', gte: utf8('a'), lt: utf8('b') };
  const outcomes = new Set<boolean>();
  for (let round = 0; round < 12; round++) {
    const kv = start();
    await settled(kv.commit([put('a'), put('b')]));
    disk.corrupt('rows', (key) => fromUtf8(key) === 'a');
    await settled(kv.clear(range));
    expect(keysOf(disk)).toEqual(['b']);
    expect(disk.hasDamage).toBe(false);
    process.kill();
    disk.losePower();
    start();
    outcomes.add(disk.hasDamage);
    process.kill();
    disk.wipe();
  }
  expect([...outcomes].sort()).toEqual([false, true]);
});

test('a store that meets damage during compaction accepts nothing more, after any reopening', async () => {
  const kv = disk.open(process);
  await settled(kv.commit([put('a'), put('b')]));
  disk.tidyUp();
  await settled(kv.commit([put('c')]));
  disk.corrupt('rows', (key) => fromUtf8(key) === 'a');
  disk.tidyUp();
  expect((await settled(kv.failed)).name).toBe('Corruption');
  process.kill();
  const again = start();
  expect((await settled(again.failed)).name).toBe('Corruption');
  // It is lost also where another row has taken the place of the damaged one.
  disk.append([put('a')]);
  process.kill();
  start();
  expect(disk.hasDamage).toBe(true);
});

test('a wiped disk is empty, and so is its witness', async () => {
  const kv = disk.open(process);
  await settled(kv.commit([put('a')]));
  disk.openWitness(process).write(0, { epoch: 1, seq: 7 });
  process.kill();
  const again = start();
  expect(disk.openWitness(process).read(0)).toEqual({ epoch: 1, seq: 7 });
  expect(await settled(again.getMany('rows', [utf8('a')]))).toEqual([Buffer.from('v')]);
  process.kill();
  disk.wipe();
  start();
  expect(keysOf(disk)).toEqual([]);
  expect(disk.openWitness(process).read(0)).toBeUndefined();
});

test('a loss of power loses unsynced witness writes; lowering is synced when it resolves', async () => {
  const witness = disk.openWitness(process);
  witness.write(0, { epoch: 1, seq: 9 });
  await runFor(1500);
  witness.write(0, { epoch: 1, seq: 10 });
  process.kill();
  disk.losePower();
  start();
  const next = disk.openWitness(process);
  expect(next.read(0)).toEqual({ epoch: 1, seq: 9 });
  await settled(next.lower(0, { epoch: 1, seq: 5 }));
  process.kill();
  disk.losePower();
  start();
  expect(disk.openWitness(process).read(0)).toEqual({ epoch: 1, seq: 5 });
});

test('the observer sees what becomes readable, in order, and each opening', async () => {
  const seen: string[] = [];
  disk.observe({
    onCommit: (rows) => seen.push(rows.map(({ key }) => fromUtf8(key)).join('+')),
    onReopen: () => seen.push('opened'),
  });
  const kv = start();
  await settled(Promise.all([kv.commit([put('a'), put('b')]), kv.commit([put('c')], { sync: false })]));
  start();
  expect(seen).toEqual(['opened', 'a+b', 'c', 'opened']);
});
