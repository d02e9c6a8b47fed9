// Gives the room of deleted data back to the file system while the server runs, also when nothing more is written (design
// "Data"). It makes the store rewrite what it holds back when enough has gathered, or has waited long enough. How a store
// does that is its own business; what may be deleted is decided elsewhere (R31, R38).
import type { ClockPort } from '../../ports/clock.ts';
import type { DiskReservePort } from '../../ports/disk-reserve.ts';
import type { KvPort } from '../../ports/kv.ts';
import type { Logger } from '../../ports/telemetry.ts';
import type { Worker } from '../../ports/worker.ts';

const LOOK_EVERY_MS = 5000;
/** Time for compaction to follow, and for requests to use the disk. Longer while nothing comes back and little is deleted. */
const PAUSE_MIN_MS = 15_000;
const PAUSE_MAX_MS = 120_000;
/** Less than this share of `afterBytes` is not worth the writes. */
const WORTH_SHARE = 0.5;
/** Bytes written before anything comes back: filler in the log, and the tables that it pushes out. */
const ROOM_BYTES = 192 * 1024 * 1024;

export interface ReclaimDeps {
  name: string;
  kv: Pick<KvPort, 'turnOver' | 'giveBack'>;
  /** Bytes that are deleted and still on the disk. */
  pendingBytes(): Promise<number>;
  /** Free bytes of the store's file system. */
  reserve: Pick<DiskReservePort, 'measure'>;
  clock: ClockPort;
  log: Logger;
  /** Pending bytes from which it acts at once. */
  afterBytes: number;
  /** Time for which fewer bytes, but at least half of `afterBytes`, may be pending. */
  delayMs: number;
}

export function createReclaim(deps: ReclaimDeps): Worker {
  const { name, kv, reserve, clock, log, afterBytes, delayMs } = deps;
  let pendingSinceMs: number | undefined;
  let pauseMs = PAUSE_MIN_MS;
  let pausedUntilMs = Number.NEGATIVE_INFINITY;
  let lastBytes = Number.POSITIVE_INFINITY;

  function isDue(pendingBytes: number): boolean {
    if (pendingBytes < afterBytes * WORTH_SHARE) pendingSinceMs = undefined;
    else pendingSinceMs ??= clock.monotonicMs();
    if (pendingSinceMs === undefined) return false;
    return pendingBytes >= afterBytes || clock.monotonicMs() - pendingSinceMs >= delayMs;
  }

  return {
    name,
    async work(signal) {
      kv.giveBack?.();
      const pausedMs = pausedUntilMs - clock.monotonicMs();
      if (pausedMs > 0) return { state: 'idle', idleMs: Math.min(LOOK_EVERY_MS, pausedMs) };
      const pendingBytes = await deps.pendingBytes();
      if (!isDue(pendingBytes)) return { state: 'idle', idleMs: LOOK_EVERY_MS };
      pendingSinceMs = undefined;
      // While clients delete, more may be pending than before though much came back: what came on top is worth a turn.
      const hasChanged = pendingBytes < lastBytes || pendingBytes - lastBytes >= afterBytes;
      pauseMs = hasChanged ? PAUSE_MIN_MS : Math.min(2 * pauseMs, PAUSE_MAX_MS);
      lastBytes = pendingBytes;
      const { freeBytes } = await reserve.measure();
      if (freeBytes < ROOM_BYTES) log.warn({ pendingBytes, freeBytes }, `${name}-without-room`);
      else if (await kv.turnOver(signal)) log.info({ pendingBytes, freeBytes }, name);
      pausedUntilMs = clock.monotonicMs() + pauseMs;
      return { state: 'idle', idleMs: LOOK_EVERY_MS };
    },
  };
}
