// Encrypted, immutable chunks on storage nodes. Embedded: the chunk store itself; in a cluster: HTTP to its owners.
// Contract (tests/contract/chunks.test.ts): plain data in and out; `put` is durable when it resolves (R35); the same
// id with other bytes is refused (R24); reads verify the stored checksum, or leave that to tags of the reader's.
import type { BlobId } from '../types/names.ts';
import type { DiskId } from './placement.ts';

export interface ChunkId {
  blobId: BlobId;
  /** Position in the blob, from 0. */
  index: number;
}

/** Who orders a drop (R21, R38): nodes refuse a lower one than they have seen. */
export interface Fence {
  shard: number;
  incarnation: number;
  epoch: number;
}

export type ChunkRead =
  /** `checksum`: CRC32 of the bytes, as it was stored with them; where that is known. */
  { kind: 'found'; bytes: Uint8Array; checksum?: number } | { kind: 'missing' } | { kind: 'damaged' };

/** Bytes of a chunk as it is stored, sealed; all of them lie in it. */
export interface ChunkPart {
  readonly offsetBytes: number;
  readonly sizeBytes: number;
}

export interface ChunkReadOptions {
  /** The caller proves what it uses of the bytes by their tags, so the checksum is not looked at. */
  isProven: boolean;
  /** Of bytes that are proven: no others are needed. They come alone, without a checksum, or with all of the chunk. */
  part?: ChunkPart | undefined;
}

/** What is known of a stored chunk without reading it. */
export interface StoredChunk {
  sizeBytes: number;
  /** CRC32, as it was when it was received. */
  checksum: number;
  receivedAtMs: number;
}

export interface ChunkTotals {
  chunkCount: number;
  /** As stored, sealed. */
  liveBytes: number;
}

/** Where a chunk was put (R36). */
export interface ChunkHolders {
  /** Of the placement map by which it was written. */
  mapVersion: number;
  /** Disks that have synced it, when that is not (yet) all of its owners, and only them. Absent: just its owners. */
  holders?: DiskId[];
}

export interface ChunkPort {
  /**
   * Takes over `bytes` (its ArrayBuffer may be transferred) and resolves once synced. `checksum`: their CRC32, if it is
   * known. With a placement map, returns where the chunk was put: the commit of the chunk includes that, for its repair
   * entry. Rejects with AppError InsufficientStorage when the disk is at its reserve, ServiceUnavailable when it failed.
   * `waitMaxMs`: how long disks of other machines are waited for; default: as long as a write goes on.
   */
  put(
    id: ChunkId,
    bytes: Uint8Array,
    checksum?: number,
    waitMaxMs?: number,
  ): Promise<ChunkHolders | undefined>;
  get(id: ChunkId, options?: ChunkReadOptions): Promise<ChunkRead>;
  /** What is stored of each, in the order of `ids`; null: not here. */
  have(ids: readonly ChunkId[]): Promise<(StoredChunk | null)[]>;
  /** By order of the home shard alone (R31, R38); absent ones count as done. */
  drop(ids: readonly ChunkId[], fence: Fence): Promise<void>;
  /** For the reverse sweep and fsck (R32): ids and receipt times in id order, after `after`. */
  list(options: {
    after?: ChunkId;
    limit: number;
  }): Promise<{ id: ChunkId; sizeBytes: number; receivedAtMs: number }[]>;
  usage(): Promise<
    ChunkTotals & {
      pendingReclaimBytes: number;
      diskFreeBytes: number;
      diskTotalBytes: number;
      /** Of one disk: the number of quarantined copies (R40). */
      quarantinedCount?: number;
      /** Of one disk: copies that could not be read, and are not known to be lost. */
      unreadCount?: number;
      /** Of one disk, whose large chunks lie in extents: how they are written; `buffered` is slower. */
      largeWrites?: 'direct' | 'buffered';
    }
  >;
  /** For fsck: counts all chunks, and reads the totals that are kept of them, both at one moment. */
  recount(): Promise<{ counted: ChunkTotals; kept: ChunkTotals }>;
}
