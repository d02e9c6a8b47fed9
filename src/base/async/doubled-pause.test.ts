import { expect, test } from 'vitest';
import { doubledPause } from './doubled-pause.ts';

test('doubles from the shortest to the longest pause', () => {
  const bounds = { minMs: 1000, maxMs: 5000 };
  const pauses = [doubledPause(undefined, bounds)];
  for (let at = 0; at < 4; at++) pauses.push(doubledPause(pauses.at(-1), bounds));
  expect(pauses).toEqual([1000, 2000, 4000, 5000, 5000]);
  expect(doubledPause(0, bounds)).toBe(1000);
});
