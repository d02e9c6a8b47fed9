// The room of a file system that is kept for deletes, retention changes and the store's own upkeep (R20). What grows asks
// before it writes; contract and measure of it are chunks/disk/disk-reserve.ts.

export interface DiskSpace {
  /** What an ordinary process may still write: without the blocks kept for root. */
  freeBytes: number;
  totalBytes: number;
}

/** Room reserved for one write. */
export interface DiskHold {
  /** The write has ended, well or not. */
  release(): void;
}

export interface DiskReservePort {
  /**
   * Undefined when a write of `sizeBytes` would touch the reserve: it must not begin. `isForFullDisk`: it may, but leaves
   * LIMITS.diskReserveKeptShare of it to what gives room back and to the store's own upkeep.
   */
  hold(sizeBytes: number, how?: { isForFullDisk: boolean }): Promise<DiskHold | undefined>;
  measure(): Promise<DiskSpace>;
}
