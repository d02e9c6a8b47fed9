// What home shards order of disks (R38, R39), beside what everyone may ask of them (disk-chunks.ts). A disk does nothing of
// this on its own, and takes no order that an older epoch or an older map has given: OldFence, StaleMap. Ids are of blobs
// whose home is the fence's shard; other ones are a mistake of the sender's, and refused.
// Contract: tests/contract/chunks.test.ts, over HTTP and in the same process.
import type { ChunkId, ChunkRead, Fence } from './chunks.ts';
import type { DiskId } from './placement.ts';

export interface Order {
  /** Of the home shard; kept durably, lower ones are refused (R21). */
  fence: Fence;
  /** Of the placement map by which it is given; adopted durably before anything is answered (R38). */
  mapVersion: number;
}

/** What a disk says of one chunk when it is asked with an order. */
export type InspectedChunk =
  /** With `readBytes`: read, and its checksum was right. */
  | { kind: 'whole'; sizeBytes: number; checksum: number; receivedAtMs: number }
  /** `isQuarantined`: a copy that did not verify is in quarantine, and counts as missing (R40). */
  | { kind: 'missing'; isQuarantined: boolean }
  /** It may be there, but it could not be read, or not for some time: it is neither a copy nor a loss. */
  | { kind: 'unread' };

/** The newest placement map that a node knows, as its disks ask of it. */
export interface KnownOwners {
  /** 0: none yet. */
  version(): number;
  owns(diskId: DiskId, id: ChunkId): boolean;
  /** `version` is known to be out: the map should be fetched. */
  noteVersion(version: number): void;
}

/** How a disk gets a chunk of another one, wherever that is. Rejects with AppError when there is no answer. */
export type FetchChunk = (
  from: { diskId: DiskId; address: string },
  id: ChunkId,
  signal: AbortSignal,
) => Promise<ChunkRead>;

export interface DiskOrders {
  /** In the order of `ids`, LIMITS.chunkBatchIdsMax at most. What does not verify when it is read is quarantined at once. */
  inspect(
    ids: readonly ChunkId[],
    order: Order,
    how: { readBytes: boolean; signal: AbortSignal },
  ): Promise<InspectedChunk[]>;
  /**
   * Fetches the chunk from another disk of the cluster, verifies it against `checksum` and resolves once it is synced here.
   * A quarantined copy stays until `dropQuarantined`. `absent`: `from` has no intact copy.
   */
  pull(
    chunk: { id: ChunkId; sizeBytes: number; checksum: number; from: { diskId: DiskId; address: string } },
    order: Order,
    signal: AbortSignal,
  ): Promise<'stored' | 'absent'>;
  /**
   * R38 b: drops copies of chunks that live elsewhere. Refused with OldFence; with StaleMap when the node knows a newer map;
   * with OwnedHere when by its newest map this disk owns one of them. Absent ones count as done.
   */
  dropMisplaced(ids: readonly ChunkId[], order: Order): Promise<void>;
  /** Drops quarantined copies: two verified ones exist elsewhere (R40). */
  dropQuarantined(ids: readonly ChunkId[], order: Order): Promise<void>;
  /** Chunks of these home shards with a quarantined or unreadable copy, in id order. Their homes ask for them. */
  listQuarantined(options: { homes: readonly number[]; after?: ChunkId; limit: number }): Promise<ChunkId[]>;
  /**
   * As `list`, of these home shards alone. `next` is absent at the end; a page may be empty and not the last, for a disk
   * walks no more than a bounded number of rows in one call.
   */
  listOf(options: { homes: readonly number[]; after?: ChunkId; limit: number }): Promise<{
    chunks: { id: ChunkId; sizeBytes: number; receivedAtMs: number }[];
    next?: ChunkId;
  }>;
}
