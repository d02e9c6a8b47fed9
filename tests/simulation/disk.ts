// A disk of the simulated world: what a process wrote through the key-value port, and what of it is left after the end of
// the process, a loss of power, or a fault. Commits go to a log and are synced in groups, in their order, as RocksDB does
// it; opening again replays the log, whose end may have been cut off at any point without a word (L4).

import { EMPTY_BYTES } from '../../src/base/bytes/bytes.ts';
import { Corruption } from '../../src/base/corruption.ts';
import { SortedRows } from '../../src/base/sorted-rows.ts';
import { openMemoryWitness, WitnessMedium } from '../../src/platform/memory/memory-witness.ts';
import type { KvBounds, KvPort, KvPut, KvRow } from '../../src/ports/kv.ts';
import type { WitnessPort } from '../../src/ports/witness.ts';
import type { Chance } from './chance.ts';
import { Changeable } from './changes.ts';
import type { SimulatedProcess } from './clock.ts';
import { DiskExtents } from './disk-extents.ts';
import { DiskSession } from './disk-session.ts';

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
  slowReadShare: 0.15,
  slowReadMaxMs: 25,
};

/** Called with what becomes readable. */
export interface DiskObserver {
  onCommit(rows: readonly KvPut[]): void;
  /** All is different: the disk was opened again, or wiped. */
  onReopen(): void;
}

/** One commit, or one range that was cleared. */
export type Change = readonly KvPut[] | KvBounds;

export interface LogRecord {
  change: Change;
  /** One more than that of the record before it in the log. */
  number: number;
}

type Columns = Map<string, SortedRows<Uint8Array>>;

export class SimulatedDisk {
  readonly pace = new Changeable<DiskPace>(FAIR_PACE);
  readonly #chance: Chance;
  readonly #columnNames: readonly string[];
  readonly #witness = new WitnessMedium();
  readonly extents: DiskExtents;
  #observer: DiskObserver | undefined;
  /** What is in tables, which no cut of the log reaches. */
  #flushed: readonly Change[] = [];
  #log: LogRecord[] = [];
  /** Records of the log that are synced. */
  #syncedCount = 0;
  #lastNumber = 0;
  #columns: Columns;
  #session: DiskSession | undefined;
  /** What cannot be read any more: the bytes themselves, not what is written in their place. */
  #corrupt = new WeakSet<Uint8Array>();
  #isDamaged = false;
  /** What was put in the place of other bytes, with a checksum that is right. */
  #altered = new WeakSet<Uint8Array>();
  /** Synced commits went, and nobody has opened the store since. */
  #hasHiddenCut = false;
  /** Damage that tidying up has met: no store over it takes writes any more. */
  #isUnusable = false;

  constructor(columnNames: readonly string[], chance: Chance) {
    this.#columnNames = columnNames;
    this.#chance = chance;
    this.#columns = this.#emptyColumns();
    this.extents = new DiskExtents(chance.fork('extents'), () => this.pace.now);
  }

  observe(observer: DiskObserver): void {
    this.#observer = observer;
  }

