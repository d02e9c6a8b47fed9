// Rows of a range in order, read ahead in chunks, with skips: what all listings are made of. Taking a row is
// synchronous, because a promise per key would cost more than the key.
import { assert } from '../../base/assert.ts';
import { compareBytes, concatBytes } from '../../base/bytes/bytes.ts';
import { isLastPage } from '../../base/row-pages.ts';
import type { Row, RowCursor } from '../../ports/state-machine.ts';
import { LIMITS } from '../../types/limits.ts';

/** What is done with one chunk takes 1 to 3 ms; between two of them others may have the thread. */
const CHUNK_MAX = 250;
/** After a skip: often the next thing is another skip. */
const CHUNK_AFTER_SKIP = 8;

/** Of one chunk. */
export const SCAN_BYTES_MAX = LIMITS.queryPageBytesMax;

export interface RowScan {
  /** The next row in memory; undefined: `fill` first, or the end. */
  peek(): Row | undefined;
  /** Goes behind the row that `peek` gave. */
  advance(): void;
  /** Goes on at the first row whose key is `key` or behind it. */
  skipTo(key: Uint8Array): void;
  /** Reads more where `peek` has nothing; false at the end of the range. */
  fill(): Promise<boolean>;
}

/**
 * Several scans may share a cursor, since each places it anew; so they see one moment. The cursor stays the caller's, who
 * opens it with SCAN_BYTES_MAX.
 */
export function createRowScan(options: {
  cursor: RowCursor;
  gte: Uint8Array;
  lt: Uint8Array;
  /** Rows of the first chunk; later ones grow. */
  firstChunk: number;
}): RowScan {
  const { cursor, lt } = options;
  let from = options.gte;
  let count = Math.min(options.firstChunk, CHUNK_MAX);
  let rows: readonly Row[] = [];
  let at = 0;
  let isWhole = compareBytes(from, lt) >= 0;

  function keep(read: readonly Row[]): void {
    const end = firstAtOrBehind(read, lt, 0);
    rows = end < read.length ? read.slice(0, end) : read;
    at = 0;
    isWhole = end < read.length || isLastPage(read, { limit: count, bytesMax: SCAN_BYTES_MAX });
    const last = rows.at(-1);
    if (last !== undefined) from = concatBytes(last.key, Uint8Array.of(0));
    count = Math.min(count * 4, CHUNK_MAX);
  }

  return {
    peek: () => rows[at],
    advance() {
      assert(at < rows.length, 'there is a row to go behind');
      at++;
    },
    skipTo(key) {
      at = firstAtOrBehind(rows, key, at);
      if (at < rows.length || isWhole) return;
      if (compareBytes(key, from) > 0) {
        from = key;
        count = CHUNK_AFTER_SKIP;
      }
      isWhole = compareBytes(from, lt) >= 0;
    },
    async fill() {
      if (at < rows.length) return true;
      if (isWhole) return false;
      cursor.seek(from);
      keep(await cursor.next(count));
      return rows.length > 0;
    },
  };
}

function firstAtOrBehind(rows: readonly Row[], key: Uint8Array, from: number): number {
  const last = rows.at(-1);
  if (last === undefined || compareBytes(last.key, key) < 0) return rows.length;
  let low = from;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const row = rows[middle];
    if (row !== undefined && compareBytes(row.key, key) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
