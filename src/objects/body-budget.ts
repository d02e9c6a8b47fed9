// Memory that the bodies of all requests may hold together. A body takes more only while there is room; those that have
// begun are served first, then those that come first. Who waits too long is refused with SlowDown, and who would begin
// to wait behind too many at once; who holds memory while its client stands still or trickles gives way to those that
// wait. It counts; it allocates nothing.
import { AppError } from '../model/errors.ts';
import { LIMITS } from '../model/limits.ts';
import type { ClockPort } from '../ports/clock.ts';
import type { TelemetryPort } from '../ports/telemetry.ts';

/** One body's share. */
export interface BodyLease {
  /**
   * To be awaited before more is taken; undefined when there is room. `takesBytes`: what will be taken for sure, which
   * is set aside; without it a piece of unknown size comes when the client sends it. Rejects with AppError SlowDown after
   * LIMITS.bodyBufferWaitMaxMs, at once when LIMITS.bodiesWaitingMax others wait and it has not begun, and when the
   * lease is closed.
   */
  admit(takesBytes?: number): Promise<void> | undefined;
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
  /** Nothing is held yet. */
  open(body: BodyNeeds): BodyLease;
  usedBytes(): number;
}

export interface BodyNeeds {
  /** What it must hold to get on: its least progress gives some of it back. */
  needBytes: number;
  /** The body stood still while others wait: it ends with this error, and closes the lease. */
  onEvicted(error: AppError): void;
}

const WATCH_EVERY_MS = 500;
/**
 * Of the limit, and beyond it: for bodies that could not go on otherwise. All memory may be held by bodies that are in
 * the middle of a chunk and wait for more; then some of them at a time are let through to its end.
 */
const GRANTS_SHARE = 1 / 8;

interface Share extends BodyNeeds {
  heldBytes: number;
  /** What it may still take without waiting, so that it gets on. */
  grantBytes: number;
  /** Set aside for one that was let in and has not taken it yet, so that not all rush in at once. */
  reservedBytes: number;
  /** It has been let in: to refuse it now would waste what has been done. */
  hasBegun: boolean;
  /** When it last gave memory back, or was let in. A client that trickles makes no progress by it. */
  progressAtMs: number;
  isIdle: boolean;
  isClosed: boolean;
}

interface Waiter {
  share: Share;
  takesBytes: number;
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
  /** Those that have begun before the others, and each in the order of its coming. */
  let waiters: Waiter[] = [];
  let usedBytes = 0;
  let grantedBytes = 0;
  let begunCount = 0;
  const begunMax = Math.max(1, Math.floor(limitBytes / LIMITS.bodyShareBytesMin));
  let isWatching = false;

  telemetry.gauge('holdfast_body_buffer_bytes_max', limitBytes);
  telemetry.gauge('holdfast_body_buffer_bytes', usedBytes);

  function count(share: Share, sizeBytes: number): void {
    if (share.isClosed) return;
    share.heldBytes += sizeBytes;
    usedBytes += sizeBytes;
    reserve(share, sizeBytes < 0 ? 0 : Math.max(0, share.reservedBytes - sizeBytes));
    if (sizeBytes < 0) share.progressAtMs = clock.monotonicMs();
    grant(share, sizeBytes < 0 ? 0 : Math.max(0, share.grantBytes - sizeBytes));
    telemetry.gauge('holdfast_body_buffer_bytes', usedBytes);
    wake();
  }

  /** Many that hold little would each keep more of what has arrived waiting outside of this count. */
  const hasRoomFor = (share: Share) => usedBytes < limitBytes && (share.hasBegun || begunCount < begunMax);

  function reserve(share: Share, sizeBytes: number): void {
    usedBytes += sizeBytes - share.reservedBytes;
    share.reservedBytes = sizeBytes;
  }

  function begin(share: Share): void {
    if (share.hasBegun) return;
    share.hasBegun = true;
    begunCount++;
  }

