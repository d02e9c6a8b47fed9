// Time and chance for tests: a clock that the test moves, random bytes from a seed.
import type { ClockPort, RandomPort } from '../../../src/ports/clock.ts';

export interface ManualClock extends ClockPort {
  /** Moves wall and monotonic time; sleepers whose time has come wake. */
  advance(ms: number): void;
  /** Sets the wall clock alone, as an operator or a bad time server does. */
  shiftWall(ms: number): void;
}

export function createManualClock(startWallMs: number): ManualClock {
  let wallMs = startWallMs;
  let monotonicMs = 0;
  let sleepers: { untilMs: number; wake(): void }[] = [];
  return {
    wallMs: () => wallMs,
    monotonicMs: () => monotonicMs,
    sleep(ms, signal) {
      if (signal?.aborted === true) return Promise.resolve();
      return new Promise((resolve) => {
        sleepers.push({ untilMs: monotonicMs + ms, wake: resolve });
        signal?.addEventListener('abort', () => resolve(), { once: true });
      });
    },
    advance(ms) {
      wallMs += ms;
      monotonicMs += ms;
      const woken = sleepers.filter(({ untilMs }) => untilMs <= monotonicMs);
      sleepers = sleepers.filter(({ untilMs }) => untilMs > monotonicMs);
      for (const { wake } of woken) wake();
    },
    shiftWall(ms) {
      wallMs += ms;
    },
  };
}

/** The same bytes for the same seed, on any machine (xorshift, 32 bits). */
export function createSeededRandom(seed: number): RandomPort {
  let state = (Math.imul(seed, 0x9e3779b1) ^ 0x6d2b79f5) | 0 || 1;
  return {
    bytes(sizeBytes) {
      const bytes = new Uint8Array(sizeBytes);
      for (let i = 0; i < sizeBytes; i++) {
        state ^= state << 13;
        state ^= state >>> 17;
        state ^= state << 5;
        bytes[i] = state >>> 11;
      }
      return bytes;
    },
  };
}
