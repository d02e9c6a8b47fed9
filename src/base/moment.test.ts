import { expect, test } from 'vitest';
import { passedMs } from './moment.ts';

const FROM = { monotonicMs: 1000, wallMs: 5_000_000 };
const after = (monotonicMs: number, wallMs: number) => ({
  monotonicMs: FROM.monotonicMs + monotonicMs,
  wallMs: FROM.wallMs + wallMs,
});

test.each([
  ['both clocks run', 300, 290, 300],
  ['the machine was stopped', 10, 5000, 5000],
  ['the wall clock was set forward', 10, 60_000, 60_000],
  ['the wall clock was set right', 3000, 2900, 3000],
  ['clocks drift apart', 10_000, 9050, 10_000],
  ['the wall clock was set back', 300, -60_000, Number.POSITIVE_INFINITY],
  ['the machine was stopped, and the wall clock set back before', 300, -55_000, Number.POSITIVE_INFINITY],
  ['no time', 0, 0, 0],
])('%s', (_, monotonicMs, wallMs, expected) => {
  expect(passedMs(FROM, after(monotonicMs, wallMs))).toBe(expected);
});
