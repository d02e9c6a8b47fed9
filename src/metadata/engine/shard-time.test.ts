import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import { createShardTime } from './shard-time.ts';

const START = Date.parse('2024-01-01');
const HOUR = 3_600_000;
const DAY = 24 * HOUR;

test('follows wall and monotonic clock while they agree', () => {
  const clock = createManualClock(START);
  const time = createShardTime(clock, undefined);
  expect(time.nowMs()).toBe(START);
  clock.advance(1234);
  expect(time.nowMs()).toBe(START + 1234);
  expect(time.stepMs).toBe(0);
});

test('does not follow a wall clock that is set forward while it runs (A11)', () => {
  const clock = createManualClock(START);
  const time = createShardTime(clock, undefined);
  clock.shiftWall(10 * 365 * DAY);
  clock.advance(1000);
  expect(time.nowMs()).toBe(START + 1000);
  expect(time.gapMs()).toBe(10 * 365 * DAY);
  expect(createShardTime(clock, START + 1000).nowMs()).toBe(START + 1000 + 10 * 365 * DAY);
});

test('does not follow a wall clock that is set back', () => {
  const clock = createManualClock(START);
  const time = createShardTime(clock, undefined);
  clock.shiftWall(-HOUR);
  clock.advance(1000);
  expect(time.nowMs()).toBe(START + 1000);
});

test('approaches small deviations slowly, without a step', () => {
  const clock = createManualClock(START);
  const time = createShardTime(clock, undefined);
  clock.shiftWall(1000);
  expect(time.nowMs()).toBe(START);
  clock.advance(10_000);
  expect(time.nowMs()).toBe(START + 10_500);
  clock.advance(60_000);
  expect(time.nowMs()).toBe(clock.wallMs());
  clock.shiftWall(-1000);
  clock.advance(10_000);
  expect(time.nowMs()).toBe(clock.wallMs() + 500);
});

test('is never before the stored time after a restart, and continues from there', () => {
  const clock = createManualClock(START);
  const time = createShardTime(clock, START + HOUR);
  expect(time.nowMs()).toBe(START + HOUR);
  clock.advance(500);
  expect(time.nowMs()).toBe(START + HOUR + 500);
});

test('reports by how much it has followed the clock at the restart', () => {
  const clock = createManualClock(START + 7 * DAY);
  expect(createShardTime(clock, START).stepMs).toBe(7 * DAY);
  expect(createShardTime(clock, START + 8 * DAY).stepMs).toBe(0);
});

test('never decreases, and never runs more than 5 % faster than the monotonic clock', () => {
  const steps = fc.array(
    fc.record({ pass: fc.nat(20_000), shift: fc.integer({ min: -30_000, max: 30_000 }) }),
  );
  fc.assert(
    fc.property(steps, (all) => {
      const clock = createManualClock(START);
      const time = createShardTime(clock, START - 5000);
      let lastMs = time.nowMs();
      for (const { pass, shift } of all) {
        clock.shiftWall(shift);
        clock.advance(pass);
        const nowMs = time.nowMs();
        expect(nowMs).toBeGreaterThanOrEqual(lastMs);
        expect(nowMs - lastMs).toBeLessThanOrEqual(pass * 1.05 + 1);
        lastMs = nowMs;
      }
    }),
  );
});
