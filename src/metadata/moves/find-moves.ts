// The next keys of a prefix's walk (plan-prefix-move.ts): all that have a version or a delete marker, as many
// as one step may move in one entry.
import { must } from '../../base/assert.ts';
import { asBuffer, compareBytes, concatBytes, utf8 } from '../../base/bytes/bytes.ts';
import { isLastPage } from '../../base/row-pages.ts';
import type { MoveCursor } from '../../ports/metadata/moves.ts';
import type { QueryOf, ResultOf } from '../../ports/metadata/port.ts';
import type { QuerySpec, StateReader } from '../../ports/state-machine.ts';
import { LIMITS } from '../../types/limits.ts';
import type { BucketId, ObjectKey } from '../../types/names.ts';
import { bucketCodec } from '../../types/records/rows.ts';
import { mayHaveOlderVersions } from '../../types/versioning.ts';
import { escapeBytes } from '../schema/key-parts.ts';
import {
  bucketRow,
  OBJECT_KEY_AT,
  objectsKey,
  REGION,
  type Region,
  readVersionPosition,
  TABLES,
} from '../schema/keyspace.ts';
import { movedRowsBytes } from './move-history.ts';
import { ownerOfTurn } from './move-turn.ts';
import { type MoveLeg, planPrefixMove } from './plan-prefix-move.ts';

type Query = QueryOf<'find-moves'>;
type Result = ResultOf<'find-moves'>;

interface Sized {
  key: ObjectKey;
  sizeBytes: number;
}

/** Older versions are counted so many at a time. */
const VERSIONS_PAGE = { limit: 1000, bytesMax: LIMITS.queryPageBytesMax };

export const findMoves: QuerySpec<Query, Result> = {
  ownerOf: ownerOfTurn,
  async run(query, state) {
    const { bucketId, from, to } = query;
    const [row] = await state.rows([bucketRow(bucketId)]);
    // Of a bucket that is gone there is nothing to move: the step finds out, and ends the job.
    if (row === undefined) return { keys: [] };
    const hasOlder = mayHaveOlderVersions(bucketCodec.decode(row).versioning);
    const legs = planPrefixMove(from, to);
    for (let { leg, after } = query.cursor; leg < legs.length; leg++, after = undefined) {
      const bounds = restOf(must(legs[leg], 'a leg of the walk'), after);
      const { keys, isWhole } = await findInLeg({ ...query, bounds, hasOlder, state });
      const last = keys.at(-1);
      if (last === undefined) continue;
      const isEnd = isWhole && leg === legs.length - 1;
      return isEnd ? { keys } : { keys, cursor: { leg, after: last } };
    }
    return { keys: [] };
  },
};

/** What is left of a leg behind `after`, in its direction. */
function restOf(leg: MoveLeg, after: MoveCursor['after']): MoveLeg {
  if (after === undefined) return leg;
  const at = utf8(after);
  return leg.reverse ? { ...leg, lt: at } : { ...leg, gte: concatBytes(at, Uint8Array.of(0)) };
}

/** `isWhole`: nothing is left of the leg behind them. */
async function findInLeg(options: {
  bucketId: BucketId;
  from: string;
  to: string;
  bounds: MoveLeg;
  keysMax: number;
  hasOlder: boolean;
  state: StateReader;
}): Promise<{ keys: ObjectKey[]; isWhole: boolean }> {
  const { bucketId, from, to, bounds, hasOlder, state } = options;
  const keysMax = Math.min(options.keysMax, LIMITS.moveKeysMax);
  if (compareBytes(bounds.gte, bounds.lt) >= 0) return { keys: [], isWhole: true };
  const reader = { state, bucketId, bounds, keysMax };
  const current = await latestKeys(reader, REGION.current);
  // Of a later moment: a key that is written between the two may be passed by, as one that is written behind the walk.
  const markers = hasOlder ? await latestKeys(reader, REGION.marker) : undefined;
  const found = markers === undefined ? current.keys : merged(current, markers, bounds);
  const isAll = current.isAll && (markers?.isAll ?? true);
  const page = found.slice(0, keysMax);
  if (hasOlder) await addOlder(reader, page, { from, to });
  const keys = takeStep(page, { from, to });
  return { keys, isWhole: isAll && keys.length === found.length };
}

interface Found {
  keys: readonly Sized[];
  /** There are none behind them. */
  isAll: boolean;
}

