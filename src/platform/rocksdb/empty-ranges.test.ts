import { expect, test } from 'vitest';
import { EmptyRanges } from './empty-ranges.ts';

const range = (gte: string, lt: string, column = 'rows') => ({
  column,
  gte: Buffer.from(gte),
  lt: Buffer.from(lt),
  limit: 1,
});
const knows = (ranges: EmptyRanges, ...bounds: Parameters<typeof range>) =>
  ranges.look(range(...bounds))?.isEmpty;

test('a range that was empty is known to be, by its column and its bounds', () => {
  const ranges = new EmptyRanges();
  expect(knows(ranges, 'a', 'b')).toBe(false);
  ranges.look(range('a', 'b'))?.wasEmpty();
  expect(knows(ranges, 'a', 'b')).toBe(true);
  expect([knows(ranges, 'a', 'c'), knows(ranges, 'a', 'b', 'logs'), knows(ranges, 'a b', '')]).toEqual([
    false,
    false,
    false,
  ]);
});

test('nothing is known while the store is written to, nor behind that, whether it succeeds or fails', async () => {
  const ranges = new EmptyRanges();
  for (const end of ['resolve', 'reject'] as const) {
    ranges.look(range('a', 'b'))?.wasEmpty();
    const written = Promise.withResolvers<void>();
    const result = ranges.during(written.promise);
    expect(ranges.look(range('a', 'b'))).toBeUndefined();
    written[end]();
    await result.catch(() => {});
    expect(knows(ranges, 'a', 'b')).toBe(false);
  }
});

test('a look that a write has overtaken says nothing', async () => {
  const ranges = new EmptyRanges();
  const look = ranges.look(range('a', 'b'));
  await ranges.during(Promise.resolve());
  look?.wasEmpty();
  expect(knows(ranges, 'a', 'b')).toBe(false);
});

test('ranges beyond what is kept are forgotten', () => {
  const ranges = new EmptyRanges();
  for (let at = 0; at <= 2000; at++) ranges.look(range(`${at}`, 'x'))?.wasEmpty();
  expect([knows(ranges, '0', 'x'), knows(ranges, '2000', 'x')]).toEqual([false, true]);
});
