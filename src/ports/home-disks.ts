// What a home shard does with the copies of its chunks (R31, R32, R38 to R40): it alone starts every copy and every drop.
// Background work says which chunks; this port knows which disks. All of it may be repeated, and nothing of it drops the
// copy that a chunk needs.
import type { ChunkId, Fence } from './chunks.ts';
import type { DiskId } from './placement.ts';

export interface ChunkToRepair {
  id: ChunkId;
  /** Who was known to have it, owners or not. */
  holders: readonly DiskId[];
  /** As many as were known when last something was noted of it: with fewer than `holders`, some of these do not have it. */
  copies?: number;
  /** Disks with a quarantined copy; those without another copy are found without this. */
  quarantinedAt?: readonly DiskId[];
}

export type ChunkState =
  /** All of its owners have it, and nobody else that was asked. */
  | { kind: 'whole' }
  /** An owner lacks it, or does not say, or somebody has it who should not. `copies`: how many are known. */
  | { kind: 'incomplete'; copies: number; holders: DiskId[] }
  /** All disks have said that they do not have it. */
  | { kind: 'lost' }
  /** Of a look: nothing speaks against it, but not all have answered. Of a repair: nobody was asked, it is to wait. */
  | { kind: 'unknown' };

/** By one map, in one epoch. */
export interface ChunkStates {
  mapVersion: number;
  states: ChunkState[];
}

export interface LookOptions {
  fence: Fence;
  /** Asks these alone, and of them their own chunks. */
  of?: ReadonlySet<DiskId>;
  /** Counts the copies of silent owners as missing, even where owners have not changed. */
  countsSilentAsMissing?: boolean;
  signal: AbortSignal;
}

export interface HomeDisks {
  /** The version of the newest placement map that is known here; 0: none. */
  mapVersion(): number;
  /** A look at all chunks that began by this map or a later one has seen the last change of owners (R39). */
  auditFrom(): number;
  /**
   * Brings chunks to their owners, and drops what lies elsewhere once all owners have proven theirs, in the order of
   * `chunks`. undefined: the map or the epoch is out of date; ask again.
   */
  repair(
    chunks: readonly ChunkToRepair[],
    how: { fence: Fence; signal: AbortSignal },
  ): Promise<ChunkStates | undefined>;
  /** Asks who has these, and changes nothing; otherwise as `repair`. Never `lost`. */
  look(ids: readonly ChunkId[], options: LookOptions): Promise<ChunkStates | undefined>;

  /** All disks of the map. */
  disks(): DiskId[];
  isOwner(disk: DiskId, id: ChunkId): boolean;
  /** How often a disk that had not answered did so again: what it has must be looked at. */
  returnsOf(disk: DiskId): number;
  // Of one disk. undefined or false: it did not answer, or refused.
  listQuarantined(
    disk: DiskId,
    options: { homes: readonly number[]; after?: ChunkId; limit: number },
  ): Promise<ChunkId[] | undefined>;
  listOf(
    disk: DiskId,
    options: { homes: readonly number[]; after?: ChunkId; limit: number },
  ): Promise<
    { chunks: { id: ChunkId; sizeBytes: number; receivedAtMs: number }[]; next?: ChunkId } | undefined
  >;
  /** Of blobs that no commit can claim any more (R32). */
  drop(disk: DiskId, ids: readonly ChunkId[], fence: Fence): Promise<boolean>;
  /** Drops quarantined copies. */
  dropQuarantined(disk: DiskId, ids: readonly ChunkId[], fence: Fence): Promise<boolean>;
}
