// Who fails again and again has to wait, twice as long after each failure (RFC 4226 7.3). In memory, of this gateway alone.
import { BoundedMap } from './bounded-map.ts';

/** Names that are remembered. */
const NAMES_MAX = 10_000;

interface Failures {
  readonly count: number;
  /** Monotonic; until then nothing is tried. */
  readonly untilMs: number;
}

/** Of secrets that people choose or type: five guesses, then 30 s, and an hour in the end. */
export const SECRET_WAITS = { freeCount: 5, firstWaitMs: 30_000, waitMaxMs: 3_600_000 } as const;

export interface FailureWaits {
  /** Whether nothing may be tried in this name now. */
  mustWait(name: string): boolean;
  /** One more failure. */
  note(name: string): void;
  /** A success ends the waits of the name. */
  forget(name: string): void;
}

/** `freeCount`: the failure with which waits begin. */
export function createFailureWaits(options: {
  clock: { monotonicMs(): number };
  freeCount: number;
  firstWaitMs: number;
  waitMaxMs: number;
}): FailureWaits {
  const { clock, freeCount, firstWaitMs, waitMaxMs } = options;
  const failures = new BoundedMap<string, Failures>(NAMES_MAX);

  function waitMs(count: number): number {
    const over = count - freeCount;
    return over < 0 ? 0 : Math.min(waitMaxMs, firstWaitMs * 2 ** over);
  }

  return {
    mustWait(name) {
      const before = failures.get(name);
      return before !== undefined && clock.monotonicMs() < before.untilMs;
    },
    note(name) {
      const count = (failures.get(name)?.count ?? 0) + 1;
      failures.set(name, { count, untilMs: clock.monotonicMs() + waitMs(count) });
    },
    forget: (name) => failures.delete(name),
  };
}
