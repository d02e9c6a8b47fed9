// Which disks own which chunks (protocol 1.2, R34): a map over all disks, as plain data, and how parts of a process learn
// of newer ones. How maps are made is src/chunks/placement/placement.ts, how they change
// src/chunks/placement/placement-changes.ts.
import type { NodeId } from './replication.ts';

/** Random, made with the disk's database, 32 hex digits: an emptied disk is a new one (R40). */
export type DiskId = string;

/**
 * Why a disk owns no more than what cannot lie elsewhere: the operator wants it out, or nobody has served it for long.
 */
export type DiskLeave = 'draining' | 'absent';

export interface PlacedDisk {
  id: DiskId;
  nodeId: NodeId;
  /** What fails together: a rack, a room. */
  zone: string;
  capacityBytes: number;
  /** Where its node serves chunks: `host:port`. */
  address: string;
  /**
   * Grows whenever it comes back without what was acknowledged last (R40), and then all is audited: behind which of its
   * commits it goes on. Absent: it never did.
   */
  cutSeq?: number;
  /** Absent: it serves, and owns its share. */
  leave?: DiskLeave;
}

export interface PlacementMap {
  /** Each change adds one; nodes refuse writes by a lower version than they know (R34). */
  version: number;
  /** Owners of a partition, as far as there are disks. */
  copies: number;
  disks: readonly PlacedDisk[];
  /** By partition, LIMITS.partitionCount of them; no disk twice in one; the newest owner last. */
  owners: readonly (readonly DiskId[])[];
  /**
   * By partition: who owned it before a change that is not done, and does not now (R34, R39). Chunks may lie there alone.
   * Empty for nearly all partitions.
   */
  previous: readonly (readonly DiskId[])[];
  /**
   * By partition: disks that leave, and owned it when they began to. Who returns gets back what it had: most of the bytes
   * are there.
   */
  former: readonly (readonly DiskId[])[];
  /** The version of the last change of owners: when all shards have audited at it or a later one, `previous` is cleared. */
  auditFrom: number;
  /** Disks that the operator has removed, the newest last: they are not taken in again, though they may still announce themselves. */
  retired: readonly DiskId[];
}

export interface PlacementPort {
  /** The newest map that is known here. */
  current(): PlacementMap;
  /** The highest version that anyone has announced. */
  announcedVersion(): number;
  /** A node or a peer knows of `version`. */
  noteVersion(version: number): void;
  /** Resolves with the first map of at least `version`; rejects with AppError ServiceUnavailable when `signal` aborts. */
  atLeast(version: number, signal: AbortSignal): Promise<PlacementMap>;
}
