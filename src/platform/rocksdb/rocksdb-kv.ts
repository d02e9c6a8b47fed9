// The key-value port over RocksDB. Reads run here: small rows on the calling thread (a thread hop costs more than the
// read), large ones on the library's threads. Writes go through commit-queue.ts to one committer thread.
// The binding has no snapshots, no flush and no range delete inside a batch (L1 to L4), and its iterators seek on the
// calling thread, when they are made as well: whichever thread rows are read by, a drive that hangs may stop this one. So may
// rows that were deleted, and where they may be many, a thread of its own has the iterator (range-reader.ts). A table
// of which a block is lost can be read around, and cleared without being read; but once it is to be merged with others the
// database takes no more writes, neither then nor after it is opened again.
import { type Column, type ReadOptions, RocksLevel } from '@nxtedition/rocksdb';
import { must } from '../../base/assert.ts';
import type {
  KvBounds,
  KvCommitOptions,
  KvCursor,
  KvPort,
  KvPut,
  KvRange,
  KvReadOptions,
  KvRow,
} from '../../ports/kv.ts';
import { LIMITS } from '../../types/limits.ts';
import type { HangWatch } from '../disk/hang-watch.ts';
import { type CommitGroup, type CommitQueue, startCommitQueue } from './commit-queue.ts';
import { DeletedRows } from './deleted-rows.ts';
import { EmptyRanges } from './empty-ranges.ts';
import { RangeReader } from './range-reader.ts';
import { readAsync } from './rocksdb-async-reads.ts';
import { type ColumnPlan, planColumns, type RocksdbColumnOptions } from './rocksdb-columns.ts';
import { toReadError } from './rocksdb-corruption.ts';
import { RocksCursor, type ScanBounds } from './rocksdb-cursor.ts';
import { RocksdbSpace } from './rocksdb-space.ts';

export interface RocksdbKvOptions {
  folder: string;
  /** Fixed for the life of the folder, order included: `usage` reports the first one (a limit of the binding). */
  columns: Readonly<Record<string, RocksdbColumnOptions>>;
  /** Takes back the ArrayBuffers of large values once they are written, so that warm memory is used again. */
  onReleased?: (buffer: ArrayBuffer) => void;
  /** Called for every write. */
  onGroup?: (group: CommitGroup) => void;
  /** When a write that is not answered has failed. Without it one is waited for as long as it takes. */
  hangs?: HangWatch;
  /** How many such databases this process has, each on a drive of its own; default 1. */
  databaseCount?: number;
}

/** Why a folder could not be opened. `LOCKED`: another process, or another part of this one, has it open. */
export class KvOpenError extends Error {
  override name = 'KvOpenError';
  readonly code: 'LOCKED' | 'CORRUPT' | 'FAILED';

  constructor(code: KvOpenError['code'], message: string, cause: unknown) {
    super(message, { cause });
    this.code = code;
  }
}

const BACKGROUND_THREADS = 2;
/**
 * Background threads are the process's, a quarter of them for flushes, without which a database takes no more writes. A drive
 * that hangs holds one for each flush of its columns, three at most: with so many for each drive the others have some left.
 */
const THREADS_PER_DRIVE = 8;

/**
 * Open databases are kept here: the committer thread uses the same native object, and a collected owner would close
 * it beneath that thread.
 */
const openDatabases = new Set<RocksLevel>();

interface OpenColumn {
  column: Column;
  nativeName: string;
  reads: RocksdbColumnOptions['reads'];
  /** Of a column whose ranges are read on this thread. */
  deleted: DeletedRows | undefined;
}

type CursorBounds = ScanBounds & { column: string; bytesMax?: number; keysOnly?: boolean; isNow?: boolean };

/** A store whose database other threads of the process can open as well, by its handle ({@link attachRocksdbKv}). */
export interface SharedKv extends KvPort {
  /** Valid until the store is closed. */
  readonly handle: bigint;
}

/** Opens or creates the folder. Throws {@link KvOpenError}. */
export async function openRocksdbKv(options: RocksdbKvOptions): Promise<SharedKv> {
  const { folder, databaseCount = 1 } = options;
  const columns = planColumns(options.columns);
  const threads = databaseCount > 1 ? THREADS_PER_DRIVE * databaseCount : BACKGROUND_THREADS;
  const db = await openDatabase(folder, columns, threads);
  return openOver(db, columns, { ...options, isOwner: true });
}

/**
 * A store over a database that another thread of this process has opened with the same columns, with a committer thread of its
 * own. Two such stores see each other's rows, but each keeps in memory which ranges are empty: they must not write the same rows.
 * It is closed before the database's owner is, which alone closes the database.
 */
