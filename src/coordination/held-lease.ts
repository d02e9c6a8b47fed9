// A lease that is renewed as long as it is held. It counts as lost by the monotonic clock, from the sending of the last
// answered renewal: the store may count from there, and never ends the lease earlier (L5).
import type { ClockPort } from '../ports/clock.ts';
import type { CoordinationStore } from './store.ts';

/** Share of the lease: monotonic clocks drift by less than 5 %, and the holder must notice the end before the store does. */
const TRUSTED_SHARE = 0.9;
const RENEWALS_PER_LEASE = 3;
/** Retries after a failed renewal; a lease has time for several. */
const TRIES_PER_LEASE = 20;

export interface HeldLease {
  readonly leaseId: string;
  /** Aborts when the lease may have ended for any reason but `release`. */
  readonly lost: AbortSignal;
  /** Ends the lease and its keys now; a lease that cannot be reached ends by itself. Never rejects; safe to repeat. */
  release(): Promise<void>;
}

/** Rejects when the store did not grant one. */
export async function holdLease(options: {
  store: CoordinationStore;
  clock: ClockPort;
  ttlMs: number;
}): Promise<HeldLease> {
  const { store, clock, ttlMs } = options;
  const askedAtMs = clock.monotonicMs();
  const leaseId = await store.grantLease(ttlMs);
  const lost = new AbortController();
  const released = new AbortController();
  void keep({ ...options, leaseId, askedAtMs, released: released.signal }).then(() => {
    if (!released.signal.aborted) lost.abort(new Error('the lease has ended, or may have'));
  });
  let releasing: Promise<void> | undefined;
  return {
    leaseId,
    lost: lost.signal,
    release() {
      released.abort();
      // If this fails nothing renews the lease any more, and the store ends it.
      releasing ??= store.revokeLease(leaseId).catch(() => undefined);
      return releasing;
    },
  };
}

/** Renews the lease until it is released or may have ended. */
async function keep(options: {
  store: CoordinationStore;
  clock: ClockPort;
  ttlMs: number;
  leaseId: string;
  askedAtMs: number;
  released: AbortSignal;
}): Promise<void> {
  const { store, clock, ttlMs, leaseId, released } = options;
  let endsAtMs = options.askedAtMs + ttlMs * TRUSTED_SHARE;
  let waitMs = ttlMs / RENEWALS_PER_LEASE;
  for (;;) {
    await clock.sleep(Math.max(0, Math.min(waitMs, endsAtMs - clock.monotonicMs())), released);
    const sentAtMs = clock.monotonicMs();
    if (released.aborted || sentAtMs >= endsAtMs) return;
    const answer = await within(endsAtMs - sentAtMs, clock, store.keepLease(leaseId));
    if (answer === false) return;
    if (answer === true) endsAtMs = sentAtMs + ttlMs * TRUSTED_SHARE;
    waitMs = ttlMs / (answer === true ? RENEWALS_PER_LEASE : TRIES_PER_LEASE);
  }
}

/** The answer, if it comes within `ms`; undefined: none, or a failure. */
async function within(ms: number, clock: ClockPort, call: Promise<boolean>): Promise<boolean | undefined> {
  const answered = new AbortController();
  try {
    return await Promise.race([
      call.catch(() => undefined),
      clock.sleep(ms, answered.signal).then(() => undefined),
    ]);
  } finally {
    answered.abort();
  }
}
