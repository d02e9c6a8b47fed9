// A cursor over one column of RocksDB: a consistent view that can be re-positioned. It works around two faults of the
// native iterator: a seek outside the bounds ends it, and closing it during a read on another thread crashes the process.
import type { Column, IteratorPage, RocksIterator, RocksLevel } from '@nxtedition/rocksdb';
import { assert } from '../../base/assert.ts';
import { compareBytes, concatBytes, EMPTY_BYTES } from '../../base/bytes/bytes.ts';
import type { KvCursor, KvRow } from '../../ports/kv.ts';
import { LIMITS } from '../../types/limits.ts';
import { toReadError } from './rocksdb-corruption.ts';

/** Longer pages of a `sync` column are read on another thread, beside this one's work: those of listings, for one. */
const SYNC_ROWS_MAX = 128;

export interface ScanBounds {
  gte: Uint8Array;
  lt: Uint8Array;
  reverse?: boolean;
}

export class RocksCursor implements KvCursor {
  readonly #db: RocksLevel;
  readonly #iterator: RocksIterator;
  readonly #bounds: ScanBounds;
  readonly #isSync: boolean;
  /** Each `next` is one page, by its bytes. */
  readonly #isBounded: boolean;
  readonly #onClosed: () => void;
  readonly #onTook: ((durationMs: number) => void) | undefined;
  #reading: Promise<unknown> | undefined;
  #isAtEnd = false;
  #isClosed = false;
  /** Nothing was read or sought yet: it stands at its first row. */
  #isFresh = true;

  constructor(
    db: RocksLevel,
    options: ScanBounds & { column: Column; isSync: boolean; bytesMax?: number; keysOnly?: boolean },
    onClosed: () => void,
    /** Told how long each step on the calling thread has kept it. */
    onTook?: (durationMs: number) => void,
  ) {
    const { column, gte, lt, reverse = false, isSync, bytesMax, keysOnly = false } = options;
    const pageBytesMax = bytesMax ?? (isSync ? LIMITS.syncReadBytesMax : undefined);
    this.#db = db;
    this.#bounds = { gte, lt, reverse };
    this.#isSync = isSync && (bytesMax ?? 0) <= LIMITS.queryPageBytesMax;
    this.#isBounded = bytesMax !== undefined;
    this.#onClosed = onClosed;
    this.#onTook = onTook;
    this.#isAtEnd = compareBytes(gte, lt) >= 0;
    this.#iterator = this.#timed(() =>
      db._iterator({
        column,
        gte,
        lt,
        reverse,
        keyEncoding: 'buffer',
        valueEncoding: 'buffer',
        values: !keysOnly,
        fillCache: isSync,
        // The native scan stops when it has read more than this.
        ...(pageBytesMax === undefined ? {} : { highWaterMarkBytes: pageBytesMax - 1 }),
      }),
    );
  }

  seek(key: Uint8Array): void {
    assert(!this.#isClosed && this.#reading === undefined, 'a cursor is sought while open and at rest');
    const { gte, lt, reverse } = this.#bounds;
    const isBelow = compareBytes(key, gte) < 0;
    const isAbove = compareBytes(key, lt) >= 0;
    this.#isAtEnd = compareBytes(gte, lt) >= 0 || (reverse ? isBelow : isAbove);
    if (this.#isAtEnd) return;
    // Behind many deleted rows the first one is as far as it was when the cursor was opened.
    if (this.#isFresh && !reverse && compareBytes(key, gte) <= 0) return;
    this.#isFresh = false;
    const target = reverse ? (isAbove ? keyBelow(lt) : key) : isBelow ? gte : key;
    this.#timed(() => this.#iterator._seekSync(target));
  }

  async next(count: number): Promise<KvRow[]> {
    if (this.#isClosed) throw new Error('the cursor is closed');
    if (this.#isAtEnd || count <= 0) return [];
    this.#isFresh = false;
    const rows: KvRow[] = [];
    do {
      const page = await this.#read(count - rows.length, rows.length === 0);
      this.#isAtEnd = page.finished;
      for (let i = 0; i + 1 < page.rows.length; i += 2) {
        rows.push({ key: page.rows[i] as Uint8Array, value: page.rows[i + 1] ?? EMPTY_BYTES });
      }
    } while (!this.#isBounded && !this.#isAtEnd && !this.#isClosed && rows.length < count);
    return rows;
  }

  /** What is left of large rows is read on another thread. */
  async #read(count: number, isFirst: boolean): Promise<IteratorPage> {
    try {
      return this.#isSync && isFirst && count <= SYNC_ROWS_MAX
        ? this.#timed(() => this.#iterator._nextvSync(count, {}))
        : await this.#nextAsync(count);
    } catch (error) {
      throw toReadError(error);
    }
  }

  #timed<Result>(step: () => Result): Result {
    if (this.#onTook === undefined) return step();
    const begunMs = performance.now();
    const result = step();
    this.#onTook(performance.now() - begunMs);
    return result;
  }

  /** At once, or as soon as the read under way has ended. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    if (this.#reading === undefined) this.#closeNow();
    else this.#reading.finally(() => this.#closeNow()).catch(() => undefined);
  }

  /** Resolves when no thread uses the cursor any more. */
  async closed(): Promise<void> {
    const reading = this.#reading;
    this.close();
    await reading?.catch(() => undefined);
  }

  async #nextAsync(count: number): Promise<IteratorPage> {
    const reading = new Promise<IteratorPage>((resolve, reject) => {
      this.#iterator._nextvAsync(count, {}, (error, page) => (error ? reject(error) : resolve(page)));
    });
    this.#reading = reading;
    try {
      return await reading;
    } finally {
      this.#reading = undefined;
    }
  }

  #closeNow(): void {
    this.#iterator._closeSync();
    this.#db.detachResource(this.#iterator);
    this.#onClosed();
  }
}

/** The greatest key that may exist below `bound`: keys have at most LIMITS.kvKeyBytesMax bytes. */
function keyBelow(bound: Uint8Array): Uint8Array {
  const last = bound[bound.length - 1] ?? 0;
  const head = bound.slice(0, -1);
  if (last === 0) return head;
  return concatBytes(head, Uint8Array.of(last - 1), new Uint8Array(LIMITS.kvKeyBytesMax).fill(0xff));
}
