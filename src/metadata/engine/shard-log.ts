// The entries of one shard: numbered, timed, put into the overlay, committed by the store, in one order (R4-R8 for one
// voter: an entry commits by its own sync, so there are no log rows). Evaluation is in shard.ts. Replication will
// stand here: what changes is when an entry counts as committed.
import { assert } from '../../base/assert.ts';
import type { KvPort, KvPut } from '../../ports/kv.ts';
import type { EntryLog } from './entry-log.ts';
import { type Applied, encodeApplied } from './entry-rows.ts';
import type { Overlay } from './overlay.ts';
import { ENGINE_TABLES, rowKey, shardOfRow } from './row-keys.ts';
import type { ShardTime } from './shard-time.ts';

interface Entry extends Applied {
  rows: readonly KvPut[];
  done(): void;
}

interface Waiter {
  seq: number;
  done(): void;
}

export interface ShardLogOptions {
  shard: number;
  epoch: number;
  kv: KvPort;
  overlay: Overlay;
  time: ShardTime;
  /** The last entry in the state. */
  applied: Applied;
  /** Nothing will ever commit again; no `done` is called any more (R13, R20). Called once. */
  onFailed(error: Error): void;
}

export class ShardLog implements EntryLog {
  readonly #options: ShardLogOptions;
  readonly #appliedKey: Uint8Array;
  #last: Applied;
  #committed: Applied;
  #hasFailed = false;
  readonly #waiters: Waiter[] = [];

  constructor(options: ShardLogOptions) {
    this.#options = options;
    this.#last = options.applied;
    this.#committed = options.applied;
    this.#appliedKey = rowKey(options.shard, ENGINE_TABLES.applied, new Uint8Array(0));
  }

  get lastSeq(): number {
    return this.#last.seq;
  }

  /** The last entry that is committed, and so in the state. */
  get committed(): Applied {
    return this.#committed;
  }

  /** Shard time, ms: never before the last entry's (R19). */
  nowMs(): number {
    return Math.max(this.#last.timeMs, this.#options.time.nowMs());
  }

  /** Adds an entry at `timeMs`, taken from `nowMs` with nothing appended since. `done` is called once it is committed. */
  append(entry: { rows: readonly KvPut[]; timeMs: number; done(): void }): void {
    const { shard, epoch, kv, overlay } = this.#options;
    assert(!this.#hasFailed, 'nothing is appended after a failure');
    assert(entry.timeMs >= this.#last.timeMs, 'shard time does not decrease');
    for (const { key } of entry.rows) assert(shardOfRow(key) === shard, 'no batch leaves its shard');
    const appended: Entry = { ...entry, seq: this.#last.seq + 1, epoch };
    this.#last = { seq: appended.seq, epoch, timeMs: entry.timeMs };
    overlay.add(appended.seq, entry.rows);
    const applied = { column: 'rows', key: this.#appliedKey, value: encodeApplied(this.#last) };
    kv.commit([...entry.rows, applied], { keep: true }).then(
      () => this.#onCommitted(appended),
      (error: unknown) => this.fail(error instanceof Error ? error : new Error(String(error))),
    );
  }

  /** Calls `done` when all that is appended by now is committed (R8): at once when it is. */
  whenCommitted(done: () => void): void {
    if (this.#committed.seq === this.#last.seq) done();
    else this.#waiters.push({ seq: this.#last.seq, done });
  }

  /** One voter need not ask anybody. */
  confirmRead(): undefined {}

  fail(error: Error): void {
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    this.#waiters.length = 0;
    this.#options.onFailed(error);
  }

  #onCommitted(entry: Entry): void {
    if (this.#hasFailed) return;
    assert(entry.seq === this.#committed.seq + 1, 'entries commit in order');
    this.#committed = { seq: entry.seq, epoch: entry.epoch, timeMs: entry.timeMs };
    this.#options.overlay.remove(entry.seq, entry.rows);
    entry.done();
    let reachedCount = 0;
    for (const waiter of this.#waiters) {
      if (waiter.seq > entry.seq) break;
      waiter.done();
      reachedCount++;
    }
    if (reachedCount > 0) this.#waiters.splice(0, reachedCount);
  }
}
