// Refuses writes before a file system is full, so that deletes, retention changes and the store's own upkeep still have
// room (R20). Free space is measured now and then; in between, admitted writes are subtracted.
import { sealedBytes } from '../../base/crypto/seal.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { DiskReservePort, DiskSpace } from '../../ports/disk-reserve.ts';
import type { Logger } from '../../ports/telemetry.ts';
import { LIMITS } from '../../types/limits.ts';

const MEASURE_EVERY_MS = 1000;
/** A write is never refused by an older measurement. */
const REFUSE_BY_MS = 100;
/** A write uses its size twice for a while: in the log and in a table. */
const ROOM_PER_BYTE = 2;
/** Refusals are logged together, once in this time. */
const WARN_EVERY_MS = 60_000;
const LARGEST_CHUNK_BYTES = sealedBytes({
  sizeBytes: LIMITS.chunkBytesMax,
  blockBytes: LIMITS.sealBlockBytes,
});

/** Bytes of admitted writes, of all reserves of one file system together. */
export interface AdmittedBytes {
  /** Of writes under way, changed by so much. */
  hold(changeBytes: number): void;
  held(): number;
  /** One that was held has ended. */
  wrote(sizeBytes: number): void;
  /** Of writes that have ended since `from`, which an earlier call has returned. */
  writtenSince(from: number): number;
  /** How far it has come: what later calls are compared with. */
  written(): number;
}

function createAdmittedBytes(): AdmittedBytes {
  let heldBytes = 0;
  let writtenBytes = 0;
  return {
    hold(changeBytes) {
      heldBytes += changeBytes;
    },
    held: () => heldBytes,
    wrote(sizeBytes) {
      writtenBytes += sizeBytes;
    },
    writtenSince: (from) => writtenBytes - from,
    written: () => writtenBytes,
  };
}

const KiB = 1024;
const kibOf = (sizeBytes: number) => Math.sign(sizeBytes) * Math.ceil(Math.abs(sizeBytes) / KiB);
export const SHARED_ADMITTED_BYTES = 2 * Int32Array.BYTES_PER_ELEMENT;

/**
 * The same, of threads that have reserves of one file system: counted in KiB, in `memory` of SHARED_ADMITTED_BYTES that they share.
 * What is written counts modulo 4 TiB: nobody writes that much between two measurements.
 */
export function shareAdmittedBytes(memory: SharedArrayBuffer): AdmittedBytes {
  const [HELD, WRITTEN] = [0, 1];
  const counts = new Int32Array(memory);
  return {
    hold: (changeBytes) => void Atomics.add(counts, HELD, kibOf(changeBytes)),
    held: () => Atomics.load(counts, HELD) * KiB,
    wrote: (sizeBytes) => void Atomics.add(counts, WRITTEN, kibOf(sizeBytes)),
    writtenSince: (from) => ((Atomics.load(counts, WRITTEN) - from) | 0) * KiB,
    written: () => Atomics.load(counts, WRITTEN),
  };
}

