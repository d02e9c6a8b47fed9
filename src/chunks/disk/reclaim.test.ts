// When the reclaim worker compacts a store. That the room comes back is tested in tests/faults/reclaim.test.ts.
import { beforeEach, expect, test } from 'vitest';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import type { Worker } from '../../ports/worker.ts';
import { createReclaim } from './reclaim.ts';

const MiB = 1024 * 1024;
const MINUTE = 60_000;

let clock: ReturnType<typeof createManualClock>;
let pendingBytes: number;
let freeBytes: number;
let turnCount: number;
let turnedAtMs: number[];
let giveBackCount: number;
const events: string[] = [];
let worker: Worker;

beforeEach(() => {
  clock = createManualClock(1e12);
  pendingBytes = 0;
  freeBytes = 1e12;
  turnCount = 0;
  turnedAtMs = [];
  giveBackCount = 0;
  events.length = 0;
  const note = (_fields: object, event: string) => void events.push(event);
  worker = createReclaim({
    name: 'reclaim',
    kv: {
      async turnOver() {
        turnCount++;
        turnedAtMs.push(clock.monotonicMs());
        return true;
      },
      giveBack: () => void giveBackCount++,
    },
    pendingBytes: async () => pendingBytes,
    reserve: { measure: async () => ({ freeBytes, totalBytes: 2e12 }) },
    clock,
    log: { debug: note, info: note, warn: note, error: note },
    afterBytes: 64 * MiB,
    delayMs: 5 * MINUTE,
  });
});

/** Runs the worker as the runner does, and returns the pause that it asked for. */
async function unit(): Promise<number> {
  const outcome = await worker.work(new AbortController().signal);
  if (outcome.state !== 'idle') throw new Error('one unit is all there is to do');
  clock.advance(outcome.idleMs);
  return outcome.idleMs;
}

test('acts at once when enough bytes are pending, and logs it', async () => {
  await unit();
  expect(turnCount).toBe(0);
  pendingBytes = 64 * MiB;
  await unit();
  expect(turnCount).toBe(1);
  expect(events).toEqual(['reclaim']);
});

test('waits with half as much, and ignores less', async () => {
  pendingBytes = 31 * MiB;
  for (let waitedMs = 0; waitedMs < 10 * MINUTE; waitedMs += await unit());
  expect(turnCount).toBe(0);
  pendingBytes = 32 * MiB;
  for (let waitedMs = 0; waitedMs < 5 * MINUTE; waitedMs += await unit()) expect(turnCount).toBe(0);
  await unit();
  expect(turnCount).toBe(1);
});

test('does not add up bytes that are freed without it', async () => {
  for (let round = 0; round < 3; round++) {
    pendingBytes = 40 * MiB;
    for (let waitedMs = 0; waitedMs < 3 * MINUTE; waitedMs += await unit());
    pendingBytes = 0;
    await unit();
  }
  expect(turnCount).toBe(0);
});

test('doubles its pause while nothing comes back, up to a bound, and shortens it when something does', async () => {
  pendingBytes = 100 * MiB;
  const turns = async (count: number) => {
    while (turnCount < count) await unit();
    return turnedAtMs.slice(1).map((atMs, at) => atMs - (turnedAtMs[at] ?? 0));
  };
  expect(await turns(6)).toEqual([15_000, 30_000, 60_000, 120_000, 120_000]);
  pendingBytes = 90 * MiB;
  expect((await turns(8)).slice(-2)).toEqual([120_000, 15_000]);
});

test('does not pause longer while more is deleted than comes back, unless it is little', async () => {
  pendingBytes = 100 * MiB;
  const turn = async (moreBytes: number) => {
    const before = turnCount;
    while (turnCount === before) await unit();
    pendingBytes += moreBytes;
  };
  for (let count = 0; count < 5; count++) await turn(64 * MiB);
  expect(turnedAtMs.slice(1).map((atMs, at) => atMs - (turnedAtMs[at] ?? 0))).toEqual(Array(4).fill(15_000));
  await turn(63 * MiB);
  await turn(0);
  await turn(0);
  expect(clock.monotonicMs() - (turnedAtMs.at(-3) ?? 0)).toBeGreaterThan(45_000);
});

test('gives back what takes no work every few seconds, also while it pauses', async () => {
  pendingBytes = 100 * MiB;
  let waitedMs = 0;
  for (; waitedMs < MINUTE; waitedMs += await unit());
  expect(turnCount).toBe(3);
  expect(giveBackCount).toBe(waitedMs / 5000);
});

test('leaves a disk alone that has no room for the filler', async () => {
  pendingBytes = 500 * MiB;
  freeBytes = 100 * MiB;
  await unit();
  expect(turnCount).toBe(0);
  expect(events).toEqual(['reclaim-without-room']);
  freeBytes = 1e9;
  for (let waitedMs = 0; waitedMs <= 15_000; waitedMs += await unit());
  expect(turnCount).toBe(1);
});
