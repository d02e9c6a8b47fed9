import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import { DriveHangs } from '../../base/drive-hangs.ts';
import { watchForHang } from './hang-watch.ts';

const AFTER_MS = 60_000;
const SLICES = 20;

/** A watch of what `work.of` is at each look, and its outcome so far. */
function watched() {
  const clock = createManualClock(0);
  const ending = new AbortController();
  const work: { of: object | undefined; isHeldUp: boolean } = { of: undefined, isHeldUp: false };
  const turns: { next?: Promise<void> } = {};
  const seen: { outcome?: DriveHangs | undefined } = {};
  const watch = watchForHang(
    { clock, afterMs: AFTER_MS },
    {
      underWay: () => work.of,
      isHeldUp: () => work.isHeldUp,
      turn: async () => turns.next,
      signal: ending.signal,
    },
  );
  void watch.then((outcome) => {
    seen.outcome = outcome;
  });
  const passSlices = async (count: number) => {
    for (let at = 0; at < count; at++) {
      clock.advance(AFTER_MS / SLICES);
      await setImmediate();
    }
  };
  return { clock, ending, work, turns, seen, passSlices };
}

test('work that is under way for the limit hangs, and not before', async () => {
  const { work, seen, passSlices } = watched();
  work.of = {};
  await passSlices(SLICES);
  expect(seen).toEqual({});
  await passSlices(1);
  expect(seen.outcome).toBeInstanceOf(DriveHangs);
  expect(seen.outcome?.message).toBe('the drive has not answered a write for 60 s');
});

test('a slow drive does not hang: each piece of work has its own time', async () => {
  const { work, seen, passSlices } = watched();
  for (let at = 0; at < 3; at++) {
    work.of = {};
    await passSlices(SLICES);
  }
  expect(seen).toEqual({});
});

test('time without work is not counted', async () => {
  const { work, seen, passSlices } = watched();
  work.of = {};
  await passSlices(SLICES);
  work.of = undefined;
  await passSlices(SLICES);
  work.of = {};
  await passSlices(SLICES);
  expect(seen).toEqual({});
});

test('a process that stood still does not blame its drive', async () => {
  const { clock, work, seen, passSlices } = watched();
  work.of = {};
  await passSlices(1);
  clock.advance(10 * AFTER_MS);
  await setImmediate();
  await passSlices(1);
  expect(seen).toEqual({});
});

test('work that waits for other work of the drive has ten times as long', async () => {
  const { work, seen, passSlices } = watched();
  Object.assign(work, { of: {}, isHeldUp: true });
  await passSlices(10 * SLICES);
  expect(seen).toEqual({});
  await passSlices(3);
  expect(seen.outcome).toBeInstanceOf(DriveHangs);
});

test('time in which work could not begin is not counted', async () => {
  const { work, turns, seen, passSlices } = watched();
  const turn = Promise.withResolvers<void>();
  Object.assign(turns, { next: turn.promise });
  work.of = {};
  await passSlices(10 * SLICES);
  turn.resolve();
  await passSlices(SLICES - 1);
  expect(seen).toEqual({});
});

test('it ends when it is stopped', async () => {
  const { ending, seen } = watched();
  ending.abort();
  await setImmediate();
  expect(seen).toEqual({ outcome: undefined });
});
