import { describe, expect, test } from 'vitest';
import { must } from '../base/assert.ts';
import { LIMITS } from './limits.ts';
import {
  boundRanges,
  COPIES_UNKNOWN,
  gatherPlaces,
  mergeRanges,
  mergeRepairs,
  rangedChunks,
  repairOfNewBlob,
  wholeRange,
} from './repair-entries.ts';

const range = (from: number, to: number, ...holders: string[]) => ({ from, to, holders });

describe('the places of a new blob', () => {
  test('neighbours with the same holders are one range; the oldest map counts', () => {
    const placed = gatherPlaces([
      { mapVersion: 4 },
      { mapVersion: 4, holders: ['b', 'a'] },
      { mapVersion: 3, holders: ['a', 'b'] },
      { mapVersion: 4, holders: ['a'] },
    ]);
    expect(placed).toEqual({
      mapVersion: 3,
      newestVersion: 4,
      ranges: [range(1, 3, 'a', 'b'), range(3, 4, 'a')],
      copies: 1,
    });
  });

  test('are unknown without a map', () => {
    expect(gatherPlaces([undefined, undefined])).toBeUndefined();
    expect(gatherPlaces([])).toBeUndefined();
  });

  test('of 5,000 chunks, each elsewhere, take a bounded record', () => {
    const holders = (at: number) => [`disk-${at % 40}`, 'a'];
    const places = Array.from({ length: 5000 }, (_, at) => ({ mapVersion: 1, holders: holders(at) }));
    const [only, ...others] = gatherPlaces(places)?.ranges ?? [];
    expect([only?.from, only?.to, others]).toEqual([0, 5000, []]);
    expect(only?.holders.length).toBe(LIMITS.repairHoldersMax);
  });

  test('of many chunks have the fewest copies of a chunk, though ranges were joined', () => {
    const pairs = ['ab', 'bc', 'ac', 'ad'];
    const places = Array.from({ length: 40 }, (_, at) => ({
      mapVersion: 1,
      holders: [...(pairs[at % 4] ?? '')],
    }));
    const debt = repairOfNewBlob(must(gatherPlaces(places), 'there is a map'), {
      auditedFrom: 1,
      chunkCount: 40,
    });
    expect(debt).toEqual({ copies: 2, ranges: [range(0, 40, ...'abcd')], mapVersion: 1 });
  });
});

describe('the repair entry of a new blob', () => {
  const chunkCount = 8;
  test('is absent when all copies are on their owners by the map of the audit', () => {
    expect(
      repairOfNewBlob({ mapVersion: 5, newestVersion: 5, ranges: [] }, { auditedFrom: 5, chunkCount }),
    ).toBeUndefined();
  });

  test('has the fewest copies of a chunk', () => {
    const ranges = [range(0, 2, 'a', 'b'), range(5, 6, 'a')];
    expect(
      repairOfNewBlob({ mapVersion: 5, newestVersion: 5, ranges }, { auditedFrom: 5, chunkCount }),
    ).toEqual({
      copies: 1,
      ranges,
      mapVersion: 5,
    });
  });

  test('has all chunks when the blob was written by a map before the audit', () => {
    const old = repairOfNewBlob(
      { mapVersion: 4, newestVersion: 5, ranges: [range(2, 3, 'a', 'b')] },
      { auditedFrom: 5, chunkCount },
    );
    expect(old).toEqual({
      copies: 2,
      ranges: [range(0, 2), range(2, 3, 'a', 'b'), range(3, 8)],
      mapVersion: 5,
    });
    const whole = repairOfNewBlob(
      { mapVersion: 4, newestVersion: 5, ranges: [] },
      { auditedFrom: 5, chunkCount },
    );
    expect(whole).toEqual({ copies: COPIES_UNKNOWN, ranges: wholeRange(8), mapVersion: 5 });
  });
});

describe('merged repair entries', () => {
  test('have the fewest copies and all holders', () => {
    const debt = mergeRepairs(
      { copies: 2, ranges: [range(0, 4, 'a', 'b')], mapVersion: 3 },
      { copies: 1, ranges: [range(2, 6, 'c')], mapVersion: 2 },
    );
    expect(debt).toEqual({
      mapVersion: 3,
      copies: 1,
      ranges: [range(0, 2, 'a', 'b'), range(2, 4, 'a', 'b', 'c'), range(4, 6, 'c')],
    });
  });

  test('keep gaps', () => {
    const merged = mergeRanges([range(0, 1, 'a')], [range(5, 6, 'a')]);
    expect([merged, rangedChunks(merged)]).toEqual([[range(0, 1, 'a'), range(5, 6, 'a')], 2]);
  });

  test('with too many ranges have one', () => {
    const many = Array.from({ length: LIMITS.repairRangesMax + 1 }, (_, at) =>
      range(2 * at, 2 * at + 1, `${at}`),
    );
    expect(boundRanges(many)).toHaveLength(1);
    expect(boundRanges(many.slice(1))).toHaveLength(LIMITS.repairRangesMax);
  });
});
