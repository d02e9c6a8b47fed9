// Debts (R36, R39): chunks of a blob that do not lie on just their owners, or may not. A debt says which chunks, and who
// is known to hold them; it is a hint for whoever mends it, who asks other disks as well. Pure.
import { must } from '../lib/assert.ts';
import { LIMITS } from './limits.ts';

/** Chunks `from` (included) to `to` (excluded) of a blob. */
export interface DebtRange {
  from: number;
  to: number;
  /** Disks that were known to have them when that was noted, beside or instead of their owners. */
  holders: string[];
}

export interface Debt {
  /** Intact copies of the chunk that has fewest, as far as is known; COPIES_UNKNOWN at the most. */
  copies: number;
  /** In order, without overlap, at least one. */
  ranges: DebtRange[];
}

/** No chunk is known to lack a copy: they are to be looked at. The last in turn. */
export const COPIES_UNKNOWN = 9;

/** How the chunks of a new blob were placed: `ranges` are those that are not on just their owners by this map. */
export interface PlacedChunks {
  /** The oldest by which one of them was written. */
  mapVersion: number;
  ranges: DebtRange[];
}

/** Bounded, whatever the size of the blob. `placed`: by chunk, in order. */
export function gatherPlaces(
  placed: readonly ({ mapVersion: number; holders?: readonly string[] } | undefined)[],
): PlacedChunks | undefined {
  let mapVersion = Number.POSITIVE_INFINITY;
  const ranges: DebtRange[] = [];
  for (const [index, place] of placed.entries()) {
    if (place === undefined) continue;
    mapVersion = Math.min(mapVersion, place.mapVersion);
    if (place.holders !== undefined)
      ranges.push({ from: index, to: index + 1, holders: [...place.holders].sort() });
  }
  return mapVersion === Number.POSITIVE_INFINITY ? undefined : { mapVersion, ranges: boundRanges(ranges) };
}

/** R36: what a birth owes. `auditedFrom`: the map by which its home looks at everything, or last began to. */
export function debtOfBirth(
  { mapVersion, ranges }: PlacedChunks,
  { auditedFrom, chunkCount }: { auditedFrom: number; chunkCount: number },
): Debt | undefined {
  // A pass may have gone by already, and these chunks lie where owners were before it.
  const isOld = mapVersion < auditedFrom;
  if (ranges.length === 0 && !isOld) return undefined;
  const copies = Math.min(COPIES_UNKNOWN, ...ranges.map(({ holders }) => holders.length));
  return { copies, ranges: isOld ? mergeRanges(ranges, wholeRange(chunkCount)) : ranges };
}

export function wholeRange(chunkCount: number): DebtRange[] {
  return [{ from: 0, to: chunkCount, holders: [] }];
}

/** All that either says: of what both have, all holders. */
export function mergeDebts(a: Debt, b: Debt): Debt {
  return { copies: Math.min(a.copies, b.copies), ranges: mergeRanges(a.ranges, b.ranges) };
}

export function mergeRanges(a: readonly DebtRange[], b: readonly DebtRange[]): DebtRange[] {
  const all = [...a, ...b];
  const edges = [...new Set(all.flatMap(({ from, to }) => [from, to]))].sort((x, y) => x - y);
  const pieces: DebtRange[] = [];
  for (const [at, from] of edges.slice(0, -1).entries()) {
    const to = must(edges[at + 1], 'an edge has one behind it');
    const over = all.filter((range) => range.from <= from && range.to >= to);
    if (over.length === 0) continue;
    pieces.push({ from, to, holders: unionOf(over) });
  }
  return boundRanges(pieces);
}

/** Joins neighbours that are equal; too many become one, for holders can be found by asking all disks. */
export function boundRanges(ranges: readonly DebtRange[]): DebtRange[] {
  const joined: DebtRange[] = [];
  for (const range of ranges) {
    const last = joined.at(-1);
    if (last !== undefined && last.to === range.from && isSame(last.holders, range.holders))
      last.to = range.to;
    else joined.push({ ...range });
  }
  if (joined.length <= LIMITS.debtRangesMax) return joined;
  const [first] = joined;
  const last = joined.at(-1);
  return [{ from: must(first, 'a range').from, to: must(last, 'a range').to, holders: unionOf(joined) }];
}

export function rangedChunks(ranges: readonly DebtRange[]): number {
  return ranges.reduce((sum, { from, to }) => sum + to - from, 0);
}

function unionOf(ranges: readonly DebtRange[]): string[] {
  return [...new Set(ranges.flatMap(({ holders }) => holders))].sort().slice(0, LIMITS.debtHoldersMax);
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((holder, at) => holder === b[at]);
}
