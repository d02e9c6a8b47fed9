// What is read once for all who ask at about the same time.
import { expect, test } from 'vitest';
import { cacheReading } from './cache-reading.ts';

test('callers during a read, and for a while after it, get the same result', async () => {
  let nowMs = 0;
  let count = 0;
  const read = cacheReading(async () => ++count, { cachedMs: 1000, nowMs: () => nowMs });
  expect(await Promise.all([read(), read(), read()])).toEqual([1, 1, 1]);
  nowMs = 999;
  expect(await read()).toBe(1);
  nowMs = 1000;
  expect(await Promise.all([read(), read()])).toEqual([2, 2]);
});

test('a failure is passed to the waiting callers, and not cached', async () => {
  let count = 0;
  const read = cacheReading(
    async () => {
      if (++count === 1) throw new Error('no');
      return count;
    },
    { cachedMs: 1000, nowMs: () => 0 },
  );
  const both = await Promise.allSettled([read(), read()]);
  expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(await read()).toBe(2);
});