  /** The store as a process opens it: everything in the log is there. Ends what an earlier process had open. */
  open(process: SimulatedProcess): KvPort {
    this.#session?.end();
    this.#hasHiddenCut = false;
    this.#replay();
    const session = new DiskSession(process, { disk: this, chance: this.#chance });
    this.#session = session;
    if (this.#isUnusable) session.failNextSync(unreadable());
    return session;
  }

  openWitness(process: SimulatedProcess): WitnessPort {
    const witness = openMemoryWitness(this.#witness, process.clock);
    return {
      ...witness,
      lower: async (shard, position) => {
        await process.later(
          this.#chance.between(0.1, this.pace.now.writeMaxMs),
          'lowers the witness',
          () => 0,
        );
        const lowering = witness.lower(shard, position);
        await process.later(this.syncMs(), 'synced the witness', () => 0);
        return lowering;
      },
    };
  }

  get liveBytes(): number {
    let sizeBytes = 0;
    for (const column of this.#columnNames)
      for (const { key, value } of this.rows(column)) sizeBytes += key.length + value.length;
    return sizeBytes;
  }

  /** Every readable row of a column, in order. */
  rows(column: string): Iterable<Readonly<KvRow>> {
    return this.column(column).between(EMPTY_BYTES, BEHIND_ALL);
  }

  /** What was written and not synced is gone, from some point on. */
  losePower(): void {
    this.#session?.end();
    this.extents.end();
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
    this.#hasHiddenCut = true;
    return before - this.#log.length;
  }

  /** Another disk under the old address. */
  wipe(): void {
    this.#session?.end();
    this.extents.wipe();
    this.#flushed = [];
    this.#log = [];
    this.#syncedCount = 0;
    this.#corrupt = new WeakSet();
    this.#isDamaged = false;
    this.#altered = new WeakSet();
    this.#isUnusable = false;
    this.#hasHiddenCut = false;
    this.#witness.wipe();
  }

  /** What is in the log so far goes to tables: a cut takes it no more. */
  flush(): void {
    const count = this.#syncedCount;
    this.#flushed = [...this.#flushed, ...this.#log.splice(0, count).map(({ change }) => change)];
    this.#syncedCount = 0;
  }

  /**
   * The sync under way, or the next one, fails: final (R20). What it should have synced may be there or not. On a disk with
   * extents it may be a write into one, instead.
   */
  failSync(where: 'log' | 'extents' = 'log'): void {
    const error = new Error('IO error: the sync failed');
    if (where === 'log') this.#session?.failNextSync(error);
    else this.extents.failNextWrite(error);
  }

  /** A bit of a row flips: its block's checksum is wrong, so every read of it ends with an error. */
  corrupt(column: string, mayBe: (key: Uint8Array) => boolean): Uint8Array | undefined {
    const rows = [...this.rows(column)].filter(({ key }) => mayBe(key));
    if (rows.length === 0) return undefined;
    const { key, value } = this.#chance.pick(rows);
    this.#corrupt.add(value);
    this.#isDamaged = true;
    return key;
  }

  /** One byte of a row is another one from now on, and nothing shows it. False: there is no such row. */
  alter(column: string, mayBe: (key: Uint8Array) => boolean): boolean {
    const rows = [...this.rows(column)].filter(({ key, value }) => mayBe(key) && value.length > 0);
    if (rows.length === 0) return false;
    const { key, value } = this.#chance.pick(rows);
    const altered = Uint8Array.from(value);
    const at = this.#chance.int(0, value.length - 1);
    altered[at] = (altered[at] ?? 0) ^ (1 << this.#chance.int(0, 7));
    this.#altered.add(altered);
    this.#isDamaged = true;
    // Nobody writes it: observers of commits are not notified.
    this.#apply(this.append([{ column, key, value: altered }]).change);
    return true;
  }

  /** With the power the newest page of the witness would go as well, and that would be two losses of one disk (R17). */
  get hasHiddenCut(): boolean {
    return this.#hasHiddenCut;
  }

  isAltered(value: Uint8Array): boolean {
    return this.#isDamaged && this.#altered.has(value);
  }

  /** Something that is there cannot be read, or is not what was written. What lies beneath other rows, or was cleared, nobody reads. */
  get hasDamage(): boolean {
    if (!this.#isDamaged) return false;
    // Where tidying up has met it the store is lost, even if the row was written anew meanwhile.
    return this.#isUnusable || this.hasAltered || this.#hasAny(this.#corrupt);
  }

  get hasAltered(): boolean {
    return this.#isDamaged && this.#hasAny(this.#altered);
  }

  #hasAny(values: WeakSet<Uint8Array>): boolean {
    return this.#columnNames.some((column) => [...this.rows(column)].some(({ value }) => values.has(value)));
  }

  /** The store merges tables, and comes upon the damage that there is. */
  tidyUp(): void {
    if (!this.#isDamaged) return;
    this.#isUnusable = true;
    this.#session?.failNextSync(unreadable());
  }

  // For the session.

  column(name: string): SortedRows<Uint8Array> {
    const column = this.#columns.get(name);
    if (column === undefined) throw new Error(`unknown column ${name}`);
    return column;
  }

  /** Throws as the store does for a block whose checksum is wrong. */
  checkReadable(value: Uint8Array): void {
    if (this.#isDamaged && this.#corrupt.has(value)) throw unreadable();
  }

  syncMs(): number {
    return this.#chance.between(this.pace.now.syncMinMs, this.pace.now.syncMaxMs);
  }

  /** Into the log: outlives the process. */
  append(change: Change): LogRecord {
    const number = this.#log.at(-1)?.number ?? this.#lastNumber;
    const record = { change, number: number + 1 };
    this.#lastNumber = record.number;
    this.#log.push(record);
    return record;
  }

  /** Readable from now on. */
  apply(record: LogRecord, isSynced: boolean): void {
    if (isSynced) this.#syncedCount = Math.max(this.#syncedCount, this.#placeOf(record) + 1);
    const rows = this.#apply(record.change);
    this.#observer?.onCommit(rows);
  }

  /** Records leave the log at its ends alone. -1: it has left. */
  #placeOf(record: LogRecord): number {
    const place = record.number - (this.#log[0]?.number ?? 0);
    return this.#log[place] === record ? place : -1;
  }

  /** Returns what it does, row by row. */
  #apply(change: Change): readonly KvPut[] {
    const rows = 'gte' in change ? this.#deletesOf(change) : change;
    for (const { column, key, value } of rows) {
      if (value === null) this.column(column).delete(key);
      else this.column(column).set(key, value);
    }
    return rows;
  }

  #deletesOf({ column, gte, lt }: KvBounds): KvPut[] {
    return Array.from(this.column(column).between(gte, lt), ({ key }) => ({ column, key, value: null }));
  }

  #replay(): void {
    this.#columns = this.#emptyColumns();
    for (const change of this.#flushed) this.#apply(change);
    for (const { change } of this.#log) this.#apply(change);
    this.#observer?.onReopen();
  }

  #emptyColumns(): Columns {
    return new Map(this.#columnNames.map((name) => [name, new SortedRows<Uint8Array>()]));
  }
}

const BEHIND_ALL = Uint8Array.from({ length: 16 }, () => 0xff);

const unreadable = () => new Corruption('Corruption: block checksum mismatch');
