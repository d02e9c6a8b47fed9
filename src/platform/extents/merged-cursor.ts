// Values of a column in the order of their keys, wherever they lie: in the database itself, or in extents, of which it has the
// places. Both cursors are of one moment (separated-kv.ts).
import { compareBytes, EMPTY_BYTES } from '../../base/bytes/bytes.ts';
import type { KvCursor, KvRow } from '../../ports/kv.ts';
import { decodePlace, type RecordPlace } from './extent-record.ts';

export interface MergedBounds {
  reverse?: boolean;
  bytesMax?: number;
  keysOnly?: boolean;
  /** How much longer the key of a place is than that of its value. */
  prefixBytes: number;
  placeKey(key: Uint8Array): Uint8Array;
  read(key: Uint8Array, place: RecordPlace): Promise<Uint8Array>;
  /** Called once. */
  onClosed(): void;
}

interface Both<Of = KvCursor> {
  values: Of;
  places: Of;
}

/** Rows that carry no values are read so many at a time. */
const AHEAD_ROWS = 100;

export class MergedCursor implements KvCursor {
  readonly #opening: Promise<Both<AheadCursor>>;
  readonly #bounds: MergedBounds;
  /** Where `next` is to begin. */
  #sought: Uint8Array | undefined;
  #isClosed = false;

  constructor(opening: Promise<Both>, bounds: MergedBounds) {
    this.#bounds = bounds;
    this.#opening = opening.then(({ values, places }) => ({
      values: new AheadCursor(values, bounds.keysOnly === true ? AHEAD_ROWS : 1),
      places: new AheadCursor(places, AHEAD_ROWS),
    }));
    this.#opening.catch(() => {});
  }

  seek(key: Uint8Array): void {
    this.#sought = key;
  }

  async next(count: number): Promise<KvRow[]> {
    if (this.#isClosed) throw new Error('the cursor is closed');
    const both = await this.#opening;
    const { bytesMax = Number.POSITIVE_INFINITY } = this.#bounds;
    const rows: KvRow[] = [];
    let sizeBytes = 0;
    while (rows.length < count && sizeBytes < bytesMax) {
      const row = await this.#nextRow(both);
      if (row === undefined) break;
      rows.push(row);
      sizeBytes += row.key.length + row.value.length;
    }
    return rows;
  }

  async #nextRow({ values, places }: Both<AheadCursor>): Promise<KvRow | undefined> {
    const { keysOnly = false, prefixBytes, reverse = false, read, placeKey } = this.#bounds;
    if (this.#sought !== undefined) {
      values.seek(this.#sought);
      places.seek(placeKey(this.#sought));
      this.#sought = undefined;
    }
    const [value, place] = [await values.look(), await places.look()];
    if (place === undefined || (value && isBefore(value.key, place.key.subarray(prefixBytes), reverse))) {
      values.pass();
      return value;
    }
    const key = Uint8Array.from(place.key.subarray(prefixBytes));
    const row = { key, value: keysOnly ? EMPTY_BYTES : await read(key, decodePlace(place.value)) };
    places.pass();
    return row;
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const close = ({ values, places }: Both<AheadCursor>) => {
      values.close();
      places.close();
    };
    void this.#opening.then(close, () => {}).finally(() => this.#bounds.onClosed());
  }
}

/** Shows the next row before it is taken. */
class AheadCursor {
  readonly #cursor: KvCursor;
  readonly #count: number;
  #rows: KvRow[] = [];
  #isAtEnd = false;

  constructor(cursor: KvCursor, count: number) {
    this.#cursor = cursor;
    this.#count = count;
  }

  seek(key: Uint8Array): void {
    this.#cursor.seek(key);
    this.#rows = [];
    this.#isAtEnd = false;
  }

  async look(): Promise<KvRow | undefined> {
    if (this.#rows.length === 0 && !this.#isAtEnd) {
      this.#rows = await this.#cursor.next(this.#count);
      this.#isAtEnd = this.#rows.length === 0;
    }
    return this.#rows[0];
  }

  pass(): void {
    this.#rows.shift();
  }

  close(): void {
    this.#cursor.close();
  }
}

function isBefore(one: Uint8Array, other: Uint8Array, reverse: boolean): boolean {
  return compareBytes(one, other) * (reverse ? -1 : 1) < 0;
}
