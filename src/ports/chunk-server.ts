// How a storage node is reached: what serves its disks, and what it serves. Contract: tests/contract/chunks.test.ts.
import type { ChunkPort } from './chunks.ts';
import type { DiskOrders } from './disk-orders.ts';
import type { DiskId } from './placement.ts';

/** One disk, as its node serves it. */
export type ServedDisk = ChunkPort & DiskOrders;

export interface ServedDisks {
  /** undefined: no disk of this node, or none any more. */
  chunksOf(diskId: DiskId): ServedDisk | undefined;
  /** The highest placement version that this node knows of. */
  mapVersion(): number;
  /** Resolves once the disks keep `version`, so that no write by an older map is taken after a restart either (R34). */
  adopt(version: number): Promise<void>;
}

export interface ChunkServerPort {
  serve(disks: ServedDisks): Promise<RunningChunkServer>;
}

export interface RunningChunkServer {
  /** `host:port`, as others reach it. */
  readonly address: string;
  /** Lets requests under way end, LIMITS.drainMaxMs at most; afterwards none of them uses a disk any more. */
  stop(): Promise<void>;
}
