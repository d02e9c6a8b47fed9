// Repeated wrong signatures, by access key and address: who guesses has to wait, and others who use the key do not. A good signature
// of the same two ends it. Secrets that the server makes up cannot be guessed; those that an operator chose might be.
import { createFailureWaits } from '../../base/failure-waits.ts';
import type { ClockPort } from '../../ports/clock.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import { addressGroupOf } from '../../types/tenant.ts';

const FIRST_WAIT_MS = 1000;
const WAIT_MAX_MS = 60_000;

export interface SignatureFailures {
  /**
   * Runs `verify`, which throws where the signature is wrong, and counts what comes of it. Throws AuthenticationLockout without
   * running it while the two must wait.
   */
  judge(who: { accessKey: string; address: string }, verify: () => void): void;
}

export function createSignatureFailures({ clock }: { clock: ClockPort }): SignatureFailures {
  const waits = createFailureWaits({
    clock,
    freeCount: LIMITS.wrongSignaturesFree,
    firstWaitMs: FIRST_WAIT_MS,
    waitMaxMs: WAIT_MAX_MS,
  });

  return {
    judge({ accessKey, address }, verify) {
      const who = { group: accessKey, name: addressGroupOf(address) };
      if (waits.mustWait(who)) throw new AppError('AuthenticationLockout');
      try {
        verify();
      } catch (error) {
        waits.note(who);
        throw error;
      }
      waits.forget(who);
    },
  };
}
