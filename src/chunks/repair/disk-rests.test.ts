import { expect, test } from 'vitest';
import { createManualClock } from '../../../tests/support/simulated.ts';
import { LIMITS } from '../../types/limits.ts';
import { createDiskRests, type DiskEffort, type DiskRests } from './disk-rests.ts';

const clock = createManualClock(0);

/** How long it rests from now on, ms. */
function restOf(rests: DiskRests, effort: DiskEffort): number {
  for (let ms = 0; ; ms += 500) {
    if (!rests.isResting('d', effort)) return ms;
    clock.advance(500);
  }
}

test('one that does not answer rests for longer each time, up to a bound, until it answers', () => {
  const rests = createDiskRests(clock);
  const pauses = Array.from({ length: 8 }, () => {
    rests.failed('d', 'ask');
    return restOf(rests, 'take');
  });
  expect(pauses).toEqual([1, 2, 4, 8, 16, 32, 60, 60].map((seconds) => seconds * 1000));
  expect(pauses.at(-1)).toBe(LIMITS.diskRestMaxMs);
  expect(rests.returnsOf('d')).toBe(0);
  rests.worked('d', 'ask');
  expect(rests.returnsOf('d')).toBe(1);
  rests.failed('d', 'ask');
  expect(restOf(rests, 'ask')).toBe(LIMITS.diskRestMinMs);
});

test('one is silent from when it did not answer to when it does, whether it rests or not', () => {
  const rests = createDiskRests(clock);
  rests.wasFull('c');
  rests.failed('d', 'ask');
  restOf(rests, 'ask');
  rests.returned('d');
  expect(rests.silent()).toEqual(['d']);
  rests.worked('d', 'ask');
  expect(rests.silent()).toEqual([]);
});

test('one that takes no copy is asked for what it has; a full one is tried again sooner', () => {
  const rests = createDiskRests(clock);
  const pauses = Array.from({ length: 6 }, () => {
    rests.wasFull('d');
    expect(rests.isResting('d', 'ask')).toBe(false);
    return restOf(rests, 'take');
  });
  expect(pauses).toEqual([1, 2, 4, 8, 10, 10].map((seconds) => seconds * 1000));
  expect(pauses.at(-1)).toBe(LIMITS.diskFullRestMaxMs);
  rests.failed('d', 'take');
  rests.worked('d', 'ask');
  expect(rests.isResting('d', 'take')).toBe(true);
  rests.worked('d', 'take');
  expect(rests.isResting('d', 'take')).toBe(false);
});

test('one whose node is there again is tried at once, and has returned once it answers', () => {
  const rests = createDiskRests(clock);
  rests.returned('d');
  expect(rests.isResting('d', 'take')).toBe(false);
  for (let count = 0; count < 5; count++) rests.failed('d', 'ask');
  rests.wasFull('d');
  rests.returned('d');
  expect([rests.isResting('d', 'ask'), rests.isResting('d', 'take')]).toEqual([false, false]);
  expect(rests.returnsOf('d')).toBe(0);
  rests.failed('d', 'ask');
  expect(restOf(rests, 'ask')).toBe(LIMITS.diskRestMinMs);
  rests.worked('d', 'ask');
  expect(rests.returnsOf('d')).toBe(1);
});
