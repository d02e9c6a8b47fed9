// Which disks are worth asking, judged by their last answers. A disk that failed, is full or was slow several times is left
// alone for a while, then tried by one request whose outcome decides. This is a guess of one process, and never a reason to
// give up data. Disks that do not answer at all are the subject of hanging-disks.ts.

import type { ClockPort } from '../../ports/clock.ts';
import type { DiskId } from '../../ports/placement.ts';
import { LIMITS } from '../../types/limits.ts';

export type DiskUse = 'read' | 'write';

export interface DiskHealth {
  /** False: ask others first. */
  isWell(disk: DiskId, use: DiskUse): boolean;
  /** To be called before each request: the first request after a rest tries the disk, and others wait for its outcome. */
  asked(disk: DiskId, use: DiskUse): void;
  answered(disk: DiskId, use: DiskUse): void;
  /** It did not answer, or answered nonsense. */
  failed(disk: DiskId): void;
  /**
   * It could not read this chunk, which says nothing about its others. After several different chunks in a row the disk
   * counts as failed.
   */
  couldNotRead(disk: DiskId, chunk: string): void;
  /** It takes no more chunks; reads work. */
  isFull(disk: DiskId): void;
  /** Others answered earlier, though they were asked later. */
  wasSlow(disk: DiskId, use: DiskUse): void;
  /** Whether it has taken a write lately, and refused none since. */
  takesWrites(disk: DiskId): boolean;
}

interface Ailment {
  /** 0: no failure yet. */
  restUntilMs: number;
  slowCount: number;
  /** Chunks that it could not read since it last answered. */
  unread: Set<string>;
}

/** After this time an earlier write says nothing. */
const TAKEN_LATELY_MS = 10_000;

export function createDiskHealth(clock: Pick<ClockPort, 'monotonicMs'>): DiskHealth {
  const ailments = { read: new Map<DiskId, Ailment>(), write: new Map<DiskId, Ailment>() };
  const takenAtMs = new Map<DiskId, number>();

  function rest(disk: DiskId, use: DiskUse): void {
    const restUntilMs = clock.monotonicMs() + LIMITS.diskSuspectMs;
    ailments[use].set(disk, { restUntilMs, slowCount: 0, unread: new Set() });
  }

  function ailmentOf(disk: DiskId, use: DiskUse): Ailment {
    const ailment = ailments[use].get(disk) ?? { restUntilMs: 0, slowCount: 0, unread: new Set() };
    ailments[use].set(disk, ailment);
    return ailment;
  }

  function isWell(disk: DiskId, use: DiskUse): boolean {
    const ailment = ailments[use].get(disk);
    return ailment === undefined || ailment.restUntilMs <= clock.monotonicMs();
  }

  return {
    isWell,
    asked(disk, use) {
      const ailment = ailments[use].get(disk);
      if (ailment !== undefined && ailment.restUntilMs > 0) rest(disk, use);
    },
    answered(disk, use) {
      ailments[use].delete(disk);
      if (use === 'write') takenAtMs.set(disk, clock.monotonicMs());
    },
    failed(disk) {
      rest(disk, 'read');
      rest(disk, 'write');
      takenAtMs.delete(disk);
    },
    couldNotRead(disk, chunk) {
      const ailment = ailmentOf(disk, 'read');
      ailment.unread.add(chunk);
      if (ailment.unread.size >= LIMITS.diskUnreadChunksMax) rest(disk, 'read');
      // A failed read of one chunk is an answer, too.
      else ailment.restUntilMs = 0;
    },
    isFull(disk) {
      rest(disk, 'write');
      takenAtMs.delete(disk);
    },
    wasSlow(disk, use) {
      const ailment = ailmentOf(disk, use);
      ailment.slowCount++;
      if (ailment.slowCount >= LIMITS.diskSlowAnswersMax) rest(disk, use);
    },
    takesWrites(disk) {
      const atMs = takenAtMs.get(disk);
      return atMs !== undefined && clock.monotonicMs() - atMs <= TAKEN_LATELY_MS;
    },
  };
}
