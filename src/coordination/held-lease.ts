// A lease that is renewed for as long as it is wanted. It counts as lost by the monotonic clock, from the moment the
// last renewal that was answered had been sent: the store may count from there, and never ends it earlier (L5).
import type { ClockPort } from '../ports/clock.ts';
import type { CoordinationStore } from './store.ts';

/** Of its length: monotonic clocks drift by less than 5 %, and its end must be noticed before the store sees it. */
const TRUSTED_SHARE = 0.9;
const RENEWALS_PER_LEASE = 3;
/** After a renewal that failed; a lease sees several before its end. */
const TRIES_PER_LEASE = 20;

export interface HeldLease {
  readonly leaseId: string;
  /** Aborts when it may have ended, by whatever cause but `release`. */
  readonly lost: AbortSignal;
  /** Ends it, and its keys, now; one that cannot be reached ends by itself. Never rejects; safe to repeat. */
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
      // Whatever fails here, nothing renews it any more, and the store ends it.
      releasing ??= store.revokeLease(leaseId).catch(() => undefined);
      return releasing;
    },
  };
}

/** Renews until it is released or may have ended. */
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

/** What was answered within `ms`; undefined: nothing, or a failure. */
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