interface Reader {
  state: StateReader;
  bucketId: BucketId;
  bounds: MoveLeg;
  keysMax: number;
}

/**
 * One more than a step moves, and no more of large rows than it moves. Ranges of their own, with both ends: what was moved
 * has left its tombstones before one end and behind the other, and a walk over them for each page would take as long as all
 * the rest.
 */
async function latestKeys({ state, bucketId, bounds, keysMax }: Reader, region: Region): Promise<Found> {
  const asked = { limit: keysMax + 1, bytesMax: LIMITS.moveStepBytesMax };
  const rows = await state.range({
    table: TABLES.objects,
    gte: objectsKey(region, bucketId, bounds.gte),
    lt: objectsKey(region, bucketId, bounds.lt),
    reverse: bounds.reverse,
    ...asked,
  });
  const keys = rows.map(({ key, value }) => ({
    key: asBuffer(key).toString('utf8', OBJECT_KEY_AT) as ObjectKey,
    sizeBytes: 2 * key.length + value.length,
  }));
  return { keys, isAll: isLastPage(rows, asked) };
}

/**
 * Each key once: one that has become a delete marker meanwhile is in both. None behind the last one of a page that has
 * others behind it: it would be passed by before them.
 */
function merged(a: Found, b: Found, { reverse }: MoveLeg): Sized[] {
  const sign = reverse ? -1 : 1;
  const compare = (one: Sized, other: Sized) => sign * compareBytes(utf8(one.key), utf8(other.key));
  const byKey = new Map([...a.keys, ...b.keys].map((sized) => [sized.key, sized]));
  const ends = [a, b].flatMap(({ keys, isAll }) => (isAll ? [] : (keys.at(-1) ?? [])));
  return [...byKey.values()].filter((sized) => ends.every((end) => compare(sized, end) <= 0)).sort(compare);
}

/** Adds what the versions below the latest take, until that is more than a step may move. */
async function addOlder(
  reader: Reader,
  keys: readonly Sized[],
  { from, to }: { from: string; to: string },
): Promise<void> {
  const { state, bucketId, bounds } = reader;
  const [first, last] = [keys.at(0)?.key, keys.at(-1)?.key];
  if (first === undefined || last === undefined) return;
  const [least, greatest] = bounds.reverse ? [last, first] : [first, last];
  const inVersions = (bytes: Uint8Array) => objectsKey(REGION.version, bucketId, escapeBytes(bytes));
  const sizes = new Map(keys.map((sized) => [sized.key, sized]));
  const { reverse } = bounds;
  let gte = inVersions(utf8(least));
  let lt = concatBytes(inVersions(utf8(greatest)), Uint8Array.of(0, 2));
  let leftBytes: number = LIMITS.moveStepBytesMax;
  while (leftBytes > 0) {
    const rows = await state.range({ table: TABLES.objects, gte, lt, reverse, ...VERSIONS_PAGE });
    for (const { key: rowKey, value } of rows) {
      const { key } = readVersionPosition(rowKey.subarray(1));
      const sizeBytes = value.length + movedRowsBytes(key, to + key.slice(from.length));
      const sized = sizes.get(key);
      if (sized !== undefined) sized.sizeBytes += sizeBytes;
      leftBytes -= sizeBytes;
    }
    const lastRow = rows.at(-1);
    if (lastRow === undefined || isLastPage(rows, VERSIONS_PAGE)) return;
    if (reverse) lt = lastRow.key;
    else gte = concatBytes(lastRow.key, Uint8Array.of(0));
  }
}

/** The first of these keys that one entry may move: one at the least, none of them under another one's new name. */
function takeStep(keys: readonly Sized[], { from, to }: { from: string; to: string }): ObjectKey[] {
  const mayMeet = from.startsWith(to) || to.startsWith(from);
  const touched = new Set<string>();
  const taken: ObjectKey[] = [];
  let leftBytes: number = LIMITS.moveStepBytesMax;
  for (const { key, sizeBytes } of keys) {
    leftBytes -= sizeBytes;
    if (taken.length > 0 && leftBytes < 0) break;
    if (mayMeet) {
      const target = to + key.slice(from.length);
      if (touched.has(key) || touched.has(target)) break;
      touched.add(key).add(target);
    }
    taken.push(key);
  }
  return taken;
}
