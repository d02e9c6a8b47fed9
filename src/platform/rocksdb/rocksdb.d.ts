// The part of @nxtedition/rocksdb that rocksdb-kv.ts uses; the package ships no types. The underscored methods are the
// ones beneath abstract-level's checks and encodings: they take and give plain bytes.
declare module '@nxtedition/rocksdb' {
  import type { kUnref } from '@nxtedition/rocksdb/util.js';

  /** Opaque reference to a column family. */
  export interface Column {
    readonly __column: never;
  }

  export interface OpenOptions {
    createIfMissing?: boolean;
    walCompression?: boolean;
    pipelinedWrite?: boolean;
    parallelism?: number;
    columns?: Record<string, ColumnOptions>;
  }

  export interface ColumnOptions {
    /** Unset: RocksDB's own defaults (levelled, memtables of 64 MiB). 'level' compresses from level 2 on. */
    compaction?: 'level' | 'universal';
    /** Read only with `compaction`: a memtable is a quarter of it. */
    memtableMemoryBudget?: number;
    compression?: boolean;
    /** Block cache; 0: none. */
    cacheSize?: number;
    blockSize?: number;
  }

  export interface ReadOptions {
    column?: Column;
    valueEncoding: 'buffer';
    fillCache?: boolean;
    /** The value is the memory that RocksDB read into, not a copy. */
    unsafe?: boolean;
  }

  export interface IteratorOptions {
    column?: Column;
    gte: Uint8Array;
    lt: Uint8Array;
    reverse: boolean;
    keyEncoding: 'buffer';
    valueEncoding: 'buffer';
    /** False: keys alone. */
    values?: boolean;
    fillCache?: boolean;
    highWaterMarkBytes?: number;
  }

  /** Keys and values in turn; values are undefined where they were not asked for. */
  export interface IteratorPage {
    rows: (Uint8Array | undefined)[];
    finished: boolean;
  }

  export interface RocksIterator {
    _seekSync(target: Uint8Array): void;
    _nextvSync(count: number, options: object): IteratorPage;
    _nextvAsync(
      count: number,
      options: object,
      done: (error: Error | null, page: IteratorPage) => void,
    ): void;
    _closeSync(): void;
  }

  export interface RocksBatch {
    _put(key: Uint8Array, value: Uint8Array, options: { column: Column }): void;
    _del(key: Uint8Array, options: { column: Column }): void;
    _clear(): void;
    /** Blocks the calling thread, sync included. */
    _writeSync(options: { sync: boolean }): void;
  }

  export class RocksLevel {
    constructor(locationOrHandle: string | bigint);
    open(options?: OpenOptions): Promise<void>;
    close(): Promise<void>;
    readonly handle: bigint;
    readonly columns: Record<string, Column>;
    getProperty(name: string): string;
    detachResource(resource: unknown): void;
    /** null: not read, because of `highWaterMarkBytes`. */
    _getManySync(
      keys: readonly Uint8Array[],
      options: ReadOptions & { highWaterMarkBytes?: number },
    ): (Uint8Array | null | undefined)[];
    _getManyAsync(
      keys: readonly Uint8Array[],
      options: ReadOptions,
      done: (error: Error | null, values: (Uint8Array | undefined)[]) => void,
    ): void;
    _iterator(options: IteratorOptions): RocksIterator;
    _chainedBatch(): RocksBatch;
    /** Writes at once, not synced, before it returns; what it throws goes to `done`, behind the present turn. */
    _clear(
      options: { column: Column; gte: Uint8Array; lt: Uint8Array },
      done: (error: Error | null) => void,
    ): void;
    /** One less of those that keep the database open. */
    [kUnref](): void;
  }
}

declare module '@nxtedition/rocksdb/util.js' {
  export const kUnref: unique symbol;
}
