// Repeated wrong signatures, by access key and address: who guesses has to wait, and others who use the key do not. A good signature
// of the same two ends it. Secrets that the server makes up cannot be guessed; those that an operator chose might be.
import { BoundedMap } from '../../base/bounded-map.ts';
import type { ClockPort } from '../../ports/clock.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';

const GUESSERS_MAX = 10_000;
const FIRST_WAIT_MS = 1000;
const WAIT_MAX_MS = 60_000;

interface Failures {
  readonly count: number;
  /** Monotonic; until then nothing is tried. */
  readonly untilMs: number;
}

export interface SignatureFailures {
  /**
   * Runs `verify`, which throws where the signature is wrong, and counts what comes of it. Throws AuthenticationLockout without
   * running it while the two must wait.
   */
  judge(who: { accessKey: string; address: string }, verify: () => void): void;
}

export function createSignatureFailures({ clock }: { clock: ClockPort }): SignatureFailures {
  const failures = new BoundedMap<string, Failures>(GUESSERS_MAX);
  let isAny = false;

  return {
    judge({ accessKey, address }, verify) {
      const name = `${accessKey} ${address}`;
      const before = isAny ? failures.get(name) : undefined;
      const nowMs = clock.monotonicMs();
      if (before !== undefined && nowMs < before.untilMs) throw new AppError('AuthenticationLockout');
      try {
        verify();
      } catch (error) {
        const count = (before?.count ?? 0) + 1;
        failures.set(name, { count, untilMs: nowMs + waitOf(count) });
        isAny = true;
        throw error;
      }
      if (before !== undefined) failures.delete(name);
    },
  };
}

function waitOf(count: number): number {
  const over = count - LIMITS.wrongSignaturesFree;
  return over < 0 ? 0 : Math.min(WAIT_MAX_MS, FIRST_WAIT_MS * 2 ** over);
}
