// What a shard's evaluation needs of its log: numbers and times for entries, notice that they are committed, and whether
// what was read may be answered. With one voter it is shard-log.ts, with several replicated-log.ts.
import type { KvPut } from '../../ports/kv.ts';
import type { Applied } from './entry-rows.ts';

export interface EntryLog {
  /** The last entry that is committed, and so in the state. */
  readonly committed: Applied;
  /** Shard time, ms: never before the last entry's (R19). */
  nowMs(): number;
  /** Adds an entry at `timeMs`, taken from `nowMs` with nothing appended since. `done` is called once it is in the state. */
  append(entry: { rows: readonly KvPut[]; timeMs: number; done(): void }): void;
  /** Calls `done` when all that is appended by now is committed and may be answered (R8, R10): at once when it is. */
  whenCommitted(done: () => void): void;
  /**
   * Called after a read of the state: undefined when its result may be answered (R10), else whether it may, a little later.
   */
  confirmRead(): undefined | Promise<boolean>;
}
