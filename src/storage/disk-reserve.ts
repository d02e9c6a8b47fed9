// Refuses what grows before a file system is full, so that deletes, retention changes and the store's own upkeep still
// have room (R20, architecture 5). It measures now and then, and counts what was let through in between.
import { AppError } from '../model/errors.ts';
import { LIMITS } from '../model/limits.ts';
import type { ClockPort } from '../ports/clock.ts';

export interface DiskSpace {
  freeBytes: number;
  totalBytes: number;
}

export interface DiskReserve {
  /** Rejects with AppError InsufficientStorage when writing `sizeBytes` would touch the reserve. */
  admit(sizeBytes: number): Promise<void>;
  measure(): Promise<DiskSpace>;
}

const MEASURE_EVERY_MS = 1000;
/** What is written takes its room twice for a while: in the log and in a table. */
const ROOM_PER_BYTE = 2;

export function createDiskReserve(deps: {
  readSpace(): Promise<DiskSpace>;
  clock: ClockPort;
  /** Default: a share of the file system, within bounds (LIMITS). */
  reserveBytes?: number;
}): DiskReserve {
  const { readSpace, clock } = deps;
  let known: { space: DiskSpace; atMs: number; spentBytes: number } | undefined;
  let measuring: Promise<DiskSpace> | undefined;

  function measure(): Promise<DiskSpace> {
    measuring ??= readSpace()
      .then((space) => {
        known = { space, atMs: clock.monotonicMs(), spentBytes: 0 };
        return space;
      })
      .finally(() => {
        measuring = undefined;
      });
    return measuring;
  }

  return {
    measure,
    async admit(sizeBytes) {
      if (known === undefined || clock.monotonicMs() - known.atMs > MEASURE_EVERY_MS) await measure();
      if (known === undefined) return;
      const { space } = known;
      const neededBytes = known.spentBytes + sizeBytes * ROOM_PER_BYTE;
      if (space.freeBytes - neededBytes < (deps.reserveBytes ?? reserveOf(space)))
        throw new AppError('InsufficientStorage');
      known.spentBytes = neededBytes;
    },
  };
}

function reserveOf({ totalBytes }: DiskSpace): number {
  const shareBytes = totalBytes * LIMITS.diskReserveShare;
  return Math.min(Math.max(shareBytes, LIMITS.diskReserveBytesMin), LIMITS.diskReserveBytesMax);
}
