// Who fails again and again has to wait, twice as long after each failure (RFC 4226 7.3). In memory, of this gateway alone.
import { ownText } from './text/own-text.ts';

/** Names that are remembered: more than an account has users. Beyond it those of the largest group are forgotten. */
const NAMES_MAX = 20_000;
/** The first names of a group that are looked at for one who need not wait. */
const LOOKED_AT_MAX = 64;

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
  /** The one in which somebody failed last is the last, of groups and of the names of each. */
  const groups = new Map<string, Map<string, Failures>>();
  let nameCount = 0;

  function waitMs(count: number): number {
    const over = count - freeCount;
    return over < 0 ? 0 : Math.min(waitMaxMs, firstWaitMs * 2 ** over);
  }

  const isWaiting = ({ untilMs }: Failures) => clock.monotonicMs() < untilMs;

  function forget(group: string, name: string): void {
    const names = groups.get(group);
    if (names?.delete(name) !== true) return;
    nameCount--;
    if (names.size === 0) groups.delete(group);
  }

  /** Of the largest group; of the one that has come to have one more, if none is larger. */
  function forgetOne(noted: string): void {
    let group = noted;
    let size = groups.get(noted)?.size ?? 0;
    for (const [other, names] of groups) {
      if (names.size <= size) continue;
      group = other;
      size = names.size;
    }
    // All have one: where nobody has failed for longest.
    if (size === 1) [group = noted] = groups.keys();
    let [name = ''] = groups.get(group)?.keys() ?? [];
    let lookedAt = 0;
    for (const [other, failures] of groups.get(group) ?? []) {
      if (++lookedAt > LOOKED_AT_MAX) break;
      if (isWaiting(failures)) continue;
      // Who need not wait loses least.
      name = other;
      break;
    }
    forget(group, name);
  }

  return {
    mustWait({ group, name }) {
      const before = groups.get(group)?.get(name);
      return before !== undefined && isWaiting(before);
    },
    note({ group, name }) {
      const names = groups.get(group) ?? new Map<string, Failures>();
      groups.delete(group);
      groups.set(ownText(group), names);
      const before = names.get(name);
      const count = (before?.count ?? 0) + 1;
      names.delete(name);
      names.set(ownText(name), { count, untilMs: clock.monotonicMs() + waitMs(count) });
      if (before === undefined && ++nameCount > NAMES_MAX) forgetOne(group);
    },
    forget: ({ group, name }) => forget(group, name),
  };
}
