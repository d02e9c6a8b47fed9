// Gives memory that V8 has freed back to the system. V8 keeps the pages of the largest heap that the process ever had, and
// a collection alone leaves them resident: after a crowd of clients the process would stay as large as it has been. Only a
// collection of the kind "last resort" gives them up. It stops the thread for some tenths of a second, and so it runs once behind a crowd:
// when a collection has made the heap smaller, or when the thread has little to do and V8 sees no reason to collect.
import { performance } from 'node:perf_hooks';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { ClockPort } from '../../ports/clock.ts';
import type { Logger } from '../../ports/telemetry.ts';

const LOOK_MS = 5000;
/** The heap has shrunk by so much, or has grown by so much and the thread is idle: less is not worth a pause. */
export const RELEASED_BYTES_MIN = 128 * 1024 * 1024;
/**
 * A release that leaves so much more than one before it may have run in the middle of a crowd, and left what that one held. So
 * an idle thread has another one: after twice as long each time, as long as that gives back less than this.
 */
export const REST_BYTES_MIN = 32 * 1024 * 1024;
export const AGAIN_MS_MAX = 3600_000;
/** Between two releases; where the thread is idle, its pause holds up next to nobody. */
export const RELEASED_EVERY_MS = 60_000;
export const IDLE_RELEASED_EVERY_MS = 20_000;
/** The share of its time for which an idle thread is busy, at most. */
const IDLE_SHARE_MAX = 0.2;

/** The heap of the thread that asks. */
export interface Heap {
  /** Bytes of pages that hold objects. */
  totalBytes(): number;
  /** The share of the time since the last call, or since the start, for which the thread was busy: 0 to 1. */
  busyShare(): number;
  /** Collects, and gives all free pages back. */
  release(): void;
}

let lastUtilization = performance.eventLoopUtilization();

export const systemHeap: Heap = {
  totalBytes: () => getHeapStatistics().total_heap_size,
  busyShare() {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, lastUtilization);
    lastUtilization = now;
    return utilization;
  },
  release() {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as (options: object) => void;
    collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
  },
};

/** Looks every few seconds until `signal` aborts. */
export function watchHeap(
  { clock, log, heap }: { clock: ClockPort; log: Logger; heap: Heap },
  signal: AbortSignal,
): void {
  let peakBytes = heap.totalBytes();
  /** What the last release has left, and the least that one ever has. */
  let leftBytes = peakBytes;
  let lowestBytes = peakBytes;
  let lastMs = Number.NEGATIVE_INFINITY;
  let againMs = RELEASED_EVERY_MS;

  function look(): void {
    const totalBytes = heap.totalBytes();
    const isIdle = heap.busyShare() <= IDLE_SHARE_MAX;
    peakBytes = Math.max(peakBytes, totalBytes);
    const beganMs = clock.monotonicMs();
    const hasChanged =
      peakBytes - (isIdle ? Math.min(leftBytes, totalBytes) : totalBytes) >= RELEASED_BYTES_MIN;
    const mayHoldMore = isIdle && leftBytes - lowestBytes >= REST_BYTES_MIN;
    if (!hasChanged && !mayHoldMore) return;
    const everyMs = isIdle ? IDLE_RELEASED_EVERY_MS : RELEASED_EVERY_MS;
    if (beganMs - lastMs < (hasChanged ? everyMs : againMs)) return;
    heap.release();
    leftBytes = heap.totalBytes();
    lowestBytes = Math.min(lowestBytes, leftBytes);
    const tookMs = Math.round(clock.monotonicMs() - beganMs);
    log.info({ releasedBytes: Math.max(0, peakBytes - leftBytes), tookMs }, 'heap-released');
    const isInVain = !hasChanged && totalBytes - leftBytes < REST_BYTES_MIN;
    againMs = isInVain ? Math.min(2 * againMs, AGAIN_MS_MAX) : RELEASED_EVERY_MS;
    peakBytes = leftBytes;
    lastMs = beganMs;
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      await clock.sleep(LOOK_MS, signal);
      look();
    }
  }
  void run();
}

/**
 * V8 lets a heap that may have 2 GiB or more grow to four times of what lives in it before it collects, and a smaller one to two times
 * at most. Crowds leave much behind, and the heaps of several threads add up: two times for all of them.
 */
const GROWTH_PERCENT = 100;
const GROWING_BYTES_MIN = 2 * 1024 * 1024 * 1024;

/** Of this thread, until `closing` is closed. */
export function startHeapWatch(deps: { clock: ClockPort; log: Logger; closing: AsyncDisposableStack }): void {
  const stopping = new AbortController();
  if (getHeapStatistics().heap_size_limit >= GROWING_BYTES_MIN)
    setFlagsFromString(`--heap-growing-percent=${GROWTH_PERCENT}`);
  deps.closing.defer(() => stopping.abort());
  watchHeap({ ...deps, heap: systemHeap }, stopping.signal);
}
