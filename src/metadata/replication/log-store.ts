// The log of one replica on its disk (protocol 1.2, R4, R15, R17): encoded entries by number, behind a base. Memory is
// ahead of the disk: positions move when rows are handed to the store, whose order is the order of the calls; who
// answers for them awaits the sync. A failed write is the end of the process (R20), so memory never has to go back.
import { assert, must } from '../../base/assert.ts';
import { Corruption } from '../../base/corruption.ts';
import type { KvPort, KvPut } from '../../ports/kv.ts';
import type { LogPosition } from '../../ports/replication.ts';
import { isEntrySound, readEntryHead } from '../engine/entry-codec.ts';
import { baseCodec } from '../engine/entry-rows.ts';
import { ENGINE_TABLES, LOG_COLUMN, logBounds, logKey, rowKey, seqOfLogKey } from '../engine/row-keys.ts';
import { TAILS_BYTES_MAX, UNSYNCED_BYTES_MAX } from '../engine/timing.ts';

/** Encoded entries kept in memory, for followers and for applying: the newest. */
const TAIL_BYTES_MAX = 8 * 1024 * 1024;
/** Beyond that of all logs of a process, each that grows keeps so much. */
const TAIL_BYTES_MIN = 1024 * 1024;
const SCAN_ROWS = 256;
const SCAN_BYTES = 8 * 1024 * 1024;
/** Rows cut or trimmed in one batch. */
const CUT_ROWS_MAX = 10_000;
const NO_KEY = new Uint8Array(0);

/** Of all logs of a process. */
export interface LogBudget {
  /** Bytes of entries on their way to the disk. */
  waitingBytes: number;
  /** Of entries kept in memory. */
  tailBytes: number;
}

/** Why a log cannot be trusted (R17). */
export type LogDamage = 'gap' | 'checksum' | 'unreadable';

export class LogStore {
  readonly #shard: number;
  readonly #kv: KvPort;
  readonly #baseKey: Uint8Array;
  #base: LogPosition;
  #last: LogPosition;
  /** Last entry known to be on the disk. */
  #syncedSeq: number;
  /** Where each epoch begins, ascending; the base's own first. */
  #epochs: { fromSeq: number; epoch: number }[];
  readonly #tail = new Map<number, Uint8Array>();
  #tailBytes = 0;
  #writing: Promise<void> = Promise.resolve();
  /** Something in it is not on the disk and never will be: nothing behind it is answered for. */
  #failure: unknown;
  readonly #budget: LogBudget;
  #lastTimeMs = 0;
  readonly #markBytes: number;
  /** Bytes of all entries so far, about every `markBytes` of them: shows how much may be trimmed. */
  #totalBytes = 0;
  #marks: { seq: number; totalBytes: number }[] = [];

  constructor(
    shard: number,
    kv: KvPort,
    { base, markBytes, budget }: { base: LogPosition; markBytes: number; budget: LogBudget },
  ) {
    this.#markBytes = markBytes;
    this.#budget = budget;
    this.#shard = shard;
    this.#kv = kv;
    this.#baseKey = rowKey(shard, ENGINE_TABLES.base, NO_KEY);
    this.#base = base;
    this.#last = base;
    this.#syncedSeq = base.seq;
    this.#epochs = [{ fromSeq: base.seq, epoch: base.epoch }];
  }

  /** Entries up to it are in the state and may be gone from the log. */
  get base(): LogPosition {
    return this.#base;
  }

  get last(): LogPosition {
    return this.#last;
  }

  get syncedSeq(): number {
    return this.#syncedSeq;
  }

  /** Of the entries that were ever in it since it was opened: no later one has an earlier time. */
  get lastTimeMs(): number {
    return this.#lastTimeMs;
  }

  /** Resolves when all that is in the log now is synced. */
  synced(): Promise<void> {
    return this.#writing;
  }

  /** R20: the disk does not keep up. What others send is left out until it does; they send it again. */
  get isBehind(): boolean {
    return this.#budget.waitingBytes >= UNSYNCED_BYTES_MAX;
  }

  /** The greatest entry that may go when `keptBytes` of the log are to stay. */
  trimmableSeq(keptBytes: number): number {
    return this.#marks.findLast(({ totalBytes }) => this.#totalBytes - totalBytes >= keptBytes)?.seq ?? 0;
  }