export async function attachRocksdbKv(
  options: Pick<RocksdbKvOptions, 'columns' | 'onGroup'> & { handle: bigint },
): Promise<KvPort> {
  const db = new RocksLevel(options.handle);
  await db.open();
  return openOver(db, planColumns(options.columns), { ...options, isOwner: false });
}

async function openOver(
  db: RocksLevel,
  columns: readonly ColumnPlan[],
  options: Pick<RocksdbKvOptions, 'onReleased' | 'onGroup' | 'hangs'> & { isOwner: boolean },
): Promise<SharedKv> {
  const { onReleased, onGroup, hangs, isOwner } = options;
  openDatabases.add(db);
  const starting = startCommitQueue({
    handle: db.handle,
    columns,
    ...(onReleased === undefined ? {} : { onReleased }),
    ...(onGroup === undefined ? {} : { onGroup }),
    ...(hangs === undefined ? {} : { hangs, isStalled: () => areWritesStalled(db) }),
  });
  const queue = await starting.catch(async (error) => {
    openDatabases.delete(db);
    if (isOwner) await db.close();
    throw error;
  });
  const open = columns.map(({ name, nativeName, reads, isScanned }): [string, OpenColumn] => {
    const column = must(db.columns[nativeName], `column ${name}`);
    return [name, { column, nativeName, reads, deleted: isScanned ? new DeletedRows() : undefined }];
  });
  const space = new RocksdbSpace({ db, columns, commit: (rows, how) => queue.commit(rows, how) });
  return new RocksdbKv({ db, queue, space, columns: new Map(open), isOwner });
}

async function openDatabase(
  folder: string,
  columns: readonly ColumnPlan[],
  parallelism: number,
): Promise<RocksLevel> {
  const db = new RocksLevel(folder);
  try {
    await db.open({
      createIfMissing: true,
      walCompression: false,
      parallelism,
      columns: Object.fromEntries(columns.map(({ nativeName, native }) => [nativeName, native])),
    });
  } catch (error) {
    throw toOpenError(folder, error);
  }
  return db;
}

/** Stopped, or slowed down, until tables have been merged. */
function areWritesStalled(db: RocksLevel): boolean {
  const read = (property: string) => Number(db.getProperty(`rocksdb.${property}`));
  return read('is-write-stopped') > 0 || read('actual-delayed-write-rate') > 0;
}

function toOpenError(folder: string, error: unknown): KvOpenError {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const nativeCode = (cause as { code?: string }).code;
  const text = cause instanceof Error ? cause.message : String(cause);
  if (nativeCode === 'LEVEL_LOCKED')
    return new KvOpenError('LOCKED', `${folder} is in use by another process`, cause);
  if (nativeCode === 'LEVEL_CORRUPTION')
    return new KvOpenError('CORRUPT', `${folder} is damaged: ${text}`, cause);
  return new KvOpenError('FAILED', `${folder} cannot be opened: ${text}`, cause);
}

interface OpenCursor extends KvCursor {
  closed(): Promise<void>;
}

class RocksdbKv implements SharedKv {
  readonly failed: Promise<Error>;
  readonly handle: bigint;
  readonly #isOwner: boolean;
  readonly #db: RocksLevel;
  readonly #queue: CommitQueue;
  readonly #space: RocksdbSpace;
  readonly #columns: ReadonlyMap<string, OpenColumn>;
  readonly #cursors = new Set<OpenCursor>();
  readonly #rangeReader: RangeReader;
  /** Reads on the library's threads: the database may not close beneath them. */
  readonly #asyncReads = new Set<Promise<unknown>>();
  readonly #emptyRanges = new EmptyRanges();
  #isClosed = false;
  #hasFailed = false;

  constructor(parts: {
    db: RocksLevel;
    queue: CommitQueue;
    space: RocksdbSpace;
    columns: ReadonlyMap<string, OpenColumn>;
    isOwner: boolean;
  }) {
    this.handle = parts.db.handle;
    this.#isOwner = parts.isOwner;
    this.#db = parts.db;
    this.#rangeReader = new RangeReader(parts.db.handle);
    this.#queue = parts.queue;
    this.#space = parts.space;
    this.#columns = parts.columns;
    this.failed = parts.queue.failed;
    this.failed.then(() => {
      this.#hasFailed = true;
    });
  }

