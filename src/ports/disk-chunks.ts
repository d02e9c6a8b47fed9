// The chunks of one disk as the cluster uses them: like ChunkPort, for many callers, some of which cancel, and with the
// placement map by which the disk was chosen. Contract: tests/contract/chunks.test.ts, over HTTP and in the same process.
import type { ChunkId, ChunkPort, ChunkRead, ChunkReadOptions } from './chunks.ts';
import type { DiskOrders } from './disk-orders.ts';
import type { PlacedDisk } from './placement.ts';

export interface DiskChunks extends Pick<ChunkPort, 'have' | 'drop' | 'list' | 'usage' | 'recount'> {
  /**
   * Resolves once synced. `bytes` stay the caller's, and unchanged until it settles. Rejects with StaleMap, OtherBytes,
   * AppError InsufficientStorage (at its reserve), SlowDown (nothing was sent) or ServiceUnavailable (outcome unknown).
   */
  put(id: ChunkId, bytes: Uint8Array, how: PutOptions): Promise<void>;
  /**
   * What the disk has verified. `isProven`: the caller proves the bytes by their tags, so they are not checked once more
   * on their arrival. The bytes are the caller's. Rejects with AppError when the disk did not say.
   */
  get(id: ChunkId, how: ChunkReadOptions & { signal: AbortSignal }): Promise<ChunkRead>;
}

export interface PutOptions {
  /** CRC32 of the bytes. */
  checksum: number;
  /** Of the placement map by which this disk was chosen (R34). */
  mapVersion: number;
  signal: AbortSignal;
}

/** Reaches the disks of a map; the same disk gives the same object as long as its address stays. */
export interface DiskDirectory {
  chunksOf(disk: PlacedDisk): DiskChunks & DiskOrders;
}
