// Shard time for one voter (R19): follows the wall clock, but only as fast as time passes. A wall clock that is set
// forward or back while we run is not followed; one that is ahead at a restart is, and one that is behind is waited for
// at our own pace. What a jump at the restart means for what goes by age: ports/time-jumps.ts.
import type { ClockPort } from '../../ports/clock.ts';

/** A wall clock within this of shard time is believed, and approached. */
const BELIEVED_GAP_MS = 10_000;
/** Faster or slower by at most this part while approaching: also the drift that clocks may have (protocol 1.1). */
const SLEW = 0.05;
/** Beyond it a jump ahead waits for the operator's word, for all that goes by age. */
export const JUMP_MS = 7 * 24 * 3600 * 1000;

export interface ShardTime {
  /** Now, whole ms: never less than before. */
  nowMs(): number;
  /** How far the wall clock was ahead of the stored time when we started; 0 unless above 7 days. */
  readonly jumpMs: number;
  /** Wall clock less shard time, ms: beyond some seconds somebody set the clock. */
  gapMs(): number;
}

/** `storedMs`: time of the last entry; undefined for a new shard. */
export function createShardTime(clock: ClockPort, storedMs: number | undefined): ShardTime {
  const startWallMs = clock.wallMs();
  let timeMs = Math.max(storedMs ?? startWallMs, startWallMs);
  let lastMonotonicMs = clock.monotonicMs();
  const jumpMs = storedMs !== undefined && startWallMs - storedMs > JUMP_MS ? startWallMs - storedMs : 0;

  return {
    jumpMs,
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
