// How long one turn of the event loop keeps this thread: nothing else is served meanwhile. Processor time of the thread
// is measured and not the clock, so that a busy machine does not count. For servers that run in the test's own process.
import { expect } from 'vitest';
import { cpuMs } from './cpu-time.ts';

/** What an input of a client may take of one turn. */
export const TURN_MS_MAX = 50;
/** A turn may have more to do by chance (garbage collection, a flush): what is slow stays slow when it is repeated. */
const TRIES = 6;

/** The longest turn while `act` runs, in ms of processor time. */
export async function longestTurnMs(act: () => Promise<unknown>): Promise<number> {
  let longestMs = 0;
  let hasEnded = false;
  let lastMs = cpuMs();
  const look = () => {
    const nowMs = cpuMs();
    longestMs = Math.max(longestMs, nowMs - lastMs);
    lastMs = nowMs;
    if (!hasEnded) setImmediate(look);
  };
  setImmediate(look);
  try {
    await act();
  } finally {
    look();
    hasEnded = true;
  }
  return longestMs;
}

/** Fails when `act` keeps the thread for more than TURN_MS_MAX in one turn, each time that it is repeated. */
export async function expectFreeLoop(name: string, act: () => Promise<unknown>): Promise<void> {
  let leastMs = Number.POSITIVE_INFINITY;
  for (let tries = 0; tries < TRIES && leastMs > TURN_MS_MAX; tries++) {
    leastMs = Math.min(leastMs, await longestTurnMs(act));
  }
  expect(leastMs, `the longest turn of the event loop, in ms, with ${name}`).toBeLessThanOrEqual(TURN_MS_MAX);
}

/** As {@link expectFreeLoop}, of a function that is not asynchronous. Gives what it gives, or throws what it throws. */
export function withinOneTurn<T>(act: () => T): T {
  for (let tries = 1; ; tries++) {
    const startedMs = cpuMs();
    let took: number | undefined;
    try {
      const value = act();
      took = cpuMs() - startedMs;
      if (took <= TURN_MS_MAX) return value;
    } catch (error) {
      took = cpuMs() - startedMs;
      if (took <= TURN_MS_MAX) throw error;
    }
    if (tries === TRIES) throw new Error(`it keeps the thread for ${took} ms`);
  }
}
