// The log of an open primary, as evaluation sees it (entry-log.ts): entries are written to the own disk and sent to the
// others at once, committed by a majority, applied, and only then answered (R4-R8).
import { assert } from '../../base/assert.ts';
import type { KvPut } from '../../ports/kv.ts';
import { type Entry, encodeEntry } from '../engine/entry-codec.ts';
import type { EntryLog } from '../engine/entry-log.ts';
import type { Applied } from '../engine/entry-rows.ts';
import type { Overlay } from '../engine/overlay.ts';
import { shardOfRow } from '../engine/row-keys.ts';
import type { Applier } from './applier.ts';
import type { LogStore } from './log-store.ts';
import type { PrimaryTerm } from './primary-term.ts';
import type { ReplicatedTime } from './replicated-time.ts';

export interface ReplicatedLogParts {
  shard: number;
  epoch: number;
  log: LogStore;
  applier: Applier;
  overlay: Overlay;
  term: PrimaryTerm;
  time: ReplicatedTime;
  /** R17: an own sync is an acknowledgement as well. Before it counts. */
  witness(seq: number): void;
  /** Time of the last entry of the log. */
  lastTimeMs: number;
}

interface Pending {
  rows: readonly KvPut[];
  done(): void;
}

export class ReplicatedLog implements EntryLog {
  readonly #parts: ReplicatedLogParts;
  /** Appended and not yet applied, by number. */
  readonly #pending = new Map<number, Pending>();
  readonly #waiters: { seq: number; done(): void }[] = [];
  #lastTimeMs: number;
  #ownSeq = 0;
  #syncedSeq = 0;
  #hasEnded = false;
  #isFlushing = false;

  constructor(parts: ReplicatedLogParts) {
    this.#parts = parts;
    this.#lastTimeMs = parts.lastTimeMs;
  }

  get committed(): Applied {
    return this.#parts.applier.applied;
  }

  nowMs(): number {
    return Math.max(this.#lastTimeMs, this.#parts.time.nowMs());
  }

  append(entry: { rows: readonly KvPut[]; timeMs: number; done(): void }): void {
    const { shard, epoch, log, overlay } = this.#parts;
    const { rows, timeMs, done } = entry;
    assert(!this.#hasEnded, 'nothing is appended behind the end of an epoch');
    assert(timeMs >= this.#lastTimeMs, 'shard time does not decrease');
    for (const { key } of rows) assert(shardOfRow(key) === shard, 'no batch leaves its shard');
    this.#lastTimeMs = timeMs;
    const seq = log.last.seq + 1;
    overlay.add(seq, rows);
    this.#pending.set(seq, { rows, done });
    // Beside the own sync, not behind it: a majority may have it before this disk does (R5).
    log.append(log.last, [encodeEntry({ seq, epoch, timeMs, rows })]).then(
      () => this.#onSynced(seq),
      () => {},
    );
    this.#flushSoon();
  }

  /** The last entry that counts as ours. */
  get ownSeq(): number {
    return this.#ownSeq;
  }

  #onSynced(seq: number): void {
    this.#syncedSeq = Math.max(this.#syncedSeq, seq);
    this.#flushSoon();
  }

  whenCommitted(done: () => void): void {
    const { seq } = this.#parts.log.last;
    if (this.#parts.applier.applied.seq >= seq) void this.#answerWhenConfirmed(done);
    else this.#waiters.push({ seq, done });
  }

  confirmRead(): undefined | Promise<boolean> {
    return this.#hasEnded ? Promise.resolve(false) : this.#parts.term.confirmRead();
  }

  /** In order: the entry is in the state. */
  onApplied(entry: Entry): void {
    const pending = this.#pending.get(entry.seq);
    if (pending !== undefined) {
      this.#pending.delete(entry.seq);
      this.#parts.overlay.remove(entry.seq, pending.rows);
      pending.done();
    }
    while (this.#waiters[0] !== undefined && this.#waiters[0].seq <= entry.seq) {
      const waiter = this.#waiters.shift();
      if (waiter !== undefined) void this.#answerWhenConfirmed(waiter.done);
    }
  }

  /** The epoch is over (R13): what is not applied will be answered by nobody. */
  end(): void {
    this.#hasEnded = true;
    for (const [seq, { rows }] of this.#pending) this.#parts.overlay.remove(seq, rows);
    this.#pending.clear();
    this.#waiters.length = 0;
  }

  /** R8: a refusal is answered as a read is. */
  async #answerWhenConfirmed(done: () => void): Promise<void> {
    const mayAnswer = this.confirmRead();
    if (mayAnswer !== undefined && !(await mayAnswer)) return;
    if (!this.#hasEnded) done();
  }

  /** Entries of one turn share messages, and those of one sync a witness. */
  #flushSoon(): void {
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    void Promise.resolve().then(() => {
      this.#isFlushing = false;
      if (!this.#hasEnded) this.#flush();
    });
  }

  /** False: the witness has failed for good. `failed` reports it to the owner of the node; here nothing counts any more. */
  #isWitnessed(seq: number): boolean {
    try {
      this.#parts.witness(seq);
      return true;
    } catch {
      return false;
    }
  }

  #flush(): void {
    const { term } = this.#parts;
    if (this.#syncedSeq > this.#ownSeq && this.#isWitnessed(this.#syncedSeq)) this.#ownSeq = this.#syncedSeq;
    term.flush();
  }
}
