// The ordered key-value store under shards and chunks. Contract, held by tests/contract/kv.test.ts for every adapter:
// - Keys have 1 to LIMITS.kvKeyBytesMax bytes and order by them, unsigned; the key of eight bytes 0xff is the store's
//   own. Columns are separate key spaces, fixed at open.
// - `commit` is atomic over columns, durable when it resolves, and applied in the order of the calls. Calls made while
//   a sync is under way share the next one (group commit). The caller gives up ownership of the bytes it passes: large
//   values that cover their whole ArrayBuffer are moved away. With `keep` they stay readable, and unchanged, for it.
// - A commit with `sync: false` resolves when it is readable. It is durable with the next synced commit, in order: what
//   a power loss leaves is a beginning of the sequence of commits, up to the last synced one at least.
// - Reads see every commit that has resolved, never a part of one. A reply's bytes may be others' as well: nobody writes
//   to them; large ones may lie in memory that cannot be transferred to another thread.
// - A read of bytes that the disk has lost rejects with Corruption. Rows beside them may be lost with them; the store goes
//   on otherwise.
// - `clear` deletes a range of one column without reading it, so that what cannot be read goes as well: no range meets
//   it, while a row of it that is asked for by its key may reject with Corruption until it is written anew. It takes its
//   turn among commits, and is readable when it resolves; durable, as a whole, with the next synced commit, in order.
// - A commit that would exceed LIMITS.commitQueueBytesMax of waiting bytes rejects with AppError SlowDown: nothing of it
//   is written, and the store goes on. With `isBounded` it is taken all the same: the caller sees to what it has waiting.
// - A failed write or sync is final (R20): the promise rejects, `failed` settles, and every later commit rejects. With
//   Corruption when the store has met bytes that it cannot read while it was tidying up: opening it again will not help.

export interface KvPut {
  column: string;
  key: Uint8Array;
  /** null deletes. */
  value: Uint8Array | null;
  /** CRC32 of the value, where the caller knows it: a store that keeps one need not take it again. */
  crc32?: number;
}

export interface KvBounds {
  column: string;
  /** Inclusive lower bound. */
  gte: Uint8Array;
  /** Exclusive upper bound. */
  lt: Uint8Array;
}

export interface KvRange extends KvBounds {
  reverse?: boolean;
  /** Rows at most. */
  limit: number;
  /** Stops after the row that reaches it. */
  bytesMax?: number;
  /** Values are left out: they come back empty. */
  keysOnly?: boolean;
}

export interface KvRow {
  key: Uint8Array;
  value: Uint8Array;
}

/** A consistent view of one column that can be re-positioned: listings skip with it (L3). Close it. */
export interface KvCursor {
  /** Positions at the first key >= `key` (<= in reverse). */
  seek(key: Uint8Array): void;
  /**
   * Up to `count` rows from the position on, which moves behind them; fewer only at the end, or where the cursor has
   * `bytesMax`: then it may stop after the row that reaches it, and none is the end.
   */
  next(count: number): Promise<KvRow[]>;
  close(): void;
}

export interface KvCommitOptions {
  /** The caller goes on reading the values: none is moved. */
  keep?: boolean;
  /** True when left out. */
  sync?: boolean;
  /** Nobody waits for it: it goes with the next one, or after some milliseconds. */
  isPatient?: boolean;
  /** Never refused for what waits already. */
  isBounded?: boolean;
}

/** Bytes of a value. */
export interface KvPart {
  readonly offsetBytes: number;
  readonly sizeBytes: number;
}

export interface KvReadOptions {
  /** Most keys are new: a look at the database's filters is all that it takes, and is no work for another thread. */
  expectsNone?: boolean;
}

export interface KvPort {
  getMany(
    column: string,
    keys: readonly Uint8Array[],
    options?: KvReadOptions,
  ): Promise<(Uint8Array | undefined)[]>;
  /**
   * Of a store that keeps large values of one column outside of its database: a part of such a value, in memory of its own, as it
   * lies there: nothing says that it is the value's. undefined: there is none under this key, or it is read as a whole only.
   */
  readPart?(key: Uint8Array, part: KvPart): Promise<Uint8Array | undefined>;
  range(range: KvRange): Promise<KvRow[]>;
  /**
   * `bytesMax`: of each `next`. `keysOnly`: as of a range. `isNow`: it sees the moment of the call, and not one between it and the
   * first answer; the caller may have to wait for deleted rows.
   */
  cursor(
    bounds: KvBounds & { reverse?: boolean; bytesMax?: number; keysOnly?: boolean; isNow?: boolean },
  ): KvCursor;
  /** Resolves when the rows are synced. An empty batch resolves once all earlier ones are, the unsynced ones too. */
  commit(rows: readonly KvPut[], options?: KvCommitOptions): Promise<void>;
  clear(range: KvBounds): Promise<void>;
  /** Resolves with the error when the store has failed for good; never rejects. */
  readonly failed: Promise<Error>;
  /**
   * Approximate bytes stored, and bytes deleted that the disk still holds, where the adapter knows. `largeWrites`: how large
   * values come to the disk, where they do not go through the database: `buffered` where the file system has no direct I/O.
   */
  usage(): { liveBytes: number; pendingReclaimBytes: number; largeWrites?: 'direct' | 'buffered' };
  /**
   * Brings what was deleted so far to where the store can give its room back, which it then does by itself within
   * seconds. May write some 100 MiB to do so, a little at a time. False when nothing was deleted since the last time.
   */
  turnOver(signal: AbortSignal): Promise<boolean>;
  /**
   * Gives back room that takes no work to give back, and that it keeps for what is written next. Called every few seconds: nothing
   * is kept where nothing was written since.
   */
  giveBack?(): void;
  /**
   * Of a store that keeps large values of one column outside of its database: moves a value of that column there which was
   * written before it did, durably. False: there is none under this key that is to be moved.
   */
  separate?(key: Uint8Array): Promise<boolean>;
  /** Of one whose drive hangs it resolves when the drive answers, or rejects with the error by which it does. */
  close(): Promise<void>;
}
