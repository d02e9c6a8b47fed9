// Memory that the bodies of all requests may hold together. A body takes more only while there is room; those that come
// first are served first. Who waits too long is refused with SlowDown; who holds memory while its client stands still
// or trickles gives way to those that wait. It counts; it allocates nothing.
import { AppError } from '../model/errors.ts';
import { LIMITS } from '../model/limits.ts';
import type { ClockPort } from '../ports/clock.ts';
import type { TelemetryPort } from '../ports/telemetry.ts';

/** One body's share. */
export interface BodyLease {
  /**
   * To be awaited before more is taken; undefined when there is room. Rejects with AppError SlowDown after
   * LIMITS.bodyBufferWaitMaxMs, and once the lease is closed.
   */
  admit(): Promise<void> | undefined;
  /** Without waiting: whether more than the least may be taken (reading ahead). */
  hasRoom(): boolean;
  hold(sizeBytes: number): void;
  release(sizeBytes: number): void;
  /** From here on the body waits for its client, not for us: only then may it be told to give way. */
  idle(): void;
  /** The client has done its part. */
  busy(): void;
  /** Gives all back. Safe to repeat. */
  close(): void;
}

export interface BodyBudget {
  /** `onEvicted`: the body stood still while others wait: it ends with this error, and closes the lease. */
  open(onEvicted: (error: AppError) => void): BodyLease;
  usedBytes(): number;
}

const WATCH_EVERY_MS = 500;

interface Share {
  heldBytes: number;
  /** Set aside for one that was let in and has not taken it yet, so that not all who wait rush in at once. */
  reservedBytes: number;
  /** When it last gave memory back, or was let in. A client that trickles makes no progress by it. */
  progressAtMs: number;
  isIdle: boolean;
  isClosed: boolean;
  onEvicted(error: AppError): void;
}

interface Waiter {
  share: Share;
  sinceMs: number;
  resolve(): void;
  reject(error: AppError): void;
}

export function createBodyBudget(deps: {
  limitBytes: number;
  clock: ClockPort;
  telemetry: TelemetryPort;
}): BodyBudget {
  const { limitBytes, clock, telemetry } = deps;
  const shares = new Set<Share>();
  let waiters: Waiter[] = [];
  let usedBytes = 0;
  let isWatching = false;

  telemetry.gauge('holdfast_body_buffer_bytes_max', limitBytes);

  function count(share: Share, sizeBytes: number): void {
    if (share.isClosed) return;
    share.heldBytes += sizeBytes;
    usedBytes += sizeBytes - share.reservedBytes;
    share.reservedBytes = 0;
    if (sizeBytes < 0) share.progressAtMs = clock.monotonicMs();
    telemetry.gauge('holdfast_body_buffer_bytes', usedBytes);
    wake();
  }

  function wake(): void {
    while (usedBytes < limitBytes) {
      const waiter = waiters.shift();
      if (waiter === undefined) return;
      waiter.share.reservedBytes = LIMITS.chunkBytesMin;
      // It waited for us, not for its client: that is no standing still.
      waiter.share.progressAtMs = clock.monotonicMs();
      usedBytes += LIMITS.chunkBytesMin;
      waiter.resolve();
    }
  }

  function wait(share: Share): Promise<void> {
    const waiting = new Promise<void>((resolve, reject) => {
      waiters.push({ share, sinceMs: clock.monotonicMs(), resolve, reject });
    });
    void watch();
    return waiting;
  }

  /** Runs while anyone waits. */
  async function watch(): Promise<void> {
    if (isWatching) return;
    isWatching = true;
    while (waiters.length > 0) {
      await clock.sleep(WATCH_EVERY_MS);
      wake();
      if (waiters.length > 0) {
        refuseLateWaiters();
        evictStalled();
      }
    }
    isWatching = false;
  }

  function refuseLateWaiters(): void {
    const nowMs = clock.monotonicMs();
    const isLate = ({ sinceMs }: Waiter) => nowMs - sinceMs >= LIMITS.bodyBufferWaitMaxMs;
    const late = waiters.filter(isLate);
    waiters = waiters.filter((waiter) => !isLate(waiter));
    for (const { reject } of late) reject(new AppError('SlowDown'));
  }

  /** As many as there are others waiting, those first that have given nothing back for longest. */
  function evictStalled(): void {
    const stalledSinceMs = clock.monotonicMs() - LIMITS.bodyStalledMs;
    const stalled = [...shares]
      .filter((share) => share.heldBytes > 0 && share.isIdle && share.progressAtMs <= stalledSinceMs)
      .sort((a, b) => a.progressAtMs - b.progressAtMs);
    // Counted before the first one goes: it may let others in at once.
    for (const share of stalled.slice(0, waiters.length)) share.onEvicted(new AppError('SlowDown'));
  }

  return {
    usedBytes: () => usedBytes,
    open(onEvicted) {
      const share: Share = {
        heldBytes: 0,
        reservedBytes: 0,
        progressAtMs: clock.monotonicMs(),
        isIdle: false,
        isClosed: false,
        onEvicted,
      };
      shares.add(share);
      return {
        admit: () => (usedBytes < limitBytes && waiters.length === 0 ? undefined : wait(share)),
        hasRoom: () => usedBytes < limitBytes / 2,
        hold: (sizeBytes) => count(share, sizeBytes),
        release: (sizeBytes) => count(share, -sizeBytes),
        idle() {
          share.isIdle = true;
        },
        busy() {
          share.isIdle = false;
        },
        close() {
          if (share.isClosed) return;
          count(share, -share.heldBytes);
          share.isClosed = true;
          shares.delete(share);
          for (const waiter of waiters.filter((waiter) => waiter.share === share))
            waiter.reject(new AppError('SlowDown'));
          waiters = waiters.filter((waiter) => waiter.share !== share);
        },
      };
    },
  };
}
