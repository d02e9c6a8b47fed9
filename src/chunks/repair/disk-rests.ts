// Disks that do not answer or take nothing are left alone for a while, longer each time, so that what waits for them holds
// up nothing else. A guess of this process: a disk that rests counts as one that does not answer.
import { doubledPause } from '../../base/async/doubled-pause.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { DiskId } from '../../ports/placement.ts';
import { LIMITS } from '../../types/limits.ts';

/** `ask`: everything; `take`: only that it stores a copy. */
export type DiskEffort = 'ask' | 'take';

export interface DiskRests {
  isResting(disk: DiskId, effort: DiskEffort): boolean;
  failed(disk: DiskId, effort: DiskEffort): void;
  /** It takes no copy for want of room, and says so at once: it is tried more often than one that does not answer. */
  wasFull(disk: DiskId): void;
  worked(disk: DiskId, effort: DiskEffort): void;
  /** Its node has started, or is heard of again: it is tried at once. */
  returned(disk: DiskId): void;
  /** Those that have not answered since they were last asked, unless nobody has asked for long. */
  silent(): DiskId[];
  /** How often it answered after it had not. */
  returnsOf(disk: DiskId): number;
}

export function createDiskRests(clock: Pick<ClockPort, 'monotonicMs'>): DiskRests {
  const rests = { ask: new Map<DiskId, Rest>(), take: new Map<DiskId, Rest>() };
  const returns = new Map<DiskId, number>();
  const isNow = (rest: Rest | undefined) => rest !== undefined && rest.untilMs > clock.monotonicMs();
  function rest(disk: DiskId, effort: DiskEffort, maxMs: number): void {
    const pauseMs = doubledPause(rests[effort].get(disk)?.pauseMs, { minMs: LIMITS.diskRestMinMs, maxMs });
    rests[effort].set(disk, { untilMs: clock.monotonicMs() + pauseMs, pauseMs });
  }

  return {
    isResting: (disk, effort) =>
      isNow(rests.ask.get(disk)) || (effort === 'take' && isNow(rests.take.get(disk))),
    failed: (disk, effort) => rest(disk, effort, LIMITS.diskRestMaxMs),
    wasFull: (disk) => rest(disk, 'take', LIMITS.diskFullRestMaxMs),
    worked(disk, effort) {
      if (rests.ask.delete(disk)) returns.set(disk, (returns.get(disk) ?? 0) + 1);
      if (effort === 'take') rests.take.delete(disk);
    },
    returned(disk) {
      // It counts as one that did not answer until it does.
      const now = { untilMs: clock.monotonicMs(), pauseMs: 0 };
      for (const each of [rests.ask, rests.take]) if (each.has(disk)) each.set(disk, now);
    },
    silent() {
      const sinceMs = clock.monotonicMs() - 2 * LIMITS.diskRestMaxMs;
      return [...rests.ask].flatMap(([disk, { untilMs }]) => (untilMs >= sinceMs ? [disk] : []));
    },
    returnsOf: (disk) => returns.get(disk) ?? 0,
  };
}

interface Rest {
  untilMs: number;
  pauseMs: number;
}
