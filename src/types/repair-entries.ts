// Repair entries (R36, R39): chunks of a blob that do not lie on just their owners, or may not. An entry lists the chunks
// and their known holders; this is a hint for the repair, which asks other disks as well. Pure.
import { must } from '../base/assert.ts';
import { LIMITS } from './limits.ts';

/** Chunks `from` (included) to `to` (excluded) of a blob. */
export interface RepairRange {
  from: number;
  to: number;
  /** Disks that were known to have them when that was noted, beside or instead of their owners. */
  holders: string[];
}

export interface RepairEntry {
  /** Intact copies of the chunk that has fewest, as far as is known; COPIES_UNKNOWN at the most. */
  copies: number;
  /** In order, without overlap, at least one. */
  ranges: RepairRange[];
  /** The newest placement version by which something of it is missing: an older one resolves nothing of it. */
  mapVersion: number;
}

/** No chunk is known to lack a copy: they are to be looked at. The last in turn. */
export const COPIES_UNKNOWN = 9;

/** How the chunks of a new blob were placed: `ranges` are those that are not on just their owners by this map. */
export interface PlacedChunks {
  /** The oldest by which one of them was written, and the newest. */
  mapVersion: number;
  newestVersion: number;
  ranges: RepairRange[];
  /** Of the chunk of the ranges that has fewest: ranges that were joined do not show it. Absent: as many as they name. */
  copies?: number;
}

/** Bounded, whatever the size of the blob. `placed`: by chunk, in order. */
export function gatherPlaces(
  placed: readonly ({ mapVersion: number; holders?: readonly string[] } | undefined)[],
): PlacedChunks | undefined {
  const known = placed.filter((place) => place !== undefined);
  if (known.length === 0) return undefined;
  const versions = known.map((place) => place.mapVersion);
  const ranges: RepairRange[] = [];
  for (const [index, place] of placed.entries()) {
    if (place?.holders !== undefined)
      ranges.push({ from: index, to: index + 1, holders: [...place.holders].sort() });
  }
  const [mapVersion, newestVersion] = [Math.min(...versions), Math.max(...versions)];
  const places = { mapVersion, newestVersion, ranges: boundRanges(ranges) };
  // Counted chunk by chunk: the holders of a range that was joined are those of any of its chunks.
  return ranges.length === 0 ? places : { ...places, copies: fewestCopies(ranges) };
}

/** R36: the repair entry of a new blob. `auditedFrom`: the map by which its home audits everything, or last began to. */
export function repairOfNewBlob(
  { mapVersion, newestVersion, ranges, copies = fewestCopies(ranges) }: PlacedChunks,
  { auditedFrom, chunkCount }: { auditedFrom: number; chunkCount: number },
): RepairEntry | undefined {
  // A pass may have gone by already, and these chunks lie where owners were before it.
  const isOld = mapVersion < auditedFrom;
  if (ranges.length === 0 && !isOld) return undefined;
  const missing = isOld ? mergeRanges(ranges, wholeRange(chunkCount)) : ranges;
  return { copies, ranges: missing, mapVersion: Math.max(newestVersion, auditedFrom) };
}

function fewestCopies(ranges: readonly RepairRange[]): number {
  return ranges.reduce((fewest, { holders }) => Math.min(fewest, holders.length), COPIES_UNKNOWN);
}

export function wholeRange(chunkCount: number): RepairRange[] {
  return [{ from: 0, to: chunkCount, holders: [] }];
}

/** All that either says: of what both have, all holders. */
export function mergeRepairs(a: RepairEntry, b: RepairEntry): RepairEntry {
  return {
    copies: Math.min(a.copies, b.copies),
    ranges: mergeRanges(a.ranges, b.ranges),
    mapVersion: Math.max(a.mapVersion, b.mapVersion),
  };
}

export function mergeRanges(a: readonly RepairRange[], b: readonly RepairRange[]): RepairRange[] {
  const all = [...a, ...b];
  const edges = [...new Set(all.flatMap(({ from, to }) => [from, to]))].sort((x, y) => x - y);
  const pieces: RepairRange[] = [];
  for (const [at, from] of edges.slice(0, -1).entries()) {
    const to = must(edges[at + 1], 'an edge has one behind it');
    const over = all.filter((range) => range.from <= from && range.to >= to);
    if (over.length === 0) continue;
    pieces.push({ from, to, holders: unionOf(over) });
  }
  return boundRanges(pieces);
}

/** Joins neighbours that are equal; too many become one, for holders can be found by asking all disks. */
export function boundRanges(ranges: readonly RepairRange[]): RepairRange[] {
  const joined: RepairRange[] = [];
  for (const range of ranges) {
    const last = joined.at(-1);
    if (last !== undefined && last.to === range.from && isSame(last.holders, range.holders))
      last.to = range.to;
    else joined.push({ ...range });
  }
  if (joined.length <= LIMITS.repairRangesMax) return joined;
  const [first] = joined;
  const last = joined.at(-1);
  return [{ from: must(first, 'a range').from, to: must(last, 'a range').to, holders: unionOf(joined) }];
}

export function rangedChunks(ranges: readonly RepairRange[]): number {
  return ranges.reduce((sum, { from, to }) => sum + to - from, 0);
}

function unionOf(ranges: readonly RepairRange[]): string[] {
  return [...new Set(ranges.flatMap(({ holders }) => holders))].sort().slice(0, LIMITS.repairHoldersMax);
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((holder, at) => holder === b[at]);
}

/** The repair entry for what is missing after an inspection; undefined: nothing. `missing`: in the order of chunks. */
export function repairOfChunks(
  missing: readonly { index: number; copies: number; holders: readonly string[] }[],
  mapVersion: number,
): RepairEntry | undefined {
  if (missing.length === 0) return undefined;
  const ranges = missing.map(({ index, holders }) => ({
    from: index,
    to: index + 1,
    holders: [...holders].sort(),
  }));
  const copies = missing.reduce((fewest, chunk) => Math.min(fewest, chunk.copies), COPIES_UNKNOWN);
  return { copies, ranges: boundRanges(ranges), mapVersion };
}

/** But for the map. */
export function isSameRepair(a: RepairEntry, b: RepairEntry): boolean {
  if (a.copies !== b.copies || a.ranges.length !== b.ranges.length) return false;
  return a.ranges.every(({ from, to, holders }, at) => {
    const other = b.ranges[at];
    return other?.from === from && other.to === to && isSame(holders, other.holders);
  });
}
