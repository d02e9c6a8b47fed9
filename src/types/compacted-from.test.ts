import { describe, expect, test } from 'vitest';
import {
  type CompactedRange,
  compactedRanges,
  coveredBytes,
  packRanges,
  unpackRanges,
} from './compacted-from.ts';
import { LIMITS } from './limits.ts';
import type { BlobId } from './names.ts';

const blob = (text: string) => text.repeat(32) as BlobId;
const [A, B, C] = [blob('a'), blob('b'), blob('c')];
const range = (blobId: BlobId, offsetBytes: number, sizeBytes: number): CompactedRange => ({
  blobId,
  offsetBytes,
  sizeBytes,
});
const whole = { offsetBytes: 0, livesOn: true, foldedFrom: undefined };

describe('the sources of a compacted blob', () => {
  test('are listed in order; those that end with the compaction are left out', () => {
    const sources = [
      { ...whole, blobId: A, sizeBytes: 10 },
      { ...whole, blobId: B, sizeBytes: 20, livesOn: false },
      { ...whole, blobId: C, sizeBytes: 30 },
    ];
    expect(compactedRanges(sources)).toEqual([range(A, 0, 10), range(C, 30, 30)]);
  });

  test('include what these were compacted from, within the segment', () => {
    const foldedFrom = packRanges([range(A, 0, 10), range(B, 10, 10), range(C, 20, 10)]);
    const sources = [
      { ...whole, blobId: blob('1'), sizeBytes: 100 },
      { blobId: blob('2'), offsetBytes: 5, sizeBytes: 15, livesOn: false, foldedFrom },
      { blobId: blob('3'), offsetBytes: 0, sizeBytes: 30, livesOn: true, foldedFrom },
    ];
    expect(compactedRanges(sources)).toEqual([
      range(blob('1'), 0, 100),
      ...[range(A, 100, 5), range(B, 105, 10)],
      ...[range(blob('3'), 115, 30), range(A, 115, 10), range(B, 125, 10), range(C, 135, 10)],
    ]);
  });

  test('are bounded: with too many tiers only the direct sources are listed', () => {
    const many = packRanges(Array.from({ length: LIMITS.compactedRangesMax }, () => range(A, 0, 10)));
    const source = { ...whole, sizeBytes: 10, foldedFrom: many };
    expect(compactedRanges([{ ...source, blobId: B, livesOn: false }])).toHaveLength(
      LIMITS.compactedRangesMax,
    );
    const sources = [
      { ...source, blobId: B },
      { ...source, blobId: C },
    ];
    expect(compactedRanges(sources)).toEqual([range(B, 0, 10), range(C, 10, 10)]);
  });

  test('are stored in a row and read back; a cut row is refused', () => {
    const ranges = [range(A, 0, 10), range(B, 2 ** 22, 2 ** 20)];
    const packed = packRanges(ranges);
    expect(unpackRanges(packed)).toEqual(ranges);
    expect(unpackRanges(undefined)).toEqual([]);
    expect(() => unpackRanges(packed.subarray(0, -1))).toThrow();
    expect(() => unpackRanges(packed.subarray(0, -8))).toThrow();
  });
});

test('bytes in several ranges are covered once', () => {
  expect(coveredBytes([])).toBe(0);
  expect(coveredBytes([range(A, 30, 10), range(B, 0, 10)])).toBe(20);
  expect(coveredBytes([range(A, 0, 30), range(B, 5, 10), range(C, 20, 20)])).toBe(40);
});
