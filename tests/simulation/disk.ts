// A disk of the simulated world: what a process wrote through the key-value port, and what of it is left after the end of
// the process, a loss of power, or a fault. Commits go to a log and are synced in groups, in their order, as RocksDB does
// it; opening again replays the log, whose end may have been cut off at any point without a word (L4).
import { openMemoryWitness, WitnessMedium } from '../../src/adapters/memory-witness.ts';
import { compareBytes, EMPTY_BYTES } from '../../src/lib/bytes.ts';
import { SortedRows } from '../../src/lib/sorted-rows.ts';
import { LIMITS } from '../../src/model/limits.ts';
import type { KvCommitOptions, KvCursor, KvPort, KvPut, KvRow } from '../../src/ports/kv.ts';
import type { WitnessPort } from '../../src/ports/witness.ts';
import type { Chance } from './chance.ts';
import type { SimulatedProcess } from './clock.ts';

export interface DiskPace {
  writeMaxMs: number;
  syncMinMs: number;
  syncMaxMs: number;
  /** Share of reads that take time of their own, so that something comes between two of them. */
  slowReadShare: number;
  slowReadMaxMs: number;
}

export const FAIR_PACE: DiskPace = {
  writeMaxMs: 0.2,
  syncMinMs: 0.3,
  syncMaxMs: 3,
  slowReadShare: 0.1,
  slowReadMaxMs: 3,
};

/** Told of what becomes readable. */
export interface DiskObserver {
  onCommit(rows: readonly KvPut[]): void;
  /** All is different: the disk was opened again, or wiped. */
  onReopen(): void;
}

interface LogRecord {
  rows: readonly KvPut[];
  isApplied: boolean;
}

type Columns = Map<string, SortedRows<Uint8Array>>;

export class SimulatedDisk {
  pace: DiskPace = { ...FAIR_PACE };
  readonly #chance: Chance;
  readonly #columnNames: readonly string[];
  readonly #witness = new WitnessMedium();
  #observer: DiskObserver | undefined;
  /** What is in tables, which no cut of the log reaches. */
  #flushed: readonly KvPut[] = [];
  #log: LogRecord[] = [];
  /** Records of the log that are synced. */
  #syncedCount = 0;
  #columns: Columns;
  #session: Session | undefined;
  /** Rows whose block cannot be read any more, `column/key`. */
  readonly #corrupt = new Set<string>();

  constructor(columnNames: readonly string[], chance: Chance) {
    this.#columnNames = columnNames;
    this.#chance = chance;
    this.#columns = this.#emptyColumns();
  }

  observe(observer: DiskObserver): void {
    this.#observer = observer;
  }

