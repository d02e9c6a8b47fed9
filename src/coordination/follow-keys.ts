// Follows keys through interruptions of a watch (L8): reads all keys, reports them, and watches from that revision on.
// After an error it starts again, and so it does now and then without one, because a watch may fall silent. What it reports
// is a hint.

import type { ClockPort } from '../ports/clock.ts';
import type { Logger } from '../ports/telemetry.ts';
import { LIMITS } from '../types/limits.ts';
import type { CoordinationStore, KeyChange, StoredKey } from './store.ts';

export interface Followed {
  store: CoordinationStore;
  clock: ClockPort;
  log: Logger;
  prefix: string;
  /** All keys: at the beginning, and after each interruption. */
  onState(rows: StoredKey[], revision: number): void;
  onChange(change: KeyChange): void;
  signal: AbortSignal;
}

/** Resolves when `signal` aborts. Never rejects. */
export async function followKeys(followed: Followed): Promise<void> {
  const { clock, log, prefix, signal } = followed;
  const retry = createRetryDelay();
  let isFollowing = true;
  while (!signal.aborted) {
    try {
      await followOnce(followed, () => {
        retry.reset();
        if (!isFollowing) log.info({ prefix }, 'coordinator-followed-again');
        isFollowing = true;
      });
    } catch (error) {
      if (signal.aborted) return;
      if (isFollowing) log.warn({ prefix, err: error }, 'coordinator-not-followed');
      isFollowing = false;
      await clock.sleep(retry.nextMs(), signal);
    }
  }
}

/** One read and one watch. Resolves when all keys must be read again, or when `signal` aborts. */
async function followOnce(followed: Followed, onRead: () => void): Promise<void> {
  const { store, clock, prefix, signal } = followed;
  const { rows, revision } = await store.list(prefix);
  if (signal.aborted) return;
  onRead();
  followed.onState(rows, revision);
  const ending = new AbortController();
  const ended = AbortSignal.any([signal, ending.signal]);
  try {
    await Promise.race([
      store.watch({
        prefix,
        fromRevision: revision + 1,
        onChange: (change) => {
          if (!ended.aborted) followed.onChange(change);
        },
        signal: ended,
      }),
      clock.sleep(LIMITS.coordinatorRereadMs, ended),
    ]);
  } finally {
    ending.abort();
  }
}

/** The pause before the next try: doubled each time, up to a bound. */
export function createRetryDelay(): { nextMs(): number; reset(): void } {
  let delayMs: number = LIMITS.coordinatorRetryMinMs;
  return {
    nextMs() {
      const nowMs = delayMs;
      delayMs = Math.min(2 * delayMs, LIMITS.coordinatorRetryMaxMs);
      return nowMs;
    },
    reset() {
      delayMs = LIMITS.coordinatorRetryMinMs;
    },
  };
}
