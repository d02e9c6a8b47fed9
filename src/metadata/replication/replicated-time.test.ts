import { beforeEach, expect, test } from 'vitest';
import { ClockSteps } from '../engine/clock-steps.ts';
import { ReplicatedTime } from './replicated-time.ts';

const DAY = 24 * 3600_000;
const START_MS = Date.UTC(2026, 0, 1);

let wallMs: number;
let monotonicMs: number;
let isBelieved: boolean;
let noted: { stepMs: number; timeMs: number }[];
let time: ReplicatedTime;

beforeEach(() => {
  [wallMs, monotonicMs, isBelieved, noted] = [START_MS, 0, true, []];
  const clock = { wallMs: () => wallMs, monotonicMs: () => monotonicMs, sleep: () => Promise.reject() };
  time = new ReplicatedTime({
    clock,
    timeMs: wallMs,
    isClockBelieved: () => isBelieved,
    steps: new ClockSteps(),
  });
});

const follow = () => time.followSteps((stepMs, timeMs) => void noted.push({ stepMs, timeMs }));

test('a believed clock is followed ahead, and never back', () => {
  follow();
  wallMs += 6 * DAY;
  expect(time.nowMs()).toBe(wallMs);
  wallMs -= DAY;
  expect(time.nowMs()).toBe(wallMs + DAY);
  expect(noted).toEqual([{ stepMs: 6 * DAY, timeMs: START_MS + 6 * DAY }]);
});

test('while a believed clock is behind, time goes on at its own pace', () => {
  follow();
  wallMs -= DAY;
  for (let second = 1; second <= 3600; second++) {
    wallMs += 1000;
    monotonicMs += 1000;
    expect(time.nowMs()).toBe(START_MS + second * 1000);
  }
  expect(noted).toEqual([]);
});

test('a clock that is some seconds behind is approached slowly', () => {
  follow();
  wallMs += 10_000 - 1000;
  monotonicMs += 10_000;
  expect(time.nowMs()).toBe(START_MS + 9500);
  wallMs += 60_000;
  monotonicMs += 60_000;
  expect(time.nowMs()).toBe(wallMs);
  expect(noted).toEqual([]);
});

test('a clock that is not believed is not followed', () => {
  follow();
  isBelieved = false;
  wallMs += 8 * DAY;
  monotonicMs += 5;
  expect(time.nowMs()).toBe(START_MS + 5);
});

test('a step is noted once, with the time that it leads to', () => {
  follow();
  wallMs += 8 * DAY;
  expect(time.nowMs()).toBe(wallMs);
  expect(time.nowMs()).toBe(wallMs);
  expect(noted).toEqual([{ stepMs: 8 * DAY, timeMs: wallMs }]);
});

test('while nobody can note it, no step is followed but a small one', () => {
  wallMs += 50_000;
  expect(time.nowMs()).toBe(START_MS + 50_000);
  wallMs += 6 * DAY - 50_000;
  monotonicMs += 5;
  expect(time.nowMs()).toBe(START_MS + 50_005);
  follow();
  expect(time.nowMs()).toBe(wallMs);
  expect(noted).toHaveLength(1);
  time.end();
  wallMs += 8 * DAY;
  expect(time.nowMs()).toBe(wallMs - 8 * DAY);
});

test('the first time of a new shard is no jump', () => {
  const clock = { wallMs: () => wallMs, monotonicMs: () => monotonicMs, sleep: () => Promise.reject() };
  time = new ReplicatedTime({ clock, timeMs: 0, isClockBelieved: () => isBelieved, steps: new ClockSteps() });
  follow();
  expect(time.nowMs()).toBe(START_MS);
  expect(noted).toEqual([]);
});
