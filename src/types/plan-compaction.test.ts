import { describe, expect, test } from 'vitest';
import { createSeededRandom } from '../../tests/support/run/simulated.ts';
import { LIMITS } from './limits.ts';
import type { BlobId, LinkId } from './names.ts';
import {
  COMPACT_READ,
  type CompactionPiece,
  type CompactionRule,
  piecesOf,
  planCompaction,
} from './plan-compaction.ts';
import type { ManifestBody } from './version.ts';

const KiB = 1024;
const MiB = 1024 * KiB;
const times = (count: number, size: number) => Array.from({ length: count }, () => size);
const plan = (sizes: readonly number[], rule?: CompactionRule) =>
  planCompaction(
    sizes.map((sizeBytes) => ({ sizeBytes })),
    rule,
  );

test('15 pieces stay, 16 become one', () => {
  expect(plan(times(15, KiB))).toBeUndefined();
  expect(plan(times(16, KiB))).toEqual({ from: 0, to: 16 });
  expect(plan([])).toBeUndefined();
});

test('pieces of 1 MiB are left alone, and separate their neighbours', () => {
  expect(plan(times(100, MiB))).toBeUndefined();
  expect(plan([...times(15, KiB), MiB, ...times(15, KiB)])).toBeUndefined();
  expect(plan([5 * MiB, ...times(16, KiB)])).toEqual({ from: 1, to: 17 });
});

test('the smallest pieces go first, wherever they are', () => {
  expect(plan([...times(10, 60 * KiB), ...times(16, 100)])).toEqual({ from: 10, to: 26 });
});

test('a compaction is bounded, in bytes and in pieces', () => {
  expect(plan(times(1000, 10))).toEqual({ from: 0, to: LIMITS.compactPiecesMax });
  const run = plan(times(16, 900 * KiB));
  expect(run && (run.to - run.from) * 900 * KiB).toBeLessThanOrEqual(LIMITS.compactedBytesMax);
});

test('a piece is not rewritten for a few bytes behind it', () => {
  expect(plan([512 * KiB, ...times(15, 1)])).toBeUndefined();
});

/** Appends, each followed by all wanted compactions. */
function appendAll(sizes: readonly number[]): { pieces: number[]; most: number; writtenBytes: number } {
  const pieces: number[] = [];
  let [most, writtenBytes] = [0, 0];
  for (const size of sizes) {
    pieces.push(size);
    for (let run = plan(pieces); run !== undefined; run = plan(pieces)) {
      const compacted = pieces.slice(run.from, run.to).reduce((sum, one) => sum + one, 0);
      writtenBytes += compacted;
      pieces.splice(run.from, run.to - run.from, compacted);
    }
    most = Math.max(most, pieces.length);
  }
  return { pieces, most, writtenBytes };
}

describe('while an object is appended to', () => {
  test('1023 pieces of 1 KiB are always few, and rewritten little more than twice', () => {
    const { pieces, most, writtenBytes } = appendAll(times(1023, KiB));
    expect(pieces.reduce((sum, one) => sum + one, 0)).toBe(1023 * KiB);
    expect(most).toBeLessThanOrEqual(48);
    expect(pieces.length).toBeLessThanOrEqual(45);
    expect(writtenBytes).toBeLessThanOrEqual(2.2 * 1023 * KiB);
  });

  test('pieces of any sizes add up, and no byte is written often', () => {
    const random = createSeededRandom(7);
    for (let round = 0; round < 20; round++) {
      const sizes = times(1023, 0).map(() => 1 + Math.floor(2 ** ((20 * (random.bytes(1)[0] ?? 0)) / 256)));
      const { pieces, writtenBytes } = appendAll(sizes);
      const total = sizes.reduce((sum, one) => sum + one, 0);
      expect(pieces.reduce((sum, one) => sum + one, 0)).toBe(total);
      // Each time it comes into a piece of four times the size at least, and from 1 MiB on it stays.
      expect(writtenBytes / total).toBeLessThanOrEqual(Math.log2(MiB) / Math.log2(LIMITS.compactGrowthMin));
    }
  });
});

test('after a read fewer pieces are compacted, and with less growth', () => {
  expect(plan(times(7, KiB), COMPACT_READ)).toBeUndefined();
  expect(plan(times(8, KiB), COMPACT_READ)).toEqual({ from: 0, to: 8 });
  const { pieces } = appendAll(times(1024, KiB));
  for (let run = plan(pieces, COMPACT_READ); run !== undefined; run = plan(pieces, COMPACT_READ)) {
    const compacted = pieces.slice(run.from, run.to).reduce((sum, one) => sum + one, 0);
    pieces.splice(run.from, run.to - run.from, compacted);
  }
  expect(pieces).toEqual([1024 * KiB]);
});

describe('a growing blob', () => {
  const grown = (pieceCount: number): CompactionPiece => ({ sizeBytes: pieceCount * KiB, pieceCount });
  const FULL = LIMITS.grownPiecesMax;

  test('is left alone until it is full, and does not separate its neighbours', () => {
    expect(planCompaction([grown(FULL - 1)])).toBeUndefined();
    expect(planCompaction([{ sizeBytes: KiB }, grown(FULL)])).toEqual({ from: 1, to: 2 });
    const others = Array.from({ length: 15 }, () => ({ sizeBytes: KiB }));
    expect(planCompaction([...others, grown(3)])).toBeUndefined();
    expect(planCompaction([...others, grown(3), { sizeBytes: KiB }])).toEqual({ from: 0, to: 17 });
  });

  test('with something behind it is compacted by itself if it has many pieces', () => {
    expect(planCompaction([grown(16), { sizeBytes: MiB }])).toEqual({ from: 0, to: 1 });
    expect(planCompaction([grown(15), { sizeBytes: MiB }])).toBeUndefined();
  });

  test('is compacted after a read, though it may grow', () => {
    expect(planCompaction([grown(8)], COMPACT_READ)).toEqual({ from: 0, to: 1 });
    expect(planCompaction([grown(7)], COMPACT_READ)).toBeUndefined();
  });
});

test('data from before the appends stays, except for one piece that a PUT began with', () => {
  const body = (sizes: readonly number[]): ManifestBody => ({
    uses: sizes.map((sizeBytes, at) => ({
      blobId: `${at}` as BlobId,
      linkId: `${at}` as LinkId,
      wrappedDataKey: new Uint8Array(0),
      sizeBytes,
      chunkSizeBytes: sizeBytes,
      storage: 'inline' as const,
    })),
    segments: sizes.map((sizeBytes, use) => ({ use, offsetBytes: 0, sizeBytes })),
  });
  const planOf = (sizes: readonly number[], appendCount?: number) =>
    planCompaction(piecesOf(body(sizes), appendCount));
  const composed = times(32, KiB);
  expect(planOf(composed)).toBeUndefined();
  expect(planOf([...composed, KiB], 1)).toBeUndefined();
  expect(planOf([...composed, ...times(14, KiB)], 14)).toBeUndefined();
  expect(planOf([...composed, ...times(15, KiB)], 15)).toEqual({ from: 31, to: 47 });
  expect(planOf(times(16, KiB), 15)).toEqual({ from: 0, to: 16 });
});