  function wake(): void {
    for (let waiter = waiters[0]; waiter !== undefined && hasRoomFor(waiter.share); waiter = waiters[0]) {
      waiters.shift();
      begin(waiter.share);
      reserve(waiter.share, Math.max(waiter.takesBytes, LIMITS.chunkBytesMin));
      letIn(waiter);
    }
    grantSome();
  }

  function letIn({ share, resolve }: Waiter): void {
    // It waited for us, not for its client: that is no standing still.
    share.progressAtMs = clock.monotonicMs();
    resolve();
  }

  function grant(share: Share, sizeBytes: number): void {
    grantedBytes += sizeBytes - share.grantBytes;
    share.grantBytes = sizeBytes;
  }

  /** Lets those that wait in the middle of something through to its end, as many as there are grants for. */
  function grantSome(): void {
    const granted = new Set<Waiter>();
    for (const waiter of waiters) {
      const { share } = waiter;
      const missingBytes = share.needBytes - share.heldBytes;
      if (share.heldBytes === 0 || missingBytes <= 0) continue;
      if (grantedBytes > 0 && grantedBytes + missingBytes > limitBytes * GRANTS_SHARE) break;
      grant(share, missingBytes);
      granted.add(waiter);
    }
    if (granted.size === 0) return;
    waiters = waiters.filter((waiter) => !granted.has(waiter));
    for (const waiter of granted) letIn(waiter);
  }

  function admit(share: Share, takesBytes: number): Promise<void> | undefined {
    if (share.isClosed) return Promise.reject(new AppError('SlowDown'));
    const isFirst = waiters[0] === undefined || (share.hasBegun && !waiters[0].share.hasBegun);
    if (share.grantBytes > 0 || (isFirst && hasRoomFor(share))) {
      begin(share);
      reserve(share, share.grantBytes > 0 ? 0 : takesBytes);
      return undefined;
    }
    if (!share.hasBegun && waiters.length >= LIMITS.bodiesWaitingMax) {
      telemetry.count('holdfast_requests_shed_total', { reason: 'bodies', share: 'all' });
      return Promise.reject(new AppError('SlowDown'));
    }
    return wait(share, takesBytes);
  }

  function wait(share: Share, takesBytes: number): Promise<void> {
    const waiting = new Promise<void>((resolve, reject) => {
      const waiter = { share, takesBytes, sinceMs: clock.monotonicMs(), resolve, reject };
      const behind = share.hasBegun ? waiters.findIndex((other) => !other.share.hasBegun) : -1;
      if (behind === -1) waiters.push(waiter);
      else waiters.splice(behind, 0, waiter);
    });
    grantSome();
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
      .filter((share) => (share.hasBegun || share.heldBytes > 0) && share.isIdle)
      .filter((share) => share.progressAtMs <= stalledSinceMs)
      .sort((a, b) => a.progressAtMs - b.progressAtMs);
    // Counted before the first one goes: it may let others in at once.
    for (const share of stalled.slice(0, waiters.length)) share.onEvicted(new AppError('SlowDown'));
  }

  return {
    usedBytes: () => usedBytes,
    open(body) {
      const share: Share = {
        ...body,
        heldBytes: 0,
        grantBytes: 0,
        reservedBytes: 0,
        hasBegun: false,
        progressAtMs: clock.monotonicMs(),
        isIdle: false,
        isClosed: false,
      };
      shares.add(share);
      return {
        admit: (takesBytes = 0) => admit(share, takesBytes),
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
          share.isClosed = true;
          shares.delete(share);
          if (share.hasBegun) begunCount--;
          reserve(share, 0);
          grant(share, 0);
          usedBytes -= share.heldBytes;
          share.heldBytes = 0;
          const own = waiters.filter((waiter) => waiter.share === share);
          waiters = waiters.filter((waiter) => waiter.share !== share);
          for (const { reject } of own) reject(new AppError('SlowDown'));
          telemetry.gauge('holdfast_body_buffer_bytes', usedBytes);
          wake();
        },
      };
    },
  };
}
