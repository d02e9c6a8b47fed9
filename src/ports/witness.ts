// Where the logs of a node's replicas had come to when they last acknowledged something, kept beside the database and not
// in it (protocol 1.2, R17): a database that was reopened with its end cut off is known by it. One for a node.
// Contract, held by tests/contract/witness.test.ts for every adapter:
// - What `write` was given survives the end of the process at once, and a loss of power from the next sync on, which
//   follows within LIMITS.witnessSyncMs. Nothing is lost but the newest writes: an older position never replaces a newer one.
// - A shard's record that can be read no more is `damaged`: what it said is unknown.
// - A failed write or sync is final (R20): `failed` settles, and every later call throws or rejects.
import type { LogPosition } from './replication.ts';

export interface WitnessedPosition extends LogPosition {
  /**
   * The replica has counted for nothing since it began anew at the word of the primary of that epoch (R16): what it had
   * acknowledged must be back before it counts again.
   */
  isEmptied?: true;
}

export interface WitnessPort {
  /** The last position written. undefined: there never was one. */
  read(shard: number): WitnessedPosition | 'damaged' | undefined;
  /** Before the acknowledgement of `position` leaves. Synchronous: it is called for each of them. */
  write(shard: number, position: WitnessedPosition): void;
  /**
   * As `write`, but durable when it resolves: before a log is cut, else the cut would look like damage. undefined: the
   * replica begins anew (R16).
   */
  lower(shard: number, position: WitnessedPosition | undefined): Promise<void>;
  /** Resolves with the error when it has failed for good; never rejects. */
  readonly failed: Promise<Error>;
  /** Syncs what is written. Of one whose drive hangs it resolves when the drive answers, or rejects with its error. */
  close(): Promise<void>;
}
