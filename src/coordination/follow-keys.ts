// Follows keys over every end of a watch (L8): read all, tell, watch from there; after an error or a cancel again from
// the start, and now and then without one, because a watch may fall silent. What it tells is a hint.

import type { ClockPort } from '../ports/clock.ts';
import type { Logger } from '../ports/telemetry.ts';
import { LIMITS } from '../types/limits.ts';
import type { CoordinationStore, KeyChange, StoredKey } from './store.ts';

export interface Followed {
  store: CoordinationStore;
  clock: ClockPort;
  log: Logger;
  prefix: string;
  /** All keys there are: at first, and after each interruption. */
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

/** One read and one watch. Resolves when it is time to read again, or the signal has aborted. */
async function followOnce(followed: Followed, onRead: () => void): Promise<void> {
  const { store, clock, prefix, signal } = followed;
  const { rows, revision } = await store.list(prefix);
  if (signal.aborted) return;
  onRead();
  followed.onState(rows, revision);
  const over = new AbortController();
  const ended = AbortSignal.any([signal, over.signal]);
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
    over.abort();
  }
}

/** How long to wait before the next try: doubled from try to try, up to a bound. */
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
