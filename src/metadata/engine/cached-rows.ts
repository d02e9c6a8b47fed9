// Rows that were read lately, cached in memory before the store: every request reads a bucket's row, and those that read,
// compose or append to an object read its row again. Exact: what the store shows of a row changes between a commit's call and
// its end alone, so a row is neither served from here nor taken in while a commit of it is under way.
// A table of places, found by the hash of a row's key: a row that comes to another's place takes it, if it was the last one
// that was looked for there in vain. So rows that are read once are not cached, which would cost more than it saves. It needs
// no order of use, no sweep and no keys as strings, and its memory has a bound.
import { equalBytes } from '../../base/bytes/bytes.ts';
import type { KvPort, KvPut } from '../../ports/kv.ts';
import { LIMITS } from '../../types/limits.ts';
import { forwardKv } from './forward-kv.ts';

const PLACES = LIMITS.cachedRowsMax;

interface CachedRow {
  readonly key: Uint8Array;
  readonly value: Uint8Array;
}

/** A row that is read from the store. */
interface MissingRow {
  /** In what is asked for. */
  at: number;
  key: Uint8Array;
  place: number;
  /** It was missing before, and nothing is about to change it. */
  isWanted: boolean;
  /** Commits that had begun in its place when the read began. */
  begun: number;
}

/**
 * The same store, with small rows of `column` served from memory. All that is written to that column goes through it.
 * Values are shared by all callers: nobody writes to them.
 */
export function cacheRows(kv: KvPort, column: string): KvPort {
  const rows: (CachedRow | undefined)[] = new Array(PLACES).fill(undefined);
  /** By place: the hash of the row that was missing last. */
  const missed = new Int32Array(PLACES);
  /** By place: commits of its rows that are under way, and all that ever began. */
  const underWay = new Uint32Array(PLACES);
  const begun = new Uint32Array(PLACES);
  /** Ranges that are cleared, or were: which rows they take is not known here. */
  let clearing = 0;
  let clears = 0;
  /** Commits and clears that ever began. */
  let begins = 0;
  let isClosed = false;

  function find(place: number, key: Uint8Array): CachedRow | undefined {
    const row = rows[place];
    return row !== undefined && equalBytes(row.key, key) ? row : undefined;
  }

  async function getMany(keys: readonly Uint8Array[]): Promise<(Uint8Array | undefined)[]> {
    const values: (Uint8Array | undefined)[] = new Array(keys.length);
    const missing: MissingRow[] = [];
    for (let at = 0; at < keys.length; at++) {
      const key = keys[at] as Uint8Array;
      const hash = hashOf(key);
      const place = placeOf(hash);
      const value = underWay[place] === 0 ? find(place, key)?.value : undefined;
      values[at] = value;
      if (value !== undefined) continue;
      // What is read while a commit is under way may be from before it, and be here after its end.
      const isWanted = missed[place] === hash && underWay[place] === 0 && clearing === 0;
      missing.push({ at, key, place, isWanted, begun: begun[place] as number });
      missed[place] = hash;
    }
    if (missing.length === 0) return values;
    const clearsBefore = clears;
    const beginsBefore = begins;
    const found = await kv.getMany(
      column,
      missing.map(({ key }) => key),
    );
    // Large rows come late, and what was here may be older than they are.
    if (begins !== beginsBefore && !areStillHere(keys, values)) return kv.getMany(column, keys);
    for (let index = 0; index < missing.length; index++) {
      const { at, key, place, isWanted, begun: before } = missing[index] as MissingRow;
      const value = found[index];
      values[at] = value;
      if (!isWanted || value === undefined || !isSmall(value)) continue;
      // Written meanwhile, or about to be: what was read may be gone already.
      if (begun[place] === before && clears === clearsBefore) rows[place] = { key: ownCopy(key), value };
    }
    return values;
  }

  /** Whether nothing has begun to change what was found of these rows; undefined: not found. */
  function areStillHere(keys: readonly Uint8Array[], values: readonly (Uint8Array | undefined)[]): boolean {
    return keys.every((key, at) => {
      if (values[at] === undefined) return true;
      const place = placeOf(hashOf(key));
      return underWay[place] === 0 && find(place, key)?.value === values[at];
    });
  }

  function begin(puts: readonly KvPut[]): void {
    begins++;
    for (const { column: of, key, value } of puts) {
      if (of !== column) continue;
      const place = placeOf(hashOf(key));
      underWay[place] = (underWay[place] as number) + 1;
      begun[place] = (begun[place] as number) + 1;
      const row = find(place, key);
      if (row === undefined) continue;
      // Of several the last one's stays, since commits are applied in the order of their calls.
      rows[place] = value === null || !isSmall(value) ? undefined : { key: row.key, value: ownCopy(value) };
    }
  }

  function end(puts: readonly KvPut[], wasWritten: boolean): void {
    for (const { column: of, key } of puts) {
      if (of !== column) continue;
      const place = placeOf(hashOf(key));
      underWay[place] = (underWay[place] as number) - 1;
      if (!wasWritten && find(place, key) !== undefined) rows[place] = undefined;
    }
  }

  return forwardKv(kv, {
    // Of one moment, as the store's own: what is read of many rows may come from it late, and be newer than what is here.
    getMany: (of, keys) =>
      of === column && keys.length <= LIMITS.syncReadKeysMax && !isClosed
        ? getMany(keys)
        : kv.getMany(of, keys),
    async commit(puts, options) {
      begin(puts);
      try {
        await kv.commit(puts, options);
      } catch (error) {
        end(puts, false);
        throw error;
      }
      end(puts, true);
    },
    async clear(range) {
      if (range.column !== column) return kv.clear(range);
      rows.fill(undefined);
      clearing += 1;
      clears += 1;
      begins += 1;
      try {
        await kv.clear(range);
      } finally {
        clearing -= 1;
      }
    },
    close() {
      isClosed = true;
      rows.fill(undefined);
      return kv.close();
    },
  });
}

function isSmall(value: Uint8Array): boolean {
  return value.length <= LIMITS.cachedRowBytesMax;
}

/** In memory of its own: what the caller has cut it from may be much larger. */
function ownCopy(value: Uint8Array): Uint8Array {
  const copy = Buffer.allocUnsafeSlow(value.length);
  copy.set(value);
  return copy;
}

/** FNV-1a: who chooses keys that meet in one place has rows that are read from the store, as all were before. */
function hashOf(key: Uint8Array): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < key.length; at++) hash = Math.imul(hash ^ (key[at] as number), 0x01000193);
  return hash;
}

function placeOf(hash: number): number {
  return (hash ^ (hash >>> 16)) & (PLACES - 1);
}
