import { describe, expect, test } from 'vitest';
import { createSeededRandom } from '../../tests/support/simulated.ts';
import { LIMITS } from './limits.ts';
import { FOLD_READ, planFold } from './plan-fold.ts';

const KiB = 1024;
const MiB = 1024 * KiB;
const times = (count: number, size: number) => Array.from({ length: count }, () => size);

test('15 pieces stay, 16 become one', () => {
  expect(planFold(times(15, KiB))).toBeUndefined();
  expect(planFold(times(16, KiB))).toEqual({ from: 0, to: 16 });
  expect(planFold([])).toBeUndefined();
});

test('pieces of 1 MiB are left alone, and part their neighbours', () => {
  expect(planFold(times(100, MiB))).toBeUndefined();
  expect(planFold([...times(15, KiB), MiB, ...times(15, KiB)])).toBeUndefined();
  expect(planFold([5 * MiB, ...times(16, KiB)])).toEqual({ from: 1, to: 17 });
});

test('the smallest pieces go first, wherever they lie', () => {
  expect(planFold([...times(10, 60 * KiB), ...times(16, 100)])).toEqual({ from: 10, to: 26 });
});

test('what is folded is bounded, in bytes and in pieces', () => {
  expect(planFold(times(1000, 10))).toEqual({ from: 0, to: LIMITS.foldPiecesMax });
  const run = planFold(times(16, 900 * KiB));
  expect(run && (run.to - run.from) * 900 * KiB).toBeLessThanOrEqual(LIMITS.foldedBytesMax);
});

test('a piece is not written again for some bytes that came behind it', () => {
  expect(planFold([512 * KiB, ...times(15, 1)])).toBeUndefined();
});

/** Appends, each followed by as many folds as are wanted. */
function appendAll(sizes: readonly number[]): { pieces: number[]; most: number; writtenBytes: number } {
  const pieces: number[] = [];
  let [most, writtenBytes] = [0, 0];
  for (const size of sizes) {
    pieces.push(size);
    for (let run = planFold(pieces); run !== undefined; run = planFold(pieces)) {
      const folded = pieces.slice(run.from, run.to).reduce((sum, one) => sum + one, 0);
      writtenBytes += folded;
      pieces.splice(run.from, run.to - run.from, folded);
    }
    most = Math.max(most, pieces.length);
  }
  return { pieces, most, writtenBytes };
}

describe('as an object is appended to', () => {
  test('1023 pieces of 1 KiB are few at any time, and written again little more than twice', () => {
    const { pieces, most, writtenBytes } = appendAll(times(1023, KiB));
    expect(pieces.reduce((sum, one) => sum + one, 0)).toBe(1023 * KiB);
    expect(most).toBeLessThanOrEqual(48);
    expect(pieces.length).toBeLessThanOrEqual(45);
    expect(writtenBytes).toBeLessThanOrEqual(2.2 * 1023 * KiB);
  });

  test('pieces of any sizes: they add up, and no byte is written often', () => {
    const random = createSeededRandom(7);
    for (let round = 0; round < 20; round++) {
      const sizes = times(1023, 0).map(() => 1 + Math.floor(2 ** ((20 * (random.bytes(1)[0] ?? 0)) / 256)));
      const { pieces, writtenBytes } = appendAll(sizes);
      const total = sizes.reduce((sum, one) => sum + one, 0);
      expect(pieces.reduce((sum, one) => sum + one, 0)).toBe(total);
      // Each time it comes into a piece of four times the size at least, and from 1 MiB on it stays.
      expect(writtenBytes / total).toBeLessThanOrEqual(Math.log2(MiB) / Math.log2(LIMITS.foldGrowthMin));
    }
  });
});

test('where it is read, fewer pieces are many, and it may grow by less', () => {
  expect(planFold(times(7, KiB), FOLD_READ)).toBeUndefined();
  expect(planFold(times(8, KiB), FOLD_READ)).toEqual({ from: 0, to: 8 });
  const { pieces } = appendAll(times(1024, KiB));
  for (let run = planFold(pieces, FOLD_READ); run !== undefined; run = planFold(pieces, FOLD_READ)) {
    const folded = pieces.slice(run.from, run.to).reduce((sum, one) => sum + one, 0);
    pieces.splice(run.from, run.to - run.from, folded);
  }
  expect(pieces).toEqual([1024 * KiB]);
});
