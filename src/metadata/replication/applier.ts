// Brings committed entries into the state, in order and once (R6): on every replica, in any role. Unsynced, because the
// log has them synced; after a crash they are applied again, which changes nothing.
import { assert, must } from '../../base/assert.ts';
import type { KvBounds, KvPort, KvPut } from '../../ports/kv.ts';
import { LIMITS } from '../../types/limits.ts';
import { decodeEntry, type Entry } from '../engine/entry-codec.ts';
import { type Applied, encodeApplied } from '../engine/entry-rows.ts';
import { ENGINE_TABLES, rowKey } from '../engine/row-keys.ts';
import type { LogStore } from './log-store.ts';
import { requestedRange } from './verify-record.ts';

const BATCH_BYTES_MAX = 1024 * 1024;

export class Applier {
  readonly #kv: KvPort;
  readonly #log: LogStore;
  readonly #appliedKey: Uint8Array;
  readonly #onApplied: (entry: Entry) => void;
  readonly #isAwaited: () => boolean;
  readonly #verify: (seq: number, range: KvBounds) => Promise<void>;
  #applied: Applied;
  #targetSeq: number;
  #isRunning = false;
  #run: Promise<void> = Promise.resolve();

  constructor(parts: {
    shard: number;
    kv: KvPort;
    log: LogStore;
    applied: Applied;
    /** In order; the entry is in the state. */
    onApplied(entry: Entry): void;
    /** Somebody waits for what is applied: of a follower nobody does. */
    isAwaited(): boolean;
    /** R22: the state is exactly that of the entry, until it resolves. */
    verify(seq: number, range: KvBounds): Promise<void>;
  }) {
    this.#kv = parts.kv;
    this.#log = parts.log;
    this.#applied = parts.applied;
    this.#targetSeq = parts.applied.seq;
    this.#onApplied = parts.onApplied;
    this.#isAwaited = parts.isAwaited;
    this.#verify = parts.verify;
    this.#appliedKey = rowKey(parts.shard, ENGINE_TABLES.applied, new Uint8Array(0));
  }

  /** The last entry in the state. */
  get applied(): Applied {
    return this.#applied;
  }

  /** No entry up to it will ever be cut. */
  get targetSeq(): number {
    return this.#targetSeq;
  }

  /** The state is that of `applied` now: it came as a snapshot (R16). */
  async reset(applied: Applied): Promise<void> {
    this.#targetSeq = 0;
    await this.#run;
    this.#applied = applied;
    this.#targetSeq = applied.seq;
  }

  /** Applies up to `seq`, which is committed and in the log. A failed write ends the process (R20). */
  advance(seq: number): void {
    this.#targetSeq = Math.max(this.#targetSeq, Math.min(seq, this.#log.last.seq));
    if (this.#isRunning) return;
    // `failed` reports its failure to the owner of the store.
    this.#run = this.#applyAll().catch(() => {});
  }

  async #applyAll(): Promise<void> {
    this.#isRunning = true;
    try {
      // Nothing runs between the last look at the target and the end of this: no advance is overlooked.
      while (this.#applied.seq < this.#targetSeq) await this.#applySome();
    } finally {
      this.#isRunning = false;
    }
  }

  async #applySome(): Promise<void> {
    const fromSeq = this.#applied.seq + 1;
    const encoded = await this.#log.read(fromSeq, this.#targetSeq, BATCH_BYTES_MAX);
    const { entries, range } = nextBatch(encoded);
    const last = must(entries.at(-1), 'committed entries are in the log');
    assert(entries[0]?.seq === fromSeq, 'entries are applied in order');
    const rows: KvPut[] = entries.flatMap((entry) => entry.rows);
    const { seq, epoch, timeMs } = last;
    rows.push({ column: 'rows', key: this.#appliedKey, value: encodeApplied({ seq, epoch, timeMs }) });
    await this.#kv.commit(rows, { sync: false, keep: true, isPatient: !this.#isAwaited() });
    this.#applied = { seq, epoch, timeMs };
    for (const entry of entries) this.#onApplied(entry);
    if (range !== undefined) await this.#verify(seq, range);
  }
}

/**
 * As many as are one write (LIMITS.commitGroupRowsMax), up to the first entry that asks for a digest: what is behind it would change
 * the state.
 */
function nextBatch(encoded: readonly Uint8Array[]): { entries: Entry[]; range?: KvBounds } {
  const entries: Entry[] = [];
  let rowCount = 0;
  for (const bytes of encoded) {
    const entry = decodeEntry(bytes);
    entries.push(entry);
    rowCount += entry.rows.length;
    const range = requestedRange(entry.rows);
    if (range !== undefined) return { entries, range };
    if (rowCount >= LIMITS.commitGroupRowsMax) break;
  }
  return { entries };
}
