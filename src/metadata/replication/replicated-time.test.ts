import { beforeEach, expect, test } from 'vitest';
import { ReplicatedTime } from './replicated-time.ts';

const DAY = 24 * 3600_000;
const START_MS = Date.UTC(2026, 0, 1);

let wallMs: number;
let monotonicMs: number;
let isBelieved: boolean;
let noted: { jumpMs: number; timeMs: number }[];
let time: ReplicatedTime;

beforeEach(() => {
  [wallMs, monotonicMs, isBelieved, noted] = [START_MS, 0, true, []];
  const clock = { wallMs: () => wallMs, monotonicMs: () => monotonicMs, sleep: () => Promise.reject() };
  time = new ReplicatedTime({ clock, timeMs: wallMs, isClockBelieved: () => isBelieved });
});

const follow = () => time.followJumps((jumpMs, timeMs) => void noted.push({ jumpMs, timeMs }));

test('a believed clock is followed ahead, and never back', () => {
  follow();
  wallMs += 6 * DAY;
  expect(time.nowMs()).toBe(wallMs);
  wallMs -= DAY;
  expect(time.nowMs()).toBe(wallMs + DAY);
  expect(noted).toEqual([]);
});

test('a clock that is not believed is not followed', () => {
  follow();
  isBelieved = false;
  wallMs += 8 * DAY;
  monotonicMs += 5;
  expect(time.nowMs()).toBe(START_MS + 5);
});

test('a jump of more than 7 days is noted once, with the time that it leads to', () => {
  follow();
  wallMs += 8 * DAY;
  expect(time.nowMs()).toBe(wallMs);
  expect(time.nowMs()).toBe(wallMs);
  expect(noted).toEqual([{ jumpMs: 8 * DAY, timeMs: wallMs }]);
});

test('while nobody can note it, no such jump is followed', () => {
  wallMs += 8 * DAY;
  monotonicMs += 5;
  expect(time.nowMs()).toBe(START_MS + 5);
  follow();
  expect(time.nowMs()).toBe(wallMs);
  expect(noted).toHaveLength(1);
  time.end();
  wallMs += 8 * DAY;
  expect(time.nowMs()).toBe(wallMs - 8 * DAY);
});

test('the first time of a new shard is no jump', () => {
  const clock = { wallMs: () => wallMs, monotonicMs: () => monotonicMs, sleep: () => Promise.reject() };
  time = new ReplicatedTime({ clock, timeMs: 0, isClockBelieved: () => isBelieved });
  follow();
  expect(time.nowMs()).toBe(START_MS);
  expect(noted).toEqual([]);
});
