// Shard time for one voter (R19): follows the wall clock, but only as fast as time passes. A wall clock that is set
// forward or back while we run is not followed; one that is ahead at a restart is, and one that is behind is waited for
// at our own pace. What a step at the restart means for what goes by age: clock-steps.ts and ports/time-jumps.ts.
import type { ClockPort } from '../../ports/clock.ts';

/** A wall clock within this of shard time is believed, and approached. */
export const BELIEVED_GAP_MS = 10_000;
/** Faster or slower by at most this part while approaching: also the drift that clocks may have (protocol 1.1). */
export const SLEW = 0.05;

export interface ShardTime {
  /** Now, whole ms: never less than before. */
  nowMs(): number;
  /** How far the wall clock was ahead of the stored time when we started, which it has followed; else 0. */
  readonly stepMs: number;
  /** Wall clock less shard time, ms: beyond some seconds somebody set the clock. */
  gapMs(): number;
}

/** `storedMs`: time of the last entry; undefined for a new shard. */
export function createShardTime(clock: ClockPort, storedMs: number | undefined): ShardTime {
  const startWallMs = clock.wallMs();
  let timeMs = Math.max(storedMs ?? startWallMs, startWallMs);
  let lastMonotonicMs = clock.monotonicMs();
  const stepMs = storedMs === undefined ? 0 : Math.max(0, startWallMs - storedMs);

  return {
    stepMs,
    nowMs() {
      const monotonicMs = clock.monotonicMs();
      const elapsedMs = Math.max(0, monotonicMs - lastMonotonicMs);
      lastMonotonicMs = monotonicMs;
      timeMs += elapsedMs;
      const gapMs = clock.wallMs() - timeMs;
      if (Math.abs(gapMs) <= BELIEVED_GAP_MS) {
        const slewMs = elapsedMs * SLEW;
        timeMs += Math.max(-slewMs, Math.min(slewMs, gapMs));
      }
      return Math.floor(timeMs);
    },
    gapMs: () => clock.wallMs() - timeMs,
  };
}
