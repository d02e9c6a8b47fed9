// Disks that do not answer or take no copies are left alone for a while, longer each time, so that they delay nothing else.
// A guess of this process: a disk in its pause counts as one that does not answer.
import { doubledPause } from '../../base/async/doubled-pause.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { DiskId } from '../../ports/placement.ts';
import { LIMITS } from '../../types/limits.ts';

/** `ask`: any request; `take`: requests to store a copy. */
export type DiskEffort = 'ask' | 'take';

export interface DiskBackoffs {
  isBackedOff(disk: DiskId, effort: DiskEffort): boolean;
  failed(disk: DiskId, effort: DiskEffort): void;
  /** It has no room, and says so at once: it is tried more often than one that does not answer. */
  wasFull(disk: DiskId): void;
  worked(disk: DiskId, effort: DiskEffort): void;
  /** Its node has started, or is listed again: it is tried at once. */
  returned(disk: DiskId): void;
  /** Disks that have not answered since they were last asked, unless that was long ago. */
  silent(): DiskId[];
  /** How often it answered after a failure. */
  returnsOf(disk: DiskId): number;
}

export function createDiskBackoffs(clock: Pick<ClockPort, 'monotonicMs'>): DiskBackoffs {
  const backoffs = { ask: new Map<DiskId, Backoff>(), take: new Map<DiskId, Backoff>() };
  const returns = new Map<DiskId, number>();
  const isNow = (rest: Backoff | undefined) => rest !== undefined && rest.untilMs > clock.monotonicMs();
  function rest(disk: DiskId, effort: DiskEffort, maxMs: number): void {
    const pauseMs = doubledPause(backoffs[effort].get(disk)?.pauseMs, { minMs: LIMITS.diskRestMinMs, maxMs });
    backoffs[effort].set(disk, { untilMs: clock.monotonicMs() + pauseMs, pauseMs });
  }

  return {
    isBackedOff: (disk, effort) =>
      isNow(backoffs.ask.get(disk)) || (effort === 'take' && isNow(backoffs.take.get(disk))),
    failed: (disk, effort) => rest(disk, effort, LIMITS.diskRestMaxMs),
    wasFull: (disk) => rest(disk, 'take', LIMITS.diskFullRestMaxMs),
    worked(disk, effort) {
      if (backoffs.ask.delete(disk)) returns.set(disk, (returns.get(disk) ?? 0) + 1);
      if (effort === 'take') backoffs.take.delete(disk);
    },
    returned(disk) {
      // It counts as silent until it answers.
      const now = { untilMs: clock.monotonicMs(), pauseMs: 0 };
      for (const each of [backoffs.ask, backoffs.take]) if (each.has(disk)) each.set(disk, now);
    },
    silent() {
      const sinceMs = clock.monotonicMs() - 2 * LIMITS.diskRestMaxMs;
      return [...backoffs.ask].flatMap(([disk, { untilMs }]) => (untilMs >= sinceMs ? [disk] : []));
    },
    returnsOf: (disk) => returns.get(disk) ?? 0,
  };
}

interface Backoff {
  untilMs: number;
  pauseMs: number;
}
