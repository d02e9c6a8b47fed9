// Time and chance of the machine, behind the ports that simulations replace.
import { randomFillSync } from 'node:crypto';
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

/** A draw costs as much as thousands of bytes do, and a small PUT takes seven times some bytes for keys and ids. */
const DRAWN_BYTES = 4096;
const drawn = new Uint8Array(DRAWN_BYTES);
let usedBytes = DRAWN_BYTES;

export const systemRandom: RandomPort = {
  bytes(sizeBytes) {
    if (sizeBytes > DRAWN_BYTES) return randomFillSync(new Uint8Array(sizeBytes));
    if (usedBytes + sizeBytes > DRAWN_BYTES) {
      randomFillSync(drawn);
      usedBytes = 0;
    }
    const bytes = drawn.slice(usedBytes, usedBytes + sizeBytes);
    // What was given out may be a key: no second copy stays.
    drawn.fill(0, usedBytes, usedBytes + sizeBytes);
    usedBytes += sizeBytes;
    return bytes;
  },
};
