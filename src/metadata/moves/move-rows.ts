// The rows of many keys that are renamed together. The keys of a step, and likewise their new names, are next to one
// another or nearly so: a range over each region takes the place of a look-up for each.
import { asBuffer, compareBytes, concatBytes, utf8 } from '../../base/bytes/bytes.ts';
import type { Row, View } from '../../ports/state-machine.ts';
import { LIMITS } from '../../types/limits.ts';
import type { BucketId, ObjectKey } from '../../types/names.ts';
import { escapedKey, plainKey } from '../schema/key-parts.ts';
import { OBJECT_KEY_AT, objectsKey, REGION, readVersionPosition, TABLES } from '../schema/keyspace.ts';

/** What a range may hold besides the rows that are looked for; those behind its end are looked up by themselves. */
const LATEST_ROWS = 2 * LIMITS.moveKeysMax;
const VERSION_ROWS = 10_000;
/** Where rows are so large that a range ends before that, fewer keys are moved at once. */
const RANGE_BYTES = 2 * LIMITS.moveBytesMax;

const END = Uint8Array.of(0);

/** `keys` are in the order of their bytes, or the other way round. */
function endsOf(keys: readonly string[]): [least: string, greatest: string] | undefined {
  const [first, last] = [keys.at(0), keys.at(-1)];
  if (first === undefined || last === undefined) return undefined;
  return compareBytes(utf8(first), utf8(last)) <= 0 ? [first, last] : [last, first];
}

/** Whether a range has ended at its bytes. */
function isCut(rows: readonly Row[]): boolean {
  let leftBytes = RANGE_BYTES;
  for (const { key, value } of rows) leftBytes -= key.length + value.length;
  return leftBytes <= 0;
}

/** The latest version of each of these keys, if it is in this region; undefined: they are too much to be read at once. */
export function latestOfMany(
  view: View,
  options: {
    region: typeof REGION.current | typeof REGION.marker;
    bucketId: BucketId;
    keys: readonly string[];
  },
): ((key: ObjectKey) => Uint8Array | undefined) | undefined {
  const { region, bucketId, keys } = options;
  const ends = endsOf(keys);
  if (ends === undefined) return () => undefined;
  const rows = view.range({
    table: TABLES.objects,
    gte: plainKey(region, bucketId, ends[0]),
    lt: concatBytes(plainKey(region, bucketId, ends[1]), END),
    limit: LATEST_ROWS,
    bytesMax: RANGE_BYTES,
  });
  if (isCut(rows)) return undefined;
  const found = new Map<string, Uint8Array>();
  for (const { key, value } of rows) found.set(asBuffer(key).toString('utf8', OBJECT_KEY_AT), value);
  if (rows.length < LATEST_ROWS) return (key) => found.get(key);
  const last = rows.at(-1)?.key ?? END;
  return (key) => {
    const value = found.get(key);
    if (value !== undefined) return value;
    const rowKey = plainKey(region, bucketId, key);
    return compareBytes(rowKey, last) < 0 ? undefined : view.row({ table: TABLES.objects, key: rowKey });
  };
}

/**
 * The versions of each of these keys below its latest; undefined: they are to be looked up by themselves. No function:
 * they are too much to be read at once.
 */
export function olderOfMany(
  view: View,
  { bucketId, keys }: { bucketId: BucketId; keys: readonly string[] },
): ((key: ObjectKey) => readonly Uint8Array[] | undefined) | undefined {
  const ends = endsOf(keys);
  if (ends === undefined) return () => undefined;
  const [gte, last] = ends.map((key) => objectsKey(REGION.version, bucketId, escapedKey(key)));
  // Behind the end mark of the last one.
  const lt = concatBytes((last as Uint8Array).subarray(0, -1), Uint8Array.of(2));
  const rows = view.range({
    table: TABLES.objects,
    gte: gte as Uint8Array,
    lt,
    limit: VERSION_ROWS,
    bytesMax: RANGE_BYTES,
  });
  if (isCut(rows)) return undefined;
  const found = new Map<string, Uint8Array[]>();
  let lastKey: ObjectKey | undefined;
  for (const row of rows) {
    const { key } = readVersionPosition(row.key.subarray(1));
    const versions = found.get(key);
    if (versions === undefined) found.set(key, [row.value]);
    else versions.push(row.value);
    lastKey = key;
  }
  if (lastKey === undefined || rows.length < VERSION_ROWS) return (key) => found.get(key) ?? [];
  const wholeBelow = utf8(lastKey);
  return (key) => (compareBytes(utf8(key), wholeBelow) < 0 ? (found.get(key) ?? []) : undefined);
}
