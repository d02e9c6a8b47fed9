// Refuses what grows before a file system is full, so that deletes, retention changes and the store's own upkeep still
// have room (R20, architecture 5). It measures now and then, and counts what it has let through beside that.
import { sealedBytes } from '../lib/seal.ts';
import { LIMITS } from '../model/limits.ts';
import type { ClockPort } from '../ports/clock.ts';
import type { DiskReservePort, DiskSpace } from '../ports/disk-reserve.ts';

const MEASURE_EVERY_MS = 1000;
/** Nothing is refused by an older measure. */
const REFUSE_BY_MS = 100;
/** What is written takes its room twice for a while: in the log and in a table. */
const ROOM_PER_BYTE = 2;
const LARGEST_CHUNK_BYTES = sealedBytes({
  sizeBytes: LIMITS.chunkBytesMax,
  pieceBytes: LIMITS.sealPieceBytes,
});

export function createDiskReserve(deps: {
  readSpace(): Promise<DiskSpace>;
  clock: ClockPort;
  /** Default: a share of the file system, within bounds (LIMITS). */
  reserveBytes?: number;
}): DiskReservePort {
  const { readSpace, clock } = deps;
  let known: { space: DiskSpace; atMs: number } | undefined;
  let measuring: Promise<DiskSpace> | undefined;
  /** Of writes under way. */
  let heldBytes = 0;
  /** Of writes that have ended since the last measure. */
  let writtenBytes = 0;

  function measure(): Promise<DiskSpace> {
    measuring ??= readSpace()
      .then((space) => {
        known = { space, atMs: clock.monotonicMs() };
        writtenBytes = 0;
        return space;
      })
      .finally(() => {
        measuring = undefined;
      });
    return measuring;
  }

  async function measureIfOlder(ageMs: number): Promise<void> {
    if (known === undefined || clock.monotonicMs() - known.atMs > ageMs) await measure();
  }

  function hasRoom(neededBytes: number): boolean {
    if (known === undefined) return false;
    const { space } = known;
    const leftBytes = space.freeBytes - heldBytes - writtenBytes - neededBytes;
    return leftBytes >= (deps.reserveBytes ?? reserveOf(space));
  }

  return {
    measure,
    async hold(sizeBytes) {
      const neededBytes = sizeBytes * ROOM_PER_BYTE;
      await measureIfOlder(MEASURE_EVERY_MS);
      if (!hasRoom(neededBytes)) await measureIfOlder(REFUSE_BY_MS);
      if (!hasRoom(neededBytes)) return undefined;
      heldBytes += neededBytes;
      return {
        release() {
          heldBytes -= neededBytes;
          writtenBytes += neededBytes;
        },
      };
    },
  };
}

/** Where operators are told of a file system, in bytes that it has free. */
export interface RoomLimits {
  /** It takes nothing that grows. */
  fullBelowBytes: number;
  /** It will soon be full. */
  scarceBelowBytes: number;
}

export function roomLimitsOf(space: Pick<DiskSpace, 'totalBytes'>): RoomLimits {
  const fullBelowBytes = reserveOf(space);
  return { fullBelowBytes, scarceBelowBytes: LIMITS.diskReservesTold * fullBelowBytes };
}

/** Of a disk with chunks: what fills it refuses the next one, and so comes to rest above the reserve. */
export function chunkRoomLimitsOf(space: Pick<DiskSpace, 'totalBytes'>): RoomLimits {
  const limits = roomLimitsOf(space);
  const fullBelowBytes = limits.fullBelowBytes + ROOM_PER_BYTE * LARGEST_CHUNK_BYTES;
  return { fullBelowBytes, scarceBelowBytes: Math.max(limits.scarceBelowBytes, fullBelowBytes) };
}

/** Whether a disk with this room takes no new chunks of full size. */
export function isFull(usage: { diskFreeBytes: number; diskTotalBytes: number }): boolean {
  return usage.diskFreeBytes < chunkRoomLimitsOf({ totalBytes: usage.diskTotalBytes }).fullBelowBytes;
}

/** What is kept free of a file system, by default. */
function reserveOf({ totalBytes }: Pick<DiskSpace, 'totalBytes'>): number {
  const shareBytes = totalBytes * LIMITS.diskReserveShare;
  const wantedBytes = Math.min(Math.max(shareBytes, LIMITS.diskReserveBytesMin), LIMITS.diskReserveBytesMax);
  return Math.min(wantedBytes, totalBytes * LIMITS.diskReserveShareMax);
}
