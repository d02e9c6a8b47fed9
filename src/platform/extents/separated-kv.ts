// A store of which one column keeps its large values in extents: the database has a row for each, which names the place. A value
// is durable before its row is committed, and the row is before it is acknowledged, so no row names what is not there, and what no
// row names is free space. Values that lay in the database before are read there, and moved by `separate`.
import { assert, must } from '../../base/assert.ts';
import { concatBytes, equalBytes, toHex } from '../../base/bytes/bytes.ts';
import { Corruption } from '../../base/corruption.ts';
import { freeMemory } from '../../base/free-memory.ts';
import { type ReadPage, readPage } from '../../base/read-page.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type {
  KvBounds,
  KvCommitOptions,
  KvCursor,
  KvPart,
  KvPort,
  KvPut,
  KvRange,
  KvRow,
} from '../../ports/kv.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import { type HangWatch, watchForHang } from '../disk/hang-watch.ts';
import { decodePlace, encodePlace, type RecordPlace } from './extent-record.ts';
import type { Extents } from './extents.ts';
import { MergedCursor } from './merged-cursor.ts';

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
  /** Notices a drive that does not answer a write (R20). */
  hangs?: HangWatch;
  clock: Pick<ClockPort, 'monotonicMs' | 'sleep'>;
}

/** Rows of places that are looked through at a time. */
const PAGE = 1000;
/** A read that finds another record in a place looks up the row again: it was moved, or is gone. */
const READS_MAX = 5;
/** Of a file that is copied forward when `turnOver` is called: more than this share of it is dead. */
const SPARSE_SHARE = 0.25;
/**
 * Up to this share it waits until nothing of it has been deleted for a while: more of it is going to be, and that need not be
 * copied then. It does not wait where more than SPARSE_SHARE of all files is dead.
 */
const MOSTLY_DEAD_SHARE = 0.5;
const DYING_MS = 120_000;
/** The database writes some 100 MiB to give back what it holds: not for less than this, beside much more in extents. */
const DATABASE_BYTES_MIN = 16 * 1024 * 1024;
const DATABASE_SHARE_MIN = 0.25;
/** Copied forward in one `turnOver` at most. */
const TURN_OVER_BYTES_MAX = 1024 * 1024 * 1024;
/** How long a file that could not be emptied is left alone. */
const STUCK_MS = 600_000;
/** Behind each record that is copied it rests for as long as that took, but no longer than this, in ms. */
const REST_MS_MAX = 100;

/** All places that rows name, for Extents.open; `lost` where rows cannot be read. */
export async function* livePlaces(
  kv: Pick<KvPort, 'range'>,
  columns: SeparatedColumns,
): AsyncGenerator<RecordPlace | 'lost'> {
  for await (const { rows, lost } of placePages(kv, columns, everything(columns))) {
    if (lost !== undefined) yield 'lost';
    for (const { value } of rows) yield decodePlace(value);
  }
}

/** Goes on behind rows that cannot be read. */
async function* placePages(
  kv: Pick<KvPort, 'range'>,
  { placeColumn: column }: SeparatedColumns,
  { gte, lt }: { gte: Uint8Array; lt: Uint8Array },
): AsyncGenerator<ReadPage> {
  for (let from: Uint8Array | undefined = gte; from !== undefined; ) {
    const page: ReadPage = await readPage(kv, { column, gte: from, lt, limit: PAGE });
    yield page;
    from = page.next;
  }
}

function everything({ placePrefix }: SeparatedColumns): { gte: Uint8Array; lt: Uint8Array } {
  const lt = Uint8Array.from(placePrefix);
  const at = lt.length - 1;
  assert((lt[at] ?? 0xff) < 0xff, 'a prefix has a successor');
  lt[at] = (lt[at] as number) + 1;
  return { gte: placePrefix, lt };
}

type CursorBounds = Parameters<KvPort['cursor']>[0];

