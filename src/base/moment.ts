// Moments by both clocks of a machine. The monotonic one stands still while a virtual machine is stopped, and the wall
// clock is set now and then: only together they tell how much time has passed.

export interface Moment {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

/** The clocks drift apart by less than this share (protocol 1.1: 5 % each). */
const DRIFT_SHARE = 0.1;
/** What a wall clock is set right by without a word. */
const CORRECTION_MS = 100;

export function momentNow(clock: { monotonicMs(): number; wallMs(): number }): Moment {
  return { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
}

/**
 * Time between two moments of one process, by the clock that says more. Infinite where the wall clock was set back in
 * between: then a stop of the machine would not show.
 */
export function passedMs(from: Moment, to: Moment): number {
  const monotonicMs = to.monotonicMs - from.monotonicMs;
  const wallMs = to.wallMs - from.wallMs;
  if (wallMs < monotonicMs * (1 - DRIFT_SHARE) - CORRECTION_MS) return Number.POSITIVE_INFINITY;
  return Math.max(monotonicMs, wallMs);
}