  /** A log without entries, behind `base`: of a replica that begins anew (R16). */
  reset(base: LogPosition): void {
    this.#base = base;
    this.#last = base;
    this.#syncedSeq = base.seq;
    this.#epochs = [{ fromSeq: base.seq, epoch: base.epoch }];
    for (const seq of [...this.#tail.keys()]) this.#forget(seq);
    this.#marks = [];
  }

  /** The epoch of an entry; undefined when it is below the base or behind the end. */
  epochAt(seq: number): number | undefined {
    if (seq < this.#base.seq || seq > this.#last.seq) return undefined;
    return must(
      this.#epochs.findLast(({ fromSeq }) => fromSeq <= seq),
      'an epoch of the log',
    ).epoch;
  }

  /** The first entry of the epoch that `seq` is of, or the one behind the base: where a disagreement may begin. */
  epochStart(seq: number): number {
    const start = this.#epochs.findLast(({ fromSeq }) => fromSeq <= seq)?.fromSeq ?? 0;
    return Math.max(start, this.#base.seq + 1);
  }

  /**
   * Writes `entries` in one synced batch behind `after`, which must be in the log; what the log has behind it goes in
   * the same batch (R4). `also`: rows that must be durable with it. Resolves when synced.
   */
  async append(
    after: LogPosition,
    entries: readonly Uint8Array[],
    also: readonly KvPut[] = [],
  ): Promise<void> {
    assert(this.epochAt(after.seq) === after.epoch, 'entries follow one that is there');
    const rows: KvPut[] = [...also];
    for (let seq = after.seq + entries.length + 1; seq <= this.#last.seq; seq++)
      rows.push({ column: LOG_COLUMN, key: logKey(this.#shard, seq), value: null });
    this.#cut(after);
    for (const bytes of entries) rows.push(this.#take(bytes));
    const { seq } = this.#last;
    // What is cut is not synced any more, and what stands in its place is not yet.
    this.#syncedSeq = Math.min(this.#syncedSeq, after.seq);
    this.#writing = this.#write(rows);
    await this.#writing;
    if (seq <= this.#last.seq) this.#syncedSeq = Math.max(this.#syncedSeq, seq);
  }

  async #write(rows: readonly KvPut[]): Promise<void> {
    let sizeBytes = 0;
    for (const { value } of rows) sizeBytes += value?.length ?? 0;
    this.#budget.waitingBytes += sizeBytes;
    try {
      await this.#kv.commit(rows, { keep: true });
    } catch (error) {
      this.#failure ??= error;
    } finally {
      this.#budget.waitingBytes -= sizeBytes;
    }
    if (this.#failure !== undefined) throw this.#failure;
  }

  #cut(after: LogPosition): void {
    for (let seq = after.seq + 1; seq <= this.#last.seq; seq++) this.#forget(seq);
    this.#last = after;
    while ((this.#epochs.at(-1)?.fromSeq ?? 0) > after.seq) this.#epochs.pop();
    while ((this.#marks.at(-1)?.seq ?? 0) > after.seq) this.#marks.pop();
  }

  #take(bytes: Uint8Array): KvPut {
    const { seq, epoch, timeMs } = readEntryHead(bytes);
    assert(seq === this.#last.seq + 1 && epoch >= this.#last.epoch, 'entries follow one another');
    this.#lastTimeMs = Math.max(this.#lastTimeMs, timeMs);
    this.#totalBytes += bytes.length;
    if (this.#totalBytes - (this.#marks.at(-1)?.totalBytes ?? 0) >= this.#markBytes)
      this.#marks.push({ seq, totalBytes: this.#totalBytes });
    if (epoch !== this.#last.epoch) this.#epochs.push({ fromSeq: seq, epoch });
    this.#last = { seq, epoch };
    this.#tail.set(seq, bytes);
    this.#tailBytes += bytes.length;
    this.#budget.tailBytes += bytes.length;
    for (const [oldest] of this.#tail) {
      const maxBytes = this.#budget.tailBytes > TAILS_BYTES_MAX ? TAIL_BYTES_MIN : TAIL_BYTES_MAX;
      // What is not on the disk yet could not be read from there.
      if (this.#tailBytes <= maxBytes || oldest === seq || oldest > this.#syncedSeq) break;
      this.#forget(oldest);
    }
    return { column: LOG_COLUMN, key: logKey(this.#shard, seq), value: bytes };
  }

  #forget(seq: number): void {
    const sizeBytes = this.#tail.get(seq)?.length ?? 0;
    this.#tailBytes -= sizeBytes;
    this.#budget.tailBytes -= sizeBytes;
    this.#tail.delete(seq);
  }

  /** As `read`, of those that are still in memory: none when the first one is not. */
  readNewest(fromSeq: number, toSeq: number, bytesMax: number): Uint8Array[] {
    const entries: Uint8Array[] = [];
    let sizeBytes = 0;
    for (let seq = fromSeq; seq <= toSeq && sizeBytes < bytesMax; seq++) {
      const bytes = this.#tail.get(seq);
      if (bytes === undefined) break;
      entries.push(bytes);
      sizeBytes += bytes.length;
    }
    return entries;
  }

  /** Encoded entries from `fromSeq` on, up to `toSeq` and about `bytesMax`: at least one. They must be in the log. */
  async read(fromSeq: number, toSeq: number, bytesMax: number): Promise<Uint8Array[]> {
    assert(fromSeq > this.#base.seq && toSeq <= this.#last.seq && fromSeq <= toSeq, 'entries of the log');
    const entries = this.readNewest(fromSeq, toSeq, bytesMax);
    if (entries.length > 0) return entries;
    const rows = await this.#kv.range({
      column: LOG_COLUMN,
      gte: logKey(this.#shard, fromSeq),
      lt: logKey(this.#shard, toSeq + 1),
      limit: SCAN_ROWS,
      bytesMax,
    });
    return rows.map(({ value }) => value);
  }

  /** Looks at every row (R17), and stands at the end of what is sound afterwards. */
  async load(): Promise<LogDamage | undefined> {
    for (let next = this.#base.seq + 1; ; ) {
      let rows: { key: Uint8Array; value: Uint8Array }[];
      try {
        rows = await this.#kv.range({
          column: LOG_COLUMN,
          ...logBounds(this.#shard, next),
          limit: SCAN_ROWS,
          bytesMax: SCAN_BYTES,
        });
      } catch (error) {
        if (error instanceof Corruption) return 'unreadable';
        throw error;
      }
      if (rows.length === 0) break;
      for (const { key, value } of rows) {
        if (seqOfLogKey(key) !== next) return 'gap';
        if (!isEntrySound(value)) return 'checksum';
        const { seq, epoch } = readEntryHead(value);
        if (seq !== next || epoch < this.#last.epoch) return 'checksum';
        this.#syncedSeq = seq;
        this.#take(value);
        next++;
      }
    }
    return undefined;
  }

  /** R15: moves the base, synced, then clears rows up to it. `base` is applied. */
  async trim(base: LogPosition): Promise<void> {
    assert(this.epochAt(base.seq) === base.epoch, 'the base is an entry of the log');
    const from = this.#base.seq + 1;
    this.#base = base;
    this.#epochs = [
      { fromSeq: base.seq, epoch: base.epoch },
      ...this.#epochs.filter(({ fromSeq }) => fromSeq > base.seq),
    ];
    for (let seq = from; seq <= base.seq; seq++) this.#forget(seq);
    this.#marks = this.#marks.filter(({ seq }) => seq > base.seq);
    // The rows are of no use before this is on the disk, and needed as long as it is not.
    await this.#kv.commit([this.baseRow(base)]);
    for (let seq = from; seq <= base.seq; seq += CUT_ROWS_MAX) {
      const rows: KvPut[] = [];
      for (let at = seq; at < seq + CUT_ROWS_MAX && at <= base.seq; at++)
        rows.push({ column: LOG_COLUMN, key: logKey(this.#shard, at), value: null });
      await this.#kv.commit(rows, { sync: false });
    }
  }

  baseRow(base: LogPosition): KvPut {
    return { column: 'rows', key: this.#baseKey, value: baseCodec.encode(base) };
  }
}
