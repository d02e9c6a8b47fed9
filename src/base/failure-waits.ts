// Who fails again and again has to wait, twice as long after each failure (RFC 4226 7.3). In memory, of this gateway alone.
import { BoundedMap } from './bounded-map.ts';

/** Groups that are remembered, and names of each: those of one group push out none of another's. */
const GROUPS_MAX = 5000;
const NAMES_MAX = 200;

interface Failures {
  readonly count: number;
  /** Monotonic; until then nothing is tried. */
  readonly untilMs: number;
}

/** Of secrets that people choose or type: five guesses, then 30 s, and an hour in the end. */
export const SECRET_WAITS = { freeCount: 5, firstWaitMs: 30_000, waitMaxMs: 3_600_000 } as const;

/** Who tries, among those (of an account, of a key) who may make each other forgotten. */
export interface FailureName {
  readonly group: string;
  readonly name: string;
}

export interface FailureWaits {
  /** Whether nothing may be tried in this name now. */
  mustWait(who: FailureName): boolean;
  /** One more failure. */
  note(who: FailureName): void;
  /** A success ends the waits of the name. */
  forget(who: FailureName): void;
}

/** `freeCount`: the failure with which waits begin. */
export function createFailureWaits(options: {
  clock: { monotonicMs(): number };
  freeCount: number;
  firstWaitMs: number;
  waitMaxMs: number;
}): FailureWaits {
  const { clock, freeCount, firstWaitMs, waitMaxMs } = options;
  const groups = new BoundedMap<string, BoundedMap<string, Failures>>(GROUPS_MAX);

  function waitMs(count: number): number {
    const over = count - freeCount;
    return over < 0 ? 0 : Math.min(waitMaxMs, firstWaitMs * 2 ** over);
  }

  return {
    mustWait({ group, name }) {
      const before = groups.get(group)?.get(name);
      return before !== undefined && clock.monotonicMs() < before.untilMs;
    },
    note({ group, name }) {
      const failures = groups.get(group) ?? new BoundedMap<string, Failures>(NAMES_MAX);
      groups.set(group, failures);
      const count = (failures.get(name)?.count ?? 0) + 1;
      failures.set(name, { count, untilMs: clock.monotonicMs() + waitMs(count) });
    },
    forget: ({ group, name }) => groups.get(group)?.delete(name),
  };
}
