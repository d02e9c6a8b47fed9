// A store of which one column keeps its large values in extents: the database has a row for each, which names the place. A value
// is durable before its row is committed, and the row is before it is acknowledged, so no row names what is not there, and what no
// row names is free space. Values that lay in the database before stay where they are until they are written anew.
import { crc32 } from 'node:zlib';
import { assert, must } from '../../base/assert.ts';
import { compareBytes, concatBytes, toHex } from '../../base/bytes/bytes.ts';
import { Corruption } from '../../base/corruption.ts';
import type { KvBounds, KvCommitOptions, KvCursor, KvPort, KvPut, KvRange, KvRow } from '../../ports/kv.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import { decodePlace, encodePlace, type RecordPlace } from './extent-record.ts';
import type { Extents } from './extents.ts';

export interface SeparatedColumns {
  /** Whose large values are separated. */
  column: string;
  /** Where the rows of places are, under this prefix and the key. Nothing else of the column begins with it. */
  placeColumn: string;
  placePrefix: Uint8Array;
}

export interface SeparatedOptions {
  /** Values from so many bytes on. */
  fromBytes: number;
  /** Takes back the memory of values that were written and cover their ArrayBuffer. */
  onReleased?: (buffer: ArrayBuffer) => void;
}

/** Rows of places that are looked through at a time. */
const PAGE = 1000;
/** A read that finds another record in a place looks up the row again: it was moved, or is gone. */
const READS_MAX = 5;
/** Of a file that is copied forward when `turnOver` is called: this share of it is dead at least. */
const SPARSE_SHARE = 0.25;

/** All places that rows name, for Extents.open. */
export async function* livePlaces(kv: KvPort, columns: SeparatedColumns): AsyncGenerator<RecordPlace> {
  for await (const { value } of placeRows(kv, columns, everything(columns))) yield decodePlace(value);
}

async function* placeRows(
  kv: KvPort,
  { placeColumn }: SeparatedColumns,
  { gte, lt }: { gte: Uint8Array; lt: Uint8Array },
): AsyncGenerator<KvRow> {
  for (let from = gte; ; ) {
    const rows = await kv.range({ column: placeColumn, gte: from, lt, limit: PAGE });
    yield* rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < PAGE) return;
    from = concatBytes(last.key, Uint8Array.of(0));
  }
}

function everything({ placePrefix }: SeparatedColumns): { gte: Uint8Array; lt: Uint8Array } {
  const lt = Uint8Array.from(placePrefix);
  const at = lt.length - 1;
  assert((lt[at] ?? 0xff) < 0xff, 'a prefix has a successor');
  lt[at] = (lt[at] as number) + 1;
  return { gte: placePrefix, lt };
}

export class SeparatedKv implements KvPort {
  readonly failed: Promise<Error>;
  readonly #kv: KvPort;
  readonly #extents: Extents;
  readonly #columns: SeparatedColumns;
  readonly #options: SeparatedOptions;
  /** Resolves when the commit before has been handed to the database: commits apply in the order of their calls. */
  #tail: Promise<void> = Promise.resolve();
  /** Resolves when all earlier commits have ended: they end in the order of their calls, too. */
  #ended: Promise<unknown> = Promise.resolve();
  /** Places by key, of commits that the database has and has not ended; null: none any more. */
  readonly #pending = new Map<string, { place: RecordPlace | null; count: number }>();
  /** Counts commits that touch the column: a read that finds nothing looks again where one came between. */
  #changes = 0;
  #waitingBytes = 0;

  constructor(kv: KvPort, parts: { extents: Extents; columns: SeparatedColumns; options: SeparatedOptions }) {
    this.#kv = kv;
    this.#extents = parts.extents;
    this.#columns = parts.columns;
    this.#options = parts.options;
    this.failed = Promise.race([kv.failed, parts.extents.failed]);
  }