export function createDiskReserve(deps: {
  readSpace(): Promise<DiskSpace>;
  clock: ClockPort;
  /** Default: of this reserve alone. */
  admitted?: AdmittedBytes;
  /** Default: a share of the file system, within bounds (LIMITS). */
  reserveBytes?: number;
  /** Called about refusals, at most once a minute. */
  log?: Pick<Logger, 'warn'>;
}): DiskReservePort {
  const { readSpace, clock, log, admitted = createAdmittedBytes() } = deps;
  let refusedCount = 0;
  let warnedAtMs = Number.NEGATIVE_INFINITY;
  let known: { space: DiskSpace; atMs: number } | undefined;
  let measuring: Promise<DiskSpace> | undefined;
  /** What had been written when it was measured last. */
  let writtenBefore = admitted.written();

  function measure(): Promise<DiskSpace> {
    measuring ??= readSpace()
      .then((space) => {
        known = { space, atMs: clock.monotonicMs() };
        writtenBefore = admitted.written();
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

  function warnOfRefusal(): void {
    refusedCount++;
    if (log === undefined || clock.monotonicMs() - warnedAtMs < WARN_EVERY_MS) return;
    warnedAtMs = clock.monotonicMs();
    log.warn({ refusedCount, ...known?.space }, 'disk-full');
    refusedCount = 0;
  }

  function hasRoom(neededBytes: number, isForFullDisk: boolean): boolean {
    if (known === undefined) return false;
    const { space } = known;
    const admittedBytes = admitted.held() + admitted.writtenSince(writtenBefore);
    const leftBytes = space.freeBytes - admittedBytes - neededBytes;
    const reserveBytes = deps.reserveBytes ?? reserveOf(space);
    return leftBytes >= (isForFullDisk ? LIMITS.diskReserveKeptShare : 1) * reserveBytes;
  }

  return {
    measure,
    async hold(sizeBytes, { isForFullDisk } = { isForFullDisk: false }) {
      const neededBytes = sizeBytes * ROOM_PER_BYTE;
      await measureIfOlder(MEASURE_EVERY_MS);
      if (!hasRoom(neededBytes, isForFullDisk)) await measureIfOlder(REFUSE_BY_MS);
      if (!hasRoom(neededBytes, isForFullDisk)) {
        warnOfRefusal();
        return undefined;
      }
      admitted.hold(neededBytes);
      return {
        release() {
          admitted.hold(-neededBytes);
          admitted.wrote(neededBytes);
        },
      };
    },
  };
}

/** Bounds of free bytes at which operators are warned. */
export interface RoomLimits {
  /** The file system takes no writes that grow it. */
  fullBelowBytes: number;
  /** It will soon be full. */
  scarceBelowBytes: number;
}

export function roomLimitsOf(space: Pick<DiskSpace, 'totalBytes'>): RoomLimits {
  const fullBelowBytes = reserveOf(space);
  return { fullBelowBytes, scarceBelowBytes: LIMITS.lowSpaceAlarmFactor * fullBelowBytes };
}

/** For a disk with chunks: the bound is above the reserve, because a disk that refuses the next chunk stops filling there. */
export function chunkRoomLimitsOf(space: Pick<DiskSpace, 'totalBytes'>): RoomLimits {
  const limits = roomLimitsOf(space);
  const fullBelowBytes = limits.fullBelowBytes + ROOM_PER_BYTE * LARGEST_CHUNK_BYTES;
  return { fullBelowBytes, scarceBelowBytes: Math.max(limits.scarceBelowBytes, fullBelowBytes) };
}

/** The room of a file system as status, alarms and metrics report it. */
export interface Room extends DiskSpace, RoomLimits {
  state: 'ok' | 'scarce' | 'full';
}

/** `holdsChunks`: the disk has chunks, and not metadata alone. */
export function roomOf(space: DiskSpace, { holdsChunks }: { holdsChunks: boolean }): Room {
  const limits = holdsChunks ? chunkRoomLimitsOf(space) : roomLimitsOf(space);
  const { freeBytes, totalBytes } = space;
  const isScarce = freeBytes < limits.scarceBelowBytes;
  const state = freeBytes < limits.fullBelowBytes ? 'full' : isScarce ? 'scarce' : 'ok';
  return { freeBytes, totalBytes, ...limits, state };
}

/** The room of a disk with chunks, from its reported usage. */
export function chunkRoomOf(usage: { diskFreeBytes: number; diskTotalBytes: number }): Room {
  const space = { freeBytes: usage.diskFreeBytes, totalBytes: usage.diskTotalBytes };
  return roomOf(space, { holdsChunks: true });
}

/** Whether a disk with this room takes no new chunks of full size. */
export function isFull(usage: { diskFreeBytes: number; diskTotalBytes: number }): boolean {
  return chunkRoomOf(usage).state === 'full';
}

/** Bytes of a file system that are kept free by default. */
function reserveOf({ totalBytes }: Pick<DiskSpace, 'totalBytes'>): number {
  const shareBytes = totalBytes * LIMITS.diskReserveShare;
  const wantedBytes = Math.min(Math.max(shareBytes, LIMITS.diskReserveBytesMin), LIMITS.diskReserveBytesMax);
  return Math.round(Math.min(wantedBytes, totalBytes * LIMITS.diskReserveShareMax));
}
