// How much fits into the store, how much of it is taken and how much may still be written: for programs that ask (SOSAPI).
// One reading serves all who ask for a while, so that asking often costs no more than asking once.
import { cacheReading } from '../../../base/async/cache-reading.ts';
import { chunkRoomOf } from '../../../chunks/disk/disk-reserve.ts';
import type { ClockPort } from '../../../ports/clock.ts';
import { LIMITS } from '../../../types/limits.ts';

/** Bytes as clients count them: the copies of a chunk take the room of one. */
export interface StoreCapacity {
  totalBytes: number;
  /** What may still be written before new data is refused: without the reserve of disks (R20). */
  availableBytes: number;
}

export interface MeasuredCapacity extends StoreCapacity {
  /** Wall clock, ms since epoch. */
  measuredAtMs: number;
}

/** Of the disks that hold chunks, each with its own reserve. `copies`: of each chunk. */
export function capacityOfDisks(
  disks: readonly { diskFreeBytes: number; diskTotalBytes: number }[],
  { copies }: { copies: number },
): StoreCapacity {
  const sum = { totalBytes: 0, availableBytes: 0 };
  for (const disk of disks) {
    const { freeBytes, totalBytes, fullBelowBytes } = chunkRoomOf(disk);
    sum.totalBytes += totalBytes;
    sum.availableBytes += Math.max(0, freeBytes - fullBelowBytes);
  }
  const perCopy = Math.max(1, copies);
  return {
    totalBytes: Math.floor(sum.totalBytes / perCopy),
    availableBytes: Math.floor(sum.availableBytes / perCopy),
  };
}

/** Disks are asked at most once in LIMITS.capacityKeptMs, however many ask. Rejects as `read`. */
export function cacheCapacity(
  read: () => Promise<StoreCapacity>,
  clock: ClockPort,
): () => Promise<MeasuredCapacity> {
  const measure = async () => ({ ...(await read()), measuredAtMs: clock.wallMs() });
  return cacheReading(measure, { cachedMs: LIMITS.capacityKeptMs, nowMs: () => clock.monotonicMs() });
}