  /** The store as a process opens it: everything in the log is there. Ends what an earlier process had open. */
  open(process: SimulatedProcess): KvPort {
    this.#session?.end();
    this.#replay();
    const session = new Session(process, { disk: this, chance: this.#chance });
    this.#session = session;
    return session;
  }

  openWitness(process: SimulatedProcess): WitnessPort {
    const witness = openMemoryWitness(this.#witness, process.clock);
    return {
      ...witness,
      lower: async (shard, position) => {
        await process.later(this.#chance.between(0.1, this.pace.writeMaxMs), 'lowers the witness', () => 0);
        const lowering = witness.lower(shard, position);
        await process.later(this.syncMs(), 'synced the witness', () => 0);
        return lowering;
      },
    };
  }

  /** Every readable row of a column, in order. */
  rows(column: string): Iterable<Readonly<KvRow>> {
    return this.column(column).between(EMPTY_BYTES, BEHIND_ALL);
  }

  /** What was written and not synced is gone, from some point on. */
  losePower(): void {
    this.#session?.end();
    this.#log.length = this.#chance.int(this.#syncedCount, this.#log.length);
    this.#syncedCount = this.#log.length;
    this.#witness.losePower();
  }

  /** L4: everything behind some point of the log is gone, synced or not. Returns how many synced commits went. */
  cutLog(): number {
    this.#session?.end();
    const before = this.#log.length;
    this.#log.length = this.#chance.int(0, Math.max(0, before - 1));
    this.#syncedCount = this.#log.length;
    return before - this.#log.length;
  }

  /** Another disk under the old address. */
  wipe(): void {
    this.#session?.end();
    this.#flushed = [];
    this.#log = [];
    this.#syncedCount = 0;
    this.#corrupt.clear();
    this.#witness.wipe();
  }

  /** What is in the log so far goes to tables: a cut takes it no more. */
  flush(): void {
    const count = this.#syncedCount;
    this.#flushed = [...this.#flushed, ...this.#log.splice(0, count).flatMap(({ rows }) => rows)];
    this.#syncedCount = 0;
  }

  /** The sync under way, or the next one, fails: final (R20). What it should have synced may be there or not. */
  failSync(): void {
    this.#session?.failNextSync();
  }

  /** A bit of a row flips: its block's checksum is wrong, so every read of it ends with an error. */
  corrupt(column: string, mayBe: (key: Uint8Array) => boolean): Uint8Array | undefined {
    const keys = Array.from(this.rows(column), ({ key }) => key).filter(mayBe);
    if (keys.length === 0) return undefined;
    const key = this.#chance.pick(keys);
    this.#corrupt.add(corruptKey(column, key));
    return key;
  }

  // For the session.

  column(name: string): SortedRows<Uint8Array> {
    const column = this.#columns.get(name);
    if (column === undefined) throw new Error(`unknown column ${name}`);
    return column;
  }

  /** Throws as the store does for a block whose checksum is wrong. */
  checkReadable(column: string, key: Uint8Array): void {
    if (this.#corrupt.size > 0 && this.#corrupt.has(corruptKey(column, key)))
      throw Object.assign(new Error('Corruption: block checksum mismatch'), { code: 'LEVEL_CORRUPTION' });
  }

  syncMs(): number {
    return this.#chance.between(this.pace.syncMinMs, this.pace.syncMaxMs);
  }

  /** Into the log: outlives the process. */
  append(rows: readonly KvPut[]): LogRecord {
    const record = { rows, isApplied: false };
    this.#log.push(record);
    return record;
  }

  /** Readable from now on. */
  apply(record: LogRecord, isSynced: boolean): void {
    if (isSynced) this.#syncedCount = Math.max(this.#syncedCount, this.#log.indexOf(record) + 1);
    this.#applyRows(record);
    this.#observer?.onCommit(record.rows);
  }

  #applyRows(record: LogRecord): void {
    record.isApplied = true;
    this.#applyAll(record.rows);
  }

  #applyAll(rows: readonly KvPut[]): void {
    for (const { column, key, value } of rows) {
      // Written anew, to another block.
      if (this.#corrupt.size > 0) this.#corrupt.delete(corruptKey(column, key));
      if (value === null) this.column(column).delete(key);
      else this.column(column).set(key, value);
    }
  }

  #replay(): void {
    const corrupt = [...this.#corrupt];
    this.#columns = this.#emptyColumns();
    this.#applyAll(this.#flushed);
    for (const record of this.#log) this.#applyRows(record);
    for (const key of corrupt) this.#corrupt.add(key);
    this.#observer?.onReopen();
  }

  #emptyColumns(): Columns {
    return new Map(this.#columnNames.map((name) => [name, new SortedRows<Uint8Array>()]));
  }
}

const BEHIND_ALL = Uint8Array.from({ length: 16 }, () => 0xff);

const corruptKey = (column: string, key: Uint8Array) => `${column}/${Buffer.from(key).toString('latin1')}`;

interface Commit {
  rows: readonly KvPut[];
  sync: boolean;
  resolve(): void;
  reject(error: Error): void;
}

/** The store as one process sees it. */
class Session implements KvPort {
  readonly failed: Promise<Error>;
  readonly #process: SimulatedProcess;
  readonly #disk: SimulatedDisk;
  readonly #chance: Chance;
  readonly #settleFailed: (error: Error) => void;
  #waiting: Commit[] = [];
  #isWriting = false;
  #failsNextSync = false;
  #failure: Error | undefined;
  #hasEnded = false;
  #onIdle: (() => void) | undefined;

  constructor(process: SimulatedProcess, options: { disk: SimulatedDisk; chance: Chance }) {
    this.#process = process;
    this.#disk = options.disk;
    this.#chance = options.chance;
    const failed = Promise.withResolvers<Error>();
    this.failed = failed.promise;
    this.#settleFailed = failed.resolve;
  }

  /** What comes now is another process', or another disk's. */
  end(): void {
    this.#hasEnded = true;
  }

  failNextSync(): void {
    this.#failsNextSync = true;
    if (!this.#isWriting && this.#waiting.length === 0) this.commit([]).catch(() => undefined);
  }

  getMany(column: string, keys: readonly Uint8Array[]): Promise<(Uint8Array | undefined)[]> {
    return this.#read('reads rows', () =>
      keys.map((key) => {
        const value = this.#disk.column(column).get(key)?.value;
        if (value !== undefined) this.#disk.checkReadable(column, key);
        return value && Buffer.from(value);
      }),
    );
  }

  range(range: Parameters<KvPort['range']>[0]): Promise<KvRow[]> {
    const { limit, bytesMax = Number.POSITIVE_INFINITY, keysOnly = false } = range;
    return this.#read('reads a range', () => {
      const found: KvRow[] = [];
      let sizeBytes = 0;
      for (const { key, value } of this.#scan(range)) {
        if (found.length >= limit || sizeBytes >= bytesMax) break;
        this.#disk.checkReadable(range.column, key);
        sizeBytes += key.length + value.length;
        found.push({ key: Buffer.from(key), value: keysOnly ? EMPTY_BYTES : Buffer.from(value) });
      }
      return found;
    });
  }

  cursor(bounds: { column: string; gte: Uint8Array; lt: Uint8Array; reverse?: boolean }): KvCursor {
    const rows = this.#scan(bounds);
    const isReverse = bounds.reverse ?? false;
    let position = 0;
    let isClosed = false;
    return {
      seek(key) {
        const at = rows.findIndex((row) =>
          isReverse ? compareBytes(row.key, key) <= 0 : compareBytes(row.key, key) >= 0,
        );
        position = at < 0 ? rows.length : at;
      },
      next: (count) =>
        this.#read('reads on', () => {
          if (isClosed) throw new Error('the cursor is closed');
          const page = rows.slice(position, position + count);
          position += page.length;
          for (const { key } of page) this.#disk.checkReadable(bounds.column, key);
          return page.map(({ key, value }) => ({ key: Buffer.from(key), value: Buffer.from(value) }));
        }),
      close() {
        isClosed = true;
      },
    };
  }

  async commit(rows: readonly KvPut[], options: KvCommitOptions = {}): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    for (const { column, key } of rows) {
      this.#disk.column(column);
      if (key.length === 0 || key.length > LIMITS.kvKeyBytesMax)
        throw new Error('a key is of the allowed length');
    }
    // The caller may do with its bytes what it likes from now on.
    const own = rows.map(({ column, key, value }) => ({
      column,
      key: Uint8Array.from(key),
      value: value && Uint8Array.from(value),
    }));
    return new Promise((resolve, reject) => {
      this.#waiting.push({ rows: own, sync: options.sync ?? true, resolve, reject });
      this.#write();
    });
  }

