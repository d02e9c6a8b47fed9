// What is read once for all who ask at about the same time.
import { expect, test } from 'vitest';
import { cacheReading } from './cache-reading.ts';

test('whoever asks while it is read, or within the time that it is kept, gets the same', async () => {
  let nowMs = 0;
  let count = 0;
  const read = cacheReading(async () => ++count, { cachedMs: 1000, nowMs: () => nowMs });
  expect(await Promise.all([read(), read(), read()])).toEqual([1, 1, 1]);
  nowMs = 999;
  expect(await read()).toBe(1);
  nowMs = 1000;
  expect(await Promise.all([read(), read()])).toEqual([2, 2]);
});

test('a failure is told to those who wait, and not kept', async () => {
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
