// What the options of a column come to in RocksDB: names, block caches, memtables, compaction. The binding gives few
// choices: without `compaction` a column has two memtables of 64 MiB and tables that are never compressed; with 'level'
// the size of memtables is ours, but from level 2 on all is compressed.
import type { ColumnOptions } from '@nxtedition/rocksdb';

const MiB = 1024 * 1024;

export interface RocksdbColumnOptions {
  /** `sync`: rows of some KiB that are read in small numbers. `async`: large values; they are never cached. */
  reads: 'sync' | 'async';
  /** `ciphertext` is never compressed. */
  content: 'rows' | 'ciphertext';
  /** Block cache of a `sync` column. */
  cacheBytes?: number;
  /** Of `rows`. The slowest column to fill its memtables decides how long the log gets. */
  memtableBytes?: number;
  /** No key begins with another one: what is deleted comes back sooner then (rocksdb-space.ts). */
  isPrefixFree?: true;
}

/** A column as all of the adapter sees it. */
export interface ColumnPlan {
  readonly name: string;
  readonly nativeName: string;
  readonly native: ColumnOptions;
  readonly reads: RocksdbColumnOptions['reads'];
  readonly memtableBytes: number;
  /** Memtables that become one table. */
  readonly memtablesPerTable: number;
  readonly isPrefixFree: boolean;
  /** Of small rows, of which ranges are read on the calling thread. */
  readonly isScanned: boolean;
}

/** RocksDB insists on a column of this name. */
const FIRST_COLUMN = 'default';
const CACHE_BYTES_DEFAULT = 32 * MiB;
/** Small ones stay warm in the processor's caches and keep the log to be replayed short. */
const ROWS_MEMTABLE_BYTES_DEFAULT = 8 * MiB;
const CIPHERTEXT_MEMTABLE_BYTES = 64 * MiB;

export function planColumns(columns: Readonly<Record<string, RocksdbColumnOptions>>): ColumnPlan[] {
  return Object.entries(columns).map(([name, options], index) => {
    const { reads, content, isPrefixFree = false, memtableBytes = ROWS_MEMTABLE_BYTES_DEFAULT } = options;
    const cacheSize = reads === 'sync' ? (options.cacheBytes ?? CACHE_BYTES_DEFAULT) : 0;
    const isScanned = reads === 'sync' && content === 'rows';
    const plan = { name, nativeName: index === 0 ? FIRST_COLUMN : name, reads, isPrefixFree, isScanned };
    if (content === 'ciphertext') {
      const native = { compression: false, cacheSize };
      return { ...plan, native, memtableBytes: CIPHERTEXT_MEMTABLE_BYTES, memtablesPerTable: 1 };
    }
    // The binding divides this budget by four for the size of a memtable, and joins two of them.
    const memtableMemoryBudget = 4 * memtableBytes;
    const native = { compression: false, cacheSize, compaction: 'level' as const, memtableMemoryBudget };
    return { ...plan, native, memtableBytes, memtablesPerTable: 2 };
  });
}
