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
  expect(time.jumpMs).toBe(0);
});

test('a wall clock that is set forward while we run is not followed (A11)', () => {
  const clock = createManualClock(START);
  const time = createShardTime(clock, undefined);
  clock.shiftWall(10 * 365 * DAY);
  clock.advance(1000);
  expect(time.nowMs()).toBe(START + 1000);
  expect(time.gapMs()).toBe(10 * 365 * DAY);
  expect(createShardTime(clock, START + 1000).nowMs()).toBe(START + 1000 + 10 * 365 * DAY);
});

test('a wall clock that is set back is not followed either', () => {
  const clock = createManualClock(START);
  const time = createShardTime(clock, undefined);
  clock.shiftWall(-HOUR);
  clock.advance(1000);
  expect(time.nowMs()).toBe(START + 1000);
});

test('small deviations are approached slowly, without a step', () => {
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

test('after a restart it is never before the stored time, and goes on from there', () => {
  const clock = createManualClock(START);
  const time = createShardTime(clock, START + HOUR);
  expect(time.nowMs()).toBe(START + HOUR);
  clock.advance(500);
  expect(time.nowMs()).toBe(START + HOUR + 500);
});

test('a jump at the restart is told when it is above 7 days', () => {
  const clock = createManualClock(START + 7 * DAY);
  expect(createShardTime(clock, START).jumpMs).toBe(0);
  clock.shiftWall(1);
  expect(createShardTime(clock, START).jumpMs).toBe(7 * DAY + 1);
});

test('never decreases, never outruns the monotonic clock by more than 5 %, whatever the wall clock does', () => {
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