  async getMany(
    column: string,
    keys: readonly Uint8Array[],
    { expectsNone = false }: KvReadOptions = {},
  ): Promise<(Uint8Array | undefined)[]> {
    const { column: native, reads } = this.#column(column);
    if (reads === 'sync' || expectsNone) {
      const options = { column: native, valueEncoding: 'buffer', fillCache: reads === 'sync' } as const;
      const values = keys.length <= LIMITS.syncReadKeysMax ? this.#getManyHere(keys, options) : undefined;
      return values ?? this.#getManyAsync(keys, options);
    }
    // Nothing of such a column is cached, so the memory that was read into belongs to this value alone.
    return this.#getManyAsync(keys, {
      column: native,
      valueEncoding: 'buffer',
      fillCache: false,
      unsafe: true,
    });
  }

  async range(range: KvRange): Promise<KvRow[]> {
    if (range.limit <= 0) return [];
    // What has failed is not answered from memory.
    const look = this.#isClosed || this.#hasFailed ? undefined : this.#emptyRanges.look(range);
    if (look?.isEmpty) return [];
    const cursor = this.#openCursor(range, { isAtHead: true });
    try {
      const rows = await cursor.next(range.limit);
      if (rows.length === 0) look?.wasEmpty();
      return rows;
    } finally {
      cursor.close();
    }
  }

  cursor(bounds: Parameters<KvPort['cursor']>[0]): KvCursor {
    return this.#openCursor(bounds, { isAtHead: false });
  }

  commit(rows: readonly KvPut[], options?: KvCommitOptions): Promise<void> {
    this.#space.note(rows);
    for (const { column, key, value } of rows) {
      if (value === null) this.#columns.get(column)?.deleted?.note(key);
    }
    return this.#emptyRanges.during(this.#queue.commit(rows, options));
  }

  clear(range: KvBounds): Promise<void> {
    this.#space.noteCleared(range);
    return this.#emptyRanges.during(this.#queue.clear(range));
  }

  usage(): { liveBytes: number; pendingReclaimBytes: number } {
    if (this.#isClosed) throw new Error('the store is closed');
    return this.#space.usage();
  }

  turnOver(signal: AbortSignal): Promise<boolean> {
    return this.#space.turnOver(signal);
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#space.stop();
    const lateFailure = await this.#queue.stop();
    await Promise.allSettled(this.#asyncReads);
    await Promise.all([...this.#cursors].map((cursor) => cursor.closed()));
    await this.#rangeReader.stop();
    try {
      if (this.#isOwner) await this.#db.close();
    } catch (error) {
      // A store whose writes have failed cannot close well either; its owner has the error from `failed`.
      if (!this.#hasFailed) throw error;
    } finally {
      openDatabases.delete(this.#db);
    }
    if (lateFailure !== undefined) throw lateFailure;
  }

  #column(name: string): OpenColumn {
    if (this.#isClosed) throw new Error('the store is closed');
    return must(this.#columns.get(name), `unknown column ${name}`);
  }

  /** undefined: they are too large for this thread. All that is asked for is of one moment, so none of it counts then. */
  #getManyHere(keys: readonly Uint8Array[], options: ReadOptions): (Uint8Array | undefined)[] | undefined {
    try {
      const bounded = { ...options, highWaterMarkBytes: LIMITS.syncReadBytesMax };
      const values = this.#db._getManySync(keys, bounded);
      return values.includes(null) ? undefined : (values as (Uint8Array | undefined)[]);
    } catch (error) {
      throw toReadError(error);
    }
  }

  #getManyAsync(keys: readonly Uint8Array[], options: ReadOptions): Promise<(Uint8Array | undefined)[]> {
    const read = readAsync(this.#db, keys, options).catch((error: unknown) => {
      throw toReadError(error);
    });
    this.#asyncReads.add(read);
    const done = () => this.#asyncReads.delete(read);
    read.then(done, done);
    return read;
  }

  /** `isAtHead`: its range begins where ranges like it do. */
  #openCursor(bounds: CursorBounds, { isAtHead }: { isAtHead: boolean }): OpenCursor {
    const { column, nativeName, reads, deleted } = this.#column(bounds.column);
    const onClosed = () => this.#cursors.delete(cursor);
    const mayWait =
      bounds.isNow !== true && (isAtHead ? deleted?.mayBeManyAtHead(bounds) : deleted?.mayBeMany(bounds));
    let cursor: OpenCursor;
    if (mayWait) {
      const { gte, lt, reverse = false, bytesMax, keysOnly = false } = bounds;
      const remote = { nativeName, gte, lt, reverse, keysOnly, ...(bytesMax !== undefined && { bytesMax }) };
      const onTook = (durationMs: number) => isAtHead && deleted?.took(bounds, durationMs);
      cursor = this.#rangeReader.cursor(remote, onTook, onClosed);
    } else {
      const options = { ...bounds, column, isSync: reads === 'sync' };
      const onTook = deleted && ((durationMs: number) => deleted.tookHere(bounds, durationMs));
      cursor = new RocksCursor(this.#db, options, onClosed, onTook);
    }
    this.#cursors.add(cursor);
    return cursor;
  }
}