  usage(): { liveBytes: number; pendingReclaimBytes: number } {
    return { liveBytes: 0, pendingReclaimBytes: 0 };
  }

  async turnOver(): Promise<boolean> {
    return false;
  }

  async close(): Promise<void> {
    if (this.#failure === undefined && (this.#isWriting || this.#waiting.length > 0))
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve;
      });
    this.#failure ??= new Error('the store is closed');
  }

  /** One group at a time: written to the log, synced if it must be, readable, told. Each a step of its own. */
  #write(): void {
    if (this.#isWriting || this.#hasEnded || this.#waiting.length === 0) return;
    this.#isWriting = true;
    this.#step(this.#chance.between(0, this.#disk.pace.writeMaxMs), 'writes to its log', () => {
      const commits = this.#waiting;
      this.#waiting = [];
      const records = commits.map(({ rows }) => this.#disk.append(rows));
      const isSynced = commits.some(({ sync }) => sync);
      const delayMs = isSynced ? this.#disk.syncMs() : 0;
      this.#step(delayMs, isSynced ? 'has synced' : 'has written', () => {
        if (isSynced && this.#failsNextSync) return this.#fail([...commits, ...this.#waiting]);
        for (const record of records) this.#disk.apply(record, isSynced);
        // Durable, and nobody knows yet: the process may end here.
        this.#step(0, 'tells what is written', () => this.#tell(commits));
      });
    });
  }

  #tell(commits: readonly Commit[]): void {
    for (const { resolve } of commits) resolve();
    this.#isWriting = false;
    this.#write();
    if (!this.#isWriting) this.#onIdle?.();
  }

  #fail(commits: readonly Commit[]): void {
    const error = new Error('IO error: the sync failed');
    this.#failure = error;
    for (const { reject } of commits) reject(error);
    this.#settleFailed(error);
  }

  #step(delayMs: number, name: string, run: () => void): void {
    this.#process.schedule(delayMs, name, () => {
      if (!this.#hasEnded) run();
    });
  }

  #read<T>(name: string, read: () => T): Promise<T> {
    if (this.#failure?.message === 'the store is closed') return Promise.reject(this.#failure);
    const { slowReadShare, slowReadMaxMs } = this.#disk.pace;
    if (this.#chance.happens(slowReadShare))
      return this.#process.later(this.#chance.between(0, slowReadMaxMs), name, read);
    return new Promise((resolve) => resolve(read()));
  }

  #scan(bounds: { column: string; gte: Uint8Array; lt: Uint8Array; reverse?: boolean }): Readonly<KvRow>[] {
    const rows = Array.from(this.#disk.column(bounds.column).between(bounds.gte, bounds.lt), (row) => ({
      key: row.key,
      value: row.value,
    }));
    return bounds.reverse ? rows.reverse() : rows;
  }
}