  async getMany(column: string, keys: readonly Uint8Array[]): Promise<(Uint8Array | undefined)[]> {
    if (column !== this.#columns.column) return this.#kv.getMany(column, keys);
    return Promise.all(
      (await this.#places(keys)).map((place, at) => this.#read(must(keys[at], 'a key'), place)),
    );
  }

  async #places(keys: readonly Uint8Array[]): Promise<(RecordPlace | undefined)[]> {
    const rows = await this.#kv.getMany(
      this.#columns.placeColumn,
      keys.map((key) => this.#placeKey(key)),
    );
    return rows.map((row) => row && decodePlace(row));
  }

  async #read(key: Uint8Array, found: RecordPlace | undefined): Promise<Uint8Array | undefined> {
    let place = found;
    for (let attempt = 0; attempt < READS_MAX; attempt++) {
      const { column } = this.#columns;
      const before = this.#changes;
      const value =
        place === undefined
          ? (await this.#kv.getMany(column, [key]))[0]
          : await this.#extents.read(key, place);
      if (value !== undefined || (place === undefined && this.#changes === before)) return value;
      [place] = await this.#places([key]);
    }
    throw new Corruption('the row of a value names a place that has another one');
  }

  async range(range: KvRange): Promise<KvRow[]> {
    if (range.column !== this.#columns.column) return this.#kv.range(range);
    const cursor = this.#open(range);
    try {
      return await cursor.next(range.limit);
    } finally {
      cursor.close();
    }
  }

  cursor(bounds: KvBounds & { reverse?: boolean; bytesMax?: number }): KvCursor {
    return bounds.column === this.#columns.column ? this.#open(bounds) : this.#kv.cursor(bounds);
  }

  #open(bounds: KvBounds & { reverse?: boolean; bytesMax?: number; keysOnly?: boolean }): MergedCursor {
    const { placeColumn, placePrefix } = this.#columns;
    const { bytesMax: _, keysOnly: __, limit: ___, ...own } = bounds as KvRange;
    const places = {
      ...own,
      column: placeColumn,
      gte: this.#placeKey(bounds.gte),
      lt: this.#placeKey(bounds.lt),
    };
    return new MergedCursor(
      { values: this.#kv.cursor({ ...own, bytesMax: 1 }), places: this.#kv.cursor(places) },
      {
        ...bounds,
        prefixBytes: placePrefix.length,
        placeKey: (key) => this.#placeKey(key),
        read: async (key, place) => (await this.#read(key, place)) ?? undefined,
      },
    );
  }

  commit(rows: readonly KvPut[], options: KvCommitOptions = {}): Promise<void> {
    return this.#inOrder(this.#commit(rows, options));
  }

  #inOrder(work: Promise<void>): Promise<void> {
    const before = this.#ended;
    const ended = before.then(() => work);
    this.#ended = ended.catch(() => {});
    return ended;
  }

  async #commit(rows: readonly KvPut[], options: KvCommitOptions): Promise<void> {
    const { column } = this.#columns;
    const touched = rows.filter((row) => row.column === column);
    const large = touched.filter(({ value }) => value !== null && value.length >= this.#options.fromBytes);
    const largeBytes = large.reduce((sum, { value }) => sum + (value as Uint8Array).length, 0);
    const isFull = largeBytes > 0 && this.#waitingBytes + largeBytes > LIMITS.commitQueueBytesMax;
    if (isFull && this.#waitingBytes > 0 && options.isBounded !== true) throw new AppError('SlowDown');
    this.#waitingBytes += largeBytes;
    const turn = this.#takeTurn();
    let places: RecordPlace[] = [];
    try {
      places = await Promise.all(
        large.map(({ key, value }) => this.#extents.append({ key, body: value as Uint8Array })),
      );
    } catch (error) {
      turn.end();
      throw error;
    } finally {
      this.#waitingBytes -= largeBytes;
    }
    if (options.keep !== true) for (const { value } of large) this.#giveBack(value as Uint8Array);
    const placeOf = new Map(large.map((row, at) => [row, must(places[at], 'a place')]));
    await turn.begins;
    return this.#commitInTurn(rows, { options, touched, placeOf, turn });
  }

  async #commitInTurn(
    rows: readonly KvPut[],
    {
      options,
      touched,
      placeOf,
      turn,
    }: {
      options: KvCommitOptions;
      touched: readonly KvPut[];
      placeOf: ReadonlyMap<KvPut, RecordPlace>;
      turn: { end(): void };
    },
  ): Promise<void> {
    const { placeColumn } = this.#columns;
    let committing: Promise<void>;
    let replaced: RecordPlace[];
    try {
      replaced = await this.#placesNow(touched.map(({ key }) => key));
      const hadPlace = new Set(replaced.length === 0 ? [] : touched.map(({ key }) => toHex(key)));
      const changed = rows.flatMap((row): KvPut[] => {
        if (row.column !== this.#columns.column) return [row];
        const place = placeOf.get(row);
        const key = this.#placeKey(row.key);
        if (place !== undefined) {
          // What lay in the database under this key goes with the same commit.
          return [
            { ...row, value: null },
            { column: placeColumn, key, value: encodePlace(place) },
          ];
        }
        return hadPlace.has(toHex(row.key)) ? [row, { column: placeColumn, key, value: null }] : [row];
      });
      this.#changes++;
      for (const row of touched) this.#note(row.key, placeOf.get(row) ?? null);
      committing = this.#kv.commit(changed, options);
    } catch (error) {
      this.#extents.release([...placeOf.values()]);
      throw error;
    } finally {
      turn.end();
    }
    try {
      await committing;
      this.#changes++;
      this.#extents.release(replaced);
    } catch (error) {
      this.#extents.release([...placeOf.values()]);
      throw error;
    } finally {
      for (const { key } of touched) this.#forget(key);
    }
  }

  clear(range: KvBounds): Promise<void> {
    return this.#inOrder(this.#clear(range));
  }

  async #clear(range: KvBounds): Promise<void> {
    const { column, placeColumn } = this.#columns;
    const turn = this.#takeTurn();
    await turn.begins;
    if (range.column !== column) {
      const clearing = this.#kv.clear(range);
      turn.end();
      return clearing;
    }
    try {
      const places: RecordPlace[] = [];
      const bounds = { gte: this.#placeKey(range.gte), lt: this.#placeKey(range.lt) };
      // All that came before is readable first.
      await this.#kv.commit([], { sync: false });
      for await (const { value } of placeRows(this.#kv, this.#columns, bounds))
        places.push(decodePlace(value));
      this.#changes++;
      await Promise.all([this.#kv.clear(range), this.#kv.clear({ column: placeColumn, ...bounds })]);
      this.#changes++;
      this.#extents.release(places);
    } finally {
      turn.end();
    }
  }

  usage(): { liveBytes: number; pendingReclaimBytes: number } {
    const { liveBytes, pendingReclaimBytes } = this.#kv.usage();
    const extents = this.#extents.usage();
    return {
      liveBytes: liveBytes + extents.liveBytes,
      pendingReclaimBytes: pendingReclaimBytes + extents.deadBytes,
    };
  }

  /** Copies sparse files forward, beside what the database does for itself. */
  async turnOver(signal: AbortSignal): Promise<boolean> {
    const hasTurned = await this.#kv.turnOver(signal);
    let hasMoved = false;
    for (;;) {
      signal.throwIfAborted();
      const fileId = this.#extents.sparsest(SPARSE_SHARE);
      if (fileId === undefined || !(await this.#moveForward(fileId, signal))) return hasTurned || hasMoved;
      hasMoved = true;
    }
  }

  /** False: nothing could be moved, so the file would be met again. */
  async #moveForward(fileId: number, signal: AbortSignal): Promise<boolean> {
    let movedCount = 0;
    for await (const { head, offset } of this.#extents.heads(fileId)) {
      signal.throwIfAborted();
      const [place] = await this.#places([head.key]);
      if (place?.fileId !== fileId || place.offset !== offset || place.sequence !== head.sequence) continue;
      const body = await this.#extents.read(head.key, place);
      if (body === undefined) continue;
      if (crc32(body) !== place.bodyCrc32) continue;
      if (await this.#moveRow(head.key, place, body)) movedCount++;
    }
    return movedCount > 0;
  }

  async #moveRow(key: Uint8Array, from: RecordPlace, body: Uint8Array): Promise<boolean> {
    const to = await this.#extents.append({ key, body });
    const turn = this.#takeTurn();
    await turn.begins;
    let committing: Promise<void>;
    try {
      const [now] = await this.#placesNow([key]);
      if (now?.sequence !== from.sequence) {
        this.#extents.release([to]);
        return false;
      }
      this.#note(key, to);
      const row = { column: this.#columns.placeColumn, key: this.#placeKey(key), value: encodePlace(to) };
      committing = this.#kv.commit([row], { isBounded: true });
    } finally {
      turn.end();
    }
    try {
      await committing;
      this.#changes++;
      this.#extents.release([from]);
      return true;
    } finally {
      this.#forget(key);
    }
  }

  async close(): Promise<void> {
    await this.#tail;
    await this.#kv.close();
    await this.#extents.close();
  }

  /** `begins` resolves when all earlier ones have ended their turns. */
  #takeTurn(): { begins: Promise<void>; end(): void } {
    const begins = this.#tail;
    const turn = Promise.withResolvers<void>();
    this.#tail = begins.then(() => turn.promise);
    return { begins, end: () => turn.resolve() };
  }

  /** In a turn: with what earlier commits write, whether or not the database shows it yet. */
  async #placesNow(keys: readonly Uint8Array[]): Promise<RecordPlace[]> {
    const unknown = keys.filter((key) => !this.#pending.has(toHex(key)));
    const stored = unknown.length === 0 ? [] : await this.#places(unknown);
    const pending = keys.flatMap((key) => this.#pending.get(toHex(key))?.place ?? []);
    return [...pending, ...stored.flatMap((place) => place ?? [])];
  }

  #note(key: Uint8Array, place: RecordPlace | null): void {
    const name = toHex(key);
    this.#pending.set(name, { place, count: (this.#pending.get(name)?.count ?? 0) + 1 });
  }

  #forget(key: Uint8Array): void {
    const name = toHex(key);
    const pending = must(this.#pending.get(name), 'a commit under way');
    if (--pending.count === 0) this.#pending.delete(name);
  }

  #giveBack(value: Uint8Array): void {
    const { buffer, byteLength } = value;
    if (byteLength === buffer.byteLength && buffer instanceof ArrayBuffer) this.#options.onReleased?.(buffer);
  }

  #placeKey(key: Uint8Array): Uint8Array {
    return concatBytes(this.#columns.placePrefix, key);
  }
}

interface MergedBounds {
  reverse?: boolean;
  bytesMax?: number;
  keysOnly?: boolean;
  prefixBytes: number;
  placeKey(key: Uint8Array): Uint8Array;
  read(key: Uint8Array, place: RecordPlace): Promise<Uint8Array | undefined>;
}

/** Rows of both kinds in the order of keys. */
class MergedCursor implements KvCursor {
  readonly #values: KvCursor;
  readonly #places: KvCursor;
  readonly #bounds: MergedBounds;
  #value: KvRow | undefined;
  #place: KvRow | undefined;
  #isRead = false;

  constructor({ values, places }: { values: KvCursor; places: KvCursor }, bounds: MergedBounds) {
    this.#values = values;
    this.#places = places;
    this.#bounds = bounds;
  }

  seek(key: Uint8Array): void {
    this.#values.seek(key);
    this.#places.seek(this.#bounds.placeKey(key));
    this.#isRead = false;
  }

  async next(count: number): Promise<KvRow[]> {
    const {
      bytesMax = Number.POSITIVE_INFINITY,
      keysOnly = false,
      prefixBytes,
      reverse = false,
    } = this.#bounds;
    const rows: KvRow[] = [];
    let sizeBytes = 0;
    if (!this.#isRead) {
      [this.#value] = await this.#values.next(1);
      [this.#place] = await this.#places.next(1);
      this.#isRead = true;
    }
    while (rows.length < count && sizeBytes < bytesMax) {
      const [value, place] = [this.#value, this.#place];
      if (value === undefined && place === undefined) break;
      const placeKey = place?.key.subarray(prefixBytes);
      const order =
        value === undefined
          ? 1
          : placeKey === undefined
            ? -1
            : compareBytes(value.key, placeKey) * (reverse ? -1 : 1);
      if (order < 0 && value !== undefined) {
        rows.push(keysOnly ? { key: value.key, value: new Uint8Array(0) } : value);
        [this.#value] = await this.#values.next(1);
      } else if (place !== undefined && placeKey !== undefined) {
        const key = Uint8Array.from(placeKey);
        const body = keysOnly ? new Uint8Array(0) : await this.#bounds.read(key, decodePlace(place.value));
        if (body !== undefined) rows.push({ key, value: body });
        [this.#place] = await this.#places.next(1);
        // A value that is about to go is shown by its place alone.
        if (order === 0) [this.#value] = await this.#values.next(1);
      }
      const last = rows.at(-1);
      sizeBytes += (last?.key.length ?? 0) + (last?.value.length ?? 0);
    }
    return rows;
  }

  close(): void {
    this.#values.close();
    this.#places.close();
  }
}
