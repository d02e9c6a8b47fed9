// Time and chance of the machine, behind the ports that simulations replace.
import { randomBytes } from 'node:crypto';
import type { ClockPort, RandomPort } from '../ports/clock.ts';

/** A longer timer would fire at once; sleepers look again when they wake early. */
const TIMER_MAX_MS = 2 ** 31 - 1;

export const systemClock: ClockPort = {
  wallMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  sleep(ms, signal) {
    if (signal?.aborted === true) return Promise.resolve();
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', done);
        resolve();
      };
      const timer = setTimeout(done, Math.min(ms, TIMER_MAX_MS));
      signal?.addEventListener('abort', done);
    });
  },
};

export const systemRandom: RandomPort = { bytes: (sizeBytes) => randomBytes(sizeBytes) };
