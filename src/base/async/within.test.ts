import { expect, test } from 'vitest';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import { within } from './within.ts';

test('returns the outcome of work that ends in time', async () => {
  const clock = createManualClock(0);
  expect(await within(Promise.resolve(7), 1000, clock)).toBe(7);
  await expect(within(Promise.reject(new Error('no')), 1000, clock)).rejects.toThrow('no');
});

test('leaves work that does not', async () => {
  const clock = createManualClock(0);
  const work = Promise.withResolvers<number>();
  const waited = within(work.promise, 1000, clock);
  clock.advance(1000);
  expect(await waited).toBeUndefined();
  work.reject(new Error('heard by nobody'));
});
