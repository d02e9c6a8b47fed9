import { expect, test } from 'vitest';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import { LIMITS } from '../../types/limits.ts';
import { createDiskBackoffs, type DiskBackoffs, type DiskEffort } from './disk-backoffs.ts';

const clock = createManualClock(0);

/** The remaining pause, in ms. */
function pauseOf(backoffs: DiskBackoffs, effort: DiskEffort): number {
  for (let ms = 0; ; ms += 500) {
    if (!backoffs.isBackedOff('d', effort)) return ms;
    clock.advance(500);
  }
}

test('a disk that does not answer is left alone for longer each time, up to a bound', () => {
  const backoffs = createDiskBackoffs(clock);
  const pauses = Array.from({ length: 8 }, () => {
    backoffs.failed('d', 'ask');
    return pauseOf(backoffs, 'take');
  });
  expect(pauses).toEqual([1, 2, 4, 8, 16, 32, 60, 60].map((seconds) => seconds * 1000));
  expect(pauses.at(-1)).toBe(LIMITS.diskRestMaxMs);
  expect(backoffs.returnsOf('d')).toBe(0);
  backoffs.worked('d', 'ask');
  expect(backoffs.returnsOf('d')).toBe(1);
  backoffs.failed('d', 'ask');
  expect(pauseOf(backoffs, 'ask')).toBe(LIMITS.diskRestMinMs);
});

test('a disk is silent from a request without an answer until it answers', () => {
  const backoffs = createDiskBackoffs(clock);
  backoffs.wasFull('c');
  backoffs.failed('d', 'ask');
  pauseOf(backoffs, 'ask');
  backoffs.returned('d');
  expect(backoffs.silent()).toEqual(['d']);
  backoffs.worked('d', 'ask');
  expect(backoffs.silent()).toEqual([]);
});

test('a disk that takes no copies is still asked for its state; a full one is retried sooner', () => {
  const backoffs = createDiskBackoffs(clock);
  const pauses = Array.from({ length: 6 }, () => {
    backoffs.wasFull('d');
    expect(backoffs.isBackedOff('d', 'ask')).toBe(false);
    return pauseOf(backoffs, 'take');
  });
  expect(pauses).toEqual([1, 2, 4, 8, 10, 10].map((seconds) => seconds * 1000));
  expect(pauses.at(-1)).toBe(LIMITS.diskFullRestMaxMs);
  backoffs.failed('d', 'take');
  backoffs.worked('d', 'ask');
  expect(backoffs.isBackedOff('d', 'take')).toBe(true);
  backoffs.worked('d', 'take');
  expect(backoffs.isBackedOff('d', 'take')).toBe(false);
});

test('a disk whose node returns is tried at once, and has returned when it answers', () => {
  const backoffs = createDiskBackoffs(clock);
  backoffs.returned('d');
  expect(backoffs.isBackedOff('d', 'take')).toBe(false);
  for (let count = 0; count < 5; count++) backoffs.failed('d', 'ask');
  backoffs.wasFull('d');
  backoffs.returned('d');
  expect([backoffs.isBackedOff('d', 'ask'), backoffs.isBackedOff('d', 'take')]).toEqual([false, false]);
  expect(backoffs.returnsOf('d')).toBe(0);
  backoffs.failed('d', 'ask');
  expect(pauseOf(backoffs, 'ask')).toBe(LIMITS.diskRestMinMs);
  backoffs.worked('d', 'ask');
  expect(backoffs.returnsOf('d')).toBe(1);
});
