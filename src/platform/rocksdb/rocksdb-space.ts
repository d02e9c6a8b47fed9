// How much of a database is garbage, and how its room comes back to the file system. RocksDB drops deleted rows when it
// merges tables, so a delete frees nothing as long as it lies in a memtable; the binding has no flush. So memtables are
// turned over: filled up with bytes that nobody can see until RocksDB writes them out. The same shortens the log, which
// is as long as the oldest memtable is old. When garbage is worth the price is not for here (chunks/disk/reclaim.ts).
import type { RocksLevel } from '@nxtedition/rocksdb';
import { must } from '../../base/assert.ts';
import type { KvBounds, KvPort, KvPut } from '../../ports/kv.ts';
import { LIMITS } from '../../types/limits.ts';
import type { ColumnPlan } from './rocksdb-columns.ts';

/** Written beside each delete of a prefix-free column, see {@link deleteBeside}. */
const WEIGHTS_PER_DELETE = 7;
const weightKey = new Uint8Array(LIMITS.kvKeyBytesMax + 1);
const FILLER_PIECE_BYTES = 1024 * 1024;
/** RocksDB's own bound of the log was measured at more than 1 GiB, and the binding does not pass another one on. */
const LOG_BYTES_MAX = 256 * 1024 * 1024;
/** KvPort: no caller uses it. */
const OWN_KEY = new Uint8Array(8).fill(0xff);

/**
 * Keys to delete along with `key`, which no row has. RocksDB compacts by size and counts a surplus of tombstones in a
 * table as twice the bytes of a mean row each; without it a few deletes of large rows rest in an upper level for ever.
 * Measured with 1.3 GiB in rows of 1 MiB: of 70 deleted at one end, and of every 16th, nothing came back after several
 * memtables; with weights all of it after the first. They go where their row goes, and with it. A key is valid during
 * its call only.
 */
export function deleteBeside(key: Uint8Array, deleteKey: (beside: Uint8Array) => void): void {
  weightKey.set(key);
  const beside = weightKey.subarray(0, key.length + 1);
  for (let index = 0; index < WEIGHTS_PER_DELETE; index++) {
    beside[key.length] = index;
    deleteKey(beside);
  }
}

/** What is known of the tables of the first column. */
interface TableTotals {
  putCount: number;
  deleteCount: number;
  valueBytes: number;
}

export class RocksdbSpace {
  readonly #db: RocksLevel;
  readonly #columns: readonly ColumnPlan[];
  readonly #commit: KvPort['commit'];
  /** Of the first column: the last delete since its memtable was turned over. */
  #lastDeleted: Uint8Array | undefined;
  /** By column, since the log was last shortened. */
  readonly #loggedBytes = new Map<string, number>();
  /** Columns with rows that came after they were last turned over here. */
  readonly #touched = new Set<string>();
  #shortening: Promise<void> | undefined;
  readonly #stopping = new AbortController();
  #totals: { version: string; tables: TableTotals } | undefined;

  constructor(parts: { db: RocksLevel; columns: readonly ColumnPlan[]; commit: KvPort['commit'] }) {
    this.#db = parts.db;
    this.#columns = parts.columns;
    this.#commit = parts.commit;
  }