/** `lost`: the row cannot be read. */
type KnownPlace = RecordPlace | 'lost';

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
  /** Of large values that were committed since `giveBack` was called: so much will be written until the next time. */
  #writtenBytes = 0;
  /** Counts commits in the order in which the database has them. */
  #order = 0;
  /** Places that rows named until a commit that is not synced yet: after a power loss they name them again. */
  #unsynced: { order: number; places: readonly RecordPlace[] }[] = [];
  /** Files that could not be emptied, as for a damaged record, or a commit under way: they are met again after a while. */
  readonly #stuck = new Set<number>();
  /** Open cursors over the column, and what was to be released since there is one. */
  #cursorCount = 0;
  readonly #heldBack: RecordPlace[] = [];
  #stuckSinceMs = 0;
  /** When something of a file was deleted last, of the last DYING_MS. */
  readonly #diedAtMs = new Map<number, number>();
  readonly #stopping = new AbortController();
  /** Of a write: final. */
  #failure: Error | undefined;
  /** Of commits that wait for extents, or for others that do. */
  readonly #waiting = new Set<(error: Error) => void>();

  constructor(kv: KvPort, parts: { extents: Extents; columns: SeparatedColumns; options: SeparatedOptions }) {
    this.#kv = kv;
    this.#extents = parts.extents;
    this.#columns = parts.columns;
    this.#options = parts.options;
    this.failed = Promise.race([kv.failed, parts.extents.failed, this.#hang()]);
    void this.failed.then((error) => this.#fail(error));
  }

  /** Of a drive that hangs, writes may end late: nobody waits for them. */
  #fail(error: Error): void {
    this.#failure ??= error;
    for (const reject of this.#waiting) reject(this.#failure);
  }

  /** What `work` gives, or rejects with, unless the store fails before. */
  #orFailure<T>(work: Promise<T>): Promise<T> {
    if (this.#failure !== undefined) {
      work.catch(() => {});
      return Promise.reject(this.#failure);
    }
    return new Promise<T>((resolve, reject) => {
      this.#waiting.add(reject);
      work.then(resolve, reject).finally(() => this.#waiting.delete(reject));
    });
  }

  /** Resolves only where the drive hangs. */
  async #hang(): Promise<Error> {
    const { hangs } = this.#options;
    const { signal } = this.#stopping;
    const hang = hangs && (await watchForHang(hangs, { underWay: () => this.#extents.underWay(), signal }));
    return hang ?? new Promise<never>(() => {});
  }

  async getMany(column: string, keys: readonly Uint8Array[]): Promise<(Uint8Array | undefined)[]> {
    if (column !== this.#columns.column) return this.#kv.getMany(column, keys);
    return Promise.all(
      (await this.#places(keys)).map((place, at) => this.#read(must(keys[at], 'a key'), place)),
    );
  }

  async readPart(key: Uint8Array, part: KvPart): Promise<Uint8Array | undefined> {
    const [place] = await this.#places([key]);
    return place && this.#extents.readPart(key, place, part);
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
      const last = place;
      let damage: unknown;
      const value =
        place === undefined
          ? (await this.#kv.getMany(column, [key]))[0]
          : await this.#extents.read(key, place).catch((error: unknown) => {
              if (!(error instanceof Corruption)) throw error;
              damage = error;
              return undefined;
            });
      if (value !== undefined || (place === undefined && this.#changes === before)) return value;
      [place] = await this.#places([key]);
      // What lay there may have been moved, or be gone: only what the row still names is damaged.
      if (damage !== undefined && place !== undefined && place.sequence === last?.sequence) throw damage;
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

  cursor(bounds: CursorBounds): KvCursor {
    return bounds.column === this.#columns.column ? this.#open(bounds) : this.#kv.cursor(bounds);
  }

  /** What its rows name stays where it is until it is closed. */
  #open(bounds: CursorBounds): MergedCursor {
    this.#cursorCount++;
    const { placePrefix } = this.#columns;
    return new MergedCursor(this.#openBoth(bounds), {
      ...bounds,
      prefixBytes: placePrefix.length,
      placeKey: (key) => this.#placeKey(key),
      read: async (key, place) => {
        const body = await this.#extents.read(key, place);
        if (body === undefined) throw new Corruption('the row of a value names a place that has another one');
        return body;
      },
      onClosed: () => {
        this.#cursorCount--;
        if (this.#cursorCount === 0) this.#extents.release(this.#heldBack.splice(0));
      },
    });
  }

  /** Of one moment: behind all commits that were called before, and before all later ones. */
  async #openBoth({ bytesMax: _, ...bounds }: CursorBounds): Promise<{ values: KvCursor; places: KvCursor }> {
    const earlier = this.#ended;
    const turn = this.#takeTurn();
    await turn.begins;
    await earlier;
    try {
      const { keysOnly, ...ofPlaces } = { ...bounds, isNow: true };
      const [gte, lt] = [this.#placeKey(bounds.gte), this.#placeKey(bounds.lt)];
      const places = this.#kv.cursor({ ...ofPlaces, column: this.#columns.placeColumn, gte, lt });
      const values = { ...bounds, isNow: true, ...(keysOnly !== true && { bytesMax: 1 }) };
      return { values: this.#kv.cursor(values), places };
    } finally {
      turn.end();
    }
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

  async #commit(given: readonly KvPut[], options: KvCommitOptions): Promise<void> {
    const { column } = this.#columns;
    const rows = lastOfKeys(given, column);
    const touched = rows.filter((row) => row.column === column);
    const large = touched.filter(({ value }) => value !== null && value.length >= this.#options.fromBytes);
    const largeBytes = large.reduce((sum, { value }) => sum + (value as Uint8Array).length, 0);
    const isFull = largeBytes > 0 && this.#waitingBytes + largeBytes > LIMITS.commitQueueBytesMax;
    if (isFull && this.#waitingBytes > 0 && options.isBounded !== true) throw new AppError('SlowDown');
    this.#waitingBytes += largeBytes;
    this.#writtenBytes += largeBytes;
    const turn = this.#takeTurn();
    let places: RecordPlace[] = [];
    try {
      const appended = large.map(({ key, value, crc32 }) =>
        this.#extents.append({
          key,
          body: value as Uint8Array,
          ...(crc32 !== undefined && { bodyCrc32: crc32 }),
        }),
      );
      places = await this.#orFailure(Promise.all(appended));
      await this.#orFailure(turn.begins);
    } catch (error) {
      this.#fail(error instanceof Error ? error : new Error(String(error)));
      turn.end();
      throw error;
    } finally {
      this.#waitingBytes -= largeBytes;
    }
    const placeOf = new Map(large.map((row, at) => [row, must(places[at], 'a place')]));
    await this.#commitInTurn(rows, { options, touched, placeOf, turn });
    // One that is refused is the caller's still.
    if (options.keep !== true) for (const { value } of large) this.#giveBack(value as Uint8Array);
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
    const order = ++this.#order;
    let committing: Promise<void>;
    let replaced: RecordPlace[];
    try {
      // What came before was not written: nothing goes past it.
      if (this.#failure !== undefined) throw this.#failure;
      const had = await this.#placesNow(touched.map(({ key }) => key));
      // What a lost row names counts as live until the next start.
      replaced = [...had.values()].filter((place) => place !== 'lost');
      const inDatabase = await this.#inDatabase(
        touched.filter((row) => placeOf.has(row) || had.has(toHex(row.key))).map(({ key }) => key),
      );
      const changed = rows.flatMap((row) => {
        if (row.column !== this.#columns.column) return [row];
        const name = toHex(row.key);
        return this.#rowsOf(row, placeOf.get(row), {
          hadPlace: had.has(name),
          isInDatabase: inDatabase.has(name),
        });
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
      for (const { fileId } of replaced) this.#diedAtMs.set(fileId, this.#options.clock.monotonicMs());
      this.#releaseAfter(replaced, { order, isSynced: options.sync !== false });
    } catch (error) {
      // Of a commit that has failed otherwise, nobody knows whether its rows are there: the store is over.
      if (error instanceof AppError) this.#extents.release([...placeOf.values()]);
      throw error;
    } finally {
      for (const { key } of touched) this.#forget(key);
    }
  }

  /** Commits are durable in order: what was not synced is, with the next one that is. */
  #releaseAfter(
    places: readonly RecordPlace[],
    { order, isSynced }: { order: number; isSynced: boolean },
  ): void {
    if (places.length > 0) this.#unsynced.push({ order, places });
    if (!isSynced) return;
    // One that was called before may end later, where it is synced and the other is not.
    for (const gone of this.#unsynced) if (gone.order <= order) this.#release(gone.places);
    this.#unsynced = this.#unsynced.filter((gone) => gone.order > order);
  }

  #release(places: readonly RecordPlace[]): void {
    if (this.#cursorCount > 0) this.#heldBack.push(...places);
    else this.#extents.release(places);
  }

  /** What the database is to do for a row: what lay elsewhere under its key goes with the same commit. */
  #rowsOf(
    row: KvPut,
    place: RecordPlace | undefined,
    { hadPlace, isInDatabase }: { hadPlace: boolean; isInDatabase: boolean },
  ): KvPut[] {
    const { placeColumn: column } = this.#columns;
    const key = this.#placeKey(row.key);
    const gone = isInDatabase ? [{ ...row, value: null }] : [];
    if (place !== undefined) return [...gone, { column, key, value: encodePlace(place) }];
    if (!hadPlace) return [row];
    return [...(row.value === null ? gone : [row]), { column, key, value: null }];
  }

  clear(range: KvBounds): Promise<void> {
    return this.#inOrder(this.#clear(range));
  }

  async #clear(range: KvBounds): Promise<void> {
    const { column, placeColumn } = this.#columns;
    const turn = this.#takeTurn();
    await turn.begins;
    if (this.#failure !== undefined) {
      turn.end();
      throw this.#failure;
    }
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
      for await (const { rows } of placePages(this.#kv, this.#columns, bounds))
        places.push(...rows.map(({ value }) => decodePlace(value)));
      this.#changes++;
      await Promise.all([this.#kv.clear(range), this.#kv.clear({ column: placeColumn, ...bounds })]);
      this.#changes++;
      this.#releaseAfter(places, { order: ++this.#order, isSynced: false });
    } finally {
      turn.end();
    }
  }

  usage(): ReturnType<KvPort['usage']> {
    const { liveBytes, pendingReclaimBytes } = this.#kv.usage();
    const extents = this.#extents.usage();
    return {
      liveBytes: liveBytes + extents.liveBytes - extents.overheadBytes,
      pendingReclaimBytes: pendingReclaimBytes + extents.deadBytes,
      largeWrites: this.#extents.isDirect ? 'direct' : 'buffered',
    };
  }

  giveBack(): void {
    const keepBytes = this.#writtenBytes;
    this.#writtenBytes = 0;
    this.#extents.giveBack(keepBytes);
  }

  /** Copies sparse files forward, beside what the database does for itself. */
  async turnOver(signal: AbortSignal): Promise<boolean> {
    const hasTurned = this.#isDatabaseDue() && (await this.#kv.turnOver(signal));
    let movedBytes = 0;
    let hasEmptied = false;
    const nowMs = this.#options.clock.monotonicMs();
    if (nowMs - this.#stuckSinceMs > STUCK_MS) {
      this.#stuck.clear();
      this.#stuckSinceMs = nowMs;
    }
    this.#extents.tidy(SPARSE_SHARE);
    while (movedBytes < TURN_OVER_BYTES_MAX) {
      signal.throwIfAborted();
      const fileId = this.#worthMoving();
      if (fileId === undefined) break;
      movedBytes += await this.#moveForward(fileId, signal).catch((error: unknown) => {
        // A file of which the disk has lost something: it stays.
        if (!(error instanceof Corruption)) throw error;
        return 0;
      });
      hasEmptied = true;
      // What is left of it is damaged, or is released by a commit that is not synced yet.
      if (this.#extents.fileIds().includes(fileId)) this.#stuck.add(fileId);
    }
    this.#extents.tidy(SPARSE_SHARE);
    return hasTurned || hasEmptied;
  }

  #isDatabaseDue(): boolean {
    const { pendingReclaimBytes } = this.#kv.usage();
    const { deadBytes } = this.#extents.usage();
    return pendingReclaimBytes >= DATABASE_BYTES_MIN || pendingReclaimBytes >= DATABASE_SHARE_MIN * deadBytes;
  }

  /** The file that gives most room for what is copied; undefined: none is worth it now. */
  #worthMoving(): number | undefined {
    const { liveBytes, deadBytes } = this.#extents.usage();
    const isMuchDead = deadBytes > SPARSE_SHARE * (liveBytes + deadBytes);
    const found = this.#extents.sparsest(isMuchDead ? SPARSE_SHARE : MOSTLY_DEAD_SHARE, this.#stuck);
    const sinceMs = this.#options.clock.monotonicMs() - DYING_MS;
    for (const [id, atMs] of this.#diedAtMs) if (atMs <= sinceMs) this.#diedAtMs.delete(id);
    return found ?? this.#extents.sparsest(SPARSE_SHARE, new Set([...this.#stuck, ...this.#diedAtMs.keys()]));
  }

  /** Returns the bytes that were copied. */
  async #moveForward(fileId: number, signal: AbortSignal): Promise<number> {
    const { clock } = this.#options;
    let movedBytes = 0;
    for await (const { head, offset, body } of this.#extents.records(fileId)) {
      signal.throwIfAborted();
      const [place] = await this.#places([head.key]);
      const isLive = place?.fileId === fileId && place.offset === offset && place.sequence === head.sequence;
      if (!isLive) {
        freeMemory(body);
        continue;
      }
      const beganAtMs = clock.monotonicMs();
      if (await this.#moveRow(head.key, place, body)) movedBytes += place.bodyBytes;
      freeMemory(body);
      await clock.sleep(Math.min(REST_MS_MAX, clock.monotonicMs() - beganAtMs), signal);
    }
    return movedBytes;
  }

  async #moveRow(key: Uint8Array, from: RecordPlace, body: Uint8Array): Promise<boolean> {
    // The body has just been compared with it.
    const { bodyCrc32 } = from;
    const to = await this.#orFailure(this.#extents.append({ key, body, bodyCrc32 }));
    const isStillThere = async () => {
      const now = (await this.#placesNow([key])).get(toHex(key));
      return now !== undefined && now !== 'lost' && now.sequence === from.sequence;
    };
    return this.#nameAnew(key, to, { isStillThere, left: [from], gone: [] });
  }

  async separate(key: Uint8Array): Promise<boolean> {
    const { column } = this.#columns;
    const inDatabase = async () => (await this.#kv.getMany(column, [key]))[0];
    if ((await this.#places([key]))[0] !== undefined) return false;
    const value = await inDatabase();
    if (value === undefined || value.length < this.#options.fromBytes) return false;
    const to = await this.#orFailure(this.#extents.append({ key, body: value }));
    const isStillThere = async () => {
      // A commit that has not ended may write, or delete, what the database does not show yet.
      if (this.#pending.has(toHex(key)) || (await this.#placesNow([key])).size > 0) return false;
      const now = await inDatabase();
      return now !== undefined && equalBytes(now, value);
    };
    return this.#nameAnew(key, to, { isStillThere, left: [], gone: [{ column, key, value: null }] });
  }

  /**
   * Has the row of a value name a new place of its bytes, where they are `isStillThere`: false otherwise. `left` are places, and
   * `gone` rows, that have them no more.
   */
  async #nameAnew(
    key: Uint8Array,
    to: RecordPlace,
    how: { isStillThere(): Promise<boolean>; left: readonly RecordPlace[]; gone: readonly KvPut[] },
  ): Promise<boolean> {
    const turn = this.#takeTurn();
    await turn.begins;
    const order = ++this.#order;
    let committing: Promise<void>;
    try {
      // What came before was not written: nothing goes past it.
      if (this.#failure !== undefined) throw this.#failure;
      if (!(await how.isStillThere())) {
        this.#extents.release([to]);
        return false;
      }
      this.#changes++;
      this.#note(key, to);
      const row = { column: this.#columns.placeColumn, key: this.#placeKey(key), value: encodePlace(to) };
      committing = this.#kv.commit([...how.gone, row], { isBounded: true });
    } catch (error) {
      this.#extents.release([to]);
      throw error;
    } finally {
      turn.end();
    }
    try {
      await committing;
      this.#changes++;
      this.#releaseAfter(how.left, { order, isSynced: true });
      return true;
    } finally {
      this.#forget(key);
    }
  }

  async close(): Promise<void> {
    this.#stopping.abort();
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

  /** In a turn: the places of those that have one, with what earlier commits write, whether or not the database shows it yet. */
  async #placesNow(keys: readonly Uint8Array[]): Promise<Map<string, KnownPlace>> {
    const found = new Map<string, KnownPlace>();
    const unknown: Uint8Array[] = [];
    // Before any wait: a commit that ends meanwhile may be younger than what the database is asked for.
    for (const key of keys) {
      const pending = this.#pending.get(toHex(key));
      if (pending === undefined) unknown.push(key);
      else if (pending.place !== null) found.set(toHex(key), pending.place);
    }
    const stored = await eachOrLost(unknown, (some) => this.#places(some));
    for (const [at, place] of stored.entries())
      if (place !== undefined) found.set(toHex(must(unknown[at], 'a key')), place);
    return found;
  }

  /** In a turn: the keys under which the database itself may have a value. Most are new, and cost a look at its filters. */
  async #inDatabase(keys: readonly Uint8Array[]): Promise<Set<string>> {
    const names = keys.map(toHex);
    const pending = new Set(names.filter((name) => this.#pending.has(name)));
    const stored = await eachOrLost(keys, (some) =>
      this.#kv.getMany(this.#columns.column, some, { expectsNone: true }),
    );
    return new Set(names.filter((name, at) => pending.has(name) || stored[at] !== undefined));
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

/** What `read` gives for each key; of one that the disk cannot read, `lost`. */
async function eachOrLost<T>(
  keys: readonly Uint8Array[],
  read: (keys: readonly Uint8Array[]) => Promise<T[]>,
): Promise<(T | 'lost')[]> {
  if (keys.length === 0) return [];
  try {
    return await read(keys);
  } catch (error) {
    if (!(error instanceof Corruption)) throw error;
    if (keys.length === 1) return ['lost'];
    return (await Promise.all(keys.map((key) => eachOrLost([key], read)))).flat();
  }
}

/** Of rows of the column that a batch has twice, the last one: as the database would have it. */
function lastOfKeys(rows: readonly KvPut[], column: string): readonly KvPut[] {
  const last = new Map<string, number>();
  let count = 0;
  for (const [at, row] of rows.entries()) {
    if (row.column !== column) continue;
    last.set(toHex(row.key), at);
    count++;
  }
  if (last.size === count) return rows;
  return rows.filter((row, at) => row.column !== column || last.get(toHex(row.key)) === at);
}