  /** Call it for every commit. */
  note(rows: readonly KvPut[]): void {
    const { name } = this.#first();
    for (const { column, key, value } of rows) {
      if (value === null && column === name) this.#lastDeleted = key;
      const sizeBytes = key.length + (value?.length ?? 0);
      this.#loggedBytes.set(column, (this.#loggedBytes.get(column) ?? 0) + sizeBytes);
      this.#touched.add(column);
    }
    if (this.#shortening !== undefined || this.#logBytes() < LOG_BYTES_MAX) return;
    // The store's `failed` reports a failed write; one that was refused, too many waiting, is for the next time.
    this.#shortening = this.#shortenLog()
      .catch(() => {})
      .finally(() => {
        this.#shortening = undefined;
      });
  }

  /** Called with every range that is cleared. */
  noteCleared({ column, gte }: KvBounds): void {
    if (column === this.#first().name) this.#lastDeleted = gte;
    this.#touched.add(column);
  }

  /** Resolves when it writes nothing more. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#shortening;
  }

  /** Of the first column, the only one that the binding reports. In uncompressed bytes. */
  usage(): { liveBytes: number; pendingReclaimBytes: number } {
    const tables = this.#tables();
    const memtablePutCount = this.#ofMemtables('entries') - this.#ofMemtables('deletes');
    const memtableBytes = memtablePutCount > 0 ? this.#read('cur-size-all-mem-tables') : 0;
    const heldBytes = tables.valueBytes + memtableBytes;
    const putCount = tables.putCount + memtablePutCount;
    const deleteCount = tables.deleteCount + this.#ofMemtables('deletes');
    const writtenPerDelete = this.#first().isPrefixFree ? 1 + WEIGHTS_PER_DELETE : 1;
    const goneCount = Math.min(putCount, deleteCount / writtenPerDelete);
    const pendingReclaimBytes = putCount > 0 ? Math.round((goneCount / putCount) * heldBytes) : 0;
    return { liveBytes: heldBytes - pendingReclaimBytes, pendingReclaimBytes };
  }

  /** As KvPort.turnOver. */
  async turnOver(signal: AbortSignal): Promise<boolean> {
    const near = this.#lastDeleted;
    if (near === undefined) return false;
    // The others go first, so that old logs are gone before room is needed for the filler of the first; and again at
    // the end, because the last of their memtables may wait for another one, and hold the log with this filler.
    const others = this.#columns.slice(1);
    for (const column of [...others, this.#first(), ...others]) await this.#fill(column, signal);
    if (!signal.aborted && this.#lastDeleted === near) this.#lastDeleted = undefined;
    return true;
  }

  /** Turns over the columns whose memtable may be as old as the log. */
  async #shortenLog(): Promise<void> {
    const loggedBytes = new Map(this.#loggedBytes);
    this.#loggedBytes.clear();
    for (const column of this.#columns) {
      const sizeBytes = loggedBytes.get(column.name) ?? 0;
      const isSlow = sizeBytes < column.memtableBytes * column.memtablesPerTable;
      if (!isSlow || !this.#touched.has(column.name)) continue;
      await this.#fill(column, this.#stopping.signal).catch((error) => {
        this.#touched.add(column.name);
        throw error;
      });
    }
  }

  #logBytes(): number {
    let sumBytes = 0;
    for (const sizeBytes of this.#loggedBytes.values()) sumBytes += sizeBytes;
    return sumBytes;
  }

  /** Puts and deletes a key that no row has, in one batch: never seen, and of all of it one tombstone is left. */
  async #fill(column: ColumnPlan, signal: AbortSignal): Promise<void> {
    this.#touched.delete(column.name);
    const key = this.#ownKey(column);
    const piece = new Uint8Array(Math.min(FILLER_PIECE_BYTES, column.memtableBytes));
    const gone: KvPut = { column: column.name, key, value: null };
    let leftBytes = column.memtableBytes * column.memtablesPerTable + piece.length;
    let exchangedCount = 0;
    let lastBytes = 0;
    while (leftBytes > 0 && exchangedCount < column.memtablesPerTable && !signal.aborted) {
      await this.#commit([{ ...gone, value: piece }, gone], { keep: true });
      // A full memtable is exchanged at the next write: by this one, so that the new one is empty and holds no log.
      await this.#commit([]);
      leftBytes -= piece.length;
      if (column !== this.#first()) continue;
      const activeBytes = this.#read('cur-size-active-mem-table');
      if (activeBytes < lastBytes) exchangedCount++;
      lastBytes = activeBytes;
    }
  }

  /** Beside what was deleted, because a table's span of keys decides with how many others it is merged. */
  #ownKey(column: ColumnPlan): Uint8Array {
    const near = column === this.#first() && column.isPrefixFree ? this.#lastDeleted : undefined;
    return near === undefined ? OWN_KEY : extended(near, 0xff);
  }

  #tables(): TableTotals {
    const version = this.#db.getProperty('rocksdb.current-super-version-number');
    if (this.#totals?.version !== version) {
      const text = this.#db.getProperty('rocksdb.aggregated-table-properties');
      this.#totals = { version, tables: parseTotals(text) };
    }
    return this.#totals.tables;
  }

  #ofMemtables(what: 'entries' | 'deletes'): number {
    return this.#read(`num-${what}-active-mem-table`) + this.#read(`num-${what}-imm-mem-tables`);
  }

  #read(property: string): number {
    return Number(this.#db.getProperty(`rocksdb.${property}`));
  }

  #first(): ColumnPlan {
    return must(this.#columns[0], 'a database has columns');
  }
}

/** From text as `# entries=3; # deletions=1; ... raw value size=2048; ...`. */
function parseTotals(text: string): TableTotals {
  const fields = new Map(
    text.split(';').map((field): [string, number] => {
      const [name = '', value] = field.split('=');
      return [name.trim(), Number(value)];
    }),
  );
  const read = (name: string) => fields.get(name) ?? 0;
  const deleteCount = read('# deletions');
  return {
    deleteCount,
    putCount: read('# entries') - deleteCount,
    valueBytes: read('raw value size'),
  };
}

function extended(key: Uint8Array, ...more: number[]): Uint8Array {
  const bytes = new Uint8Array(key.length + more.length);
  bytes.set(key);
  bytes.set(more, key.length);
  return bytes;
}
