// Which disks are worth asking, by what they last did: what failed, is full or was slow again and again is left alone for
// a while, then tried by one request, whose outcome decides. A guess of this process, never a ground to give up on data.
// Those that do not answer at all are hanging-disks.ts.

import type { ClockPort } from '../../ports/clock.ts';
import type { DiskId } from '../../ports/placement.ts';
import { LIMITS } from '../../types/limits.ts';

export type DiskUse = 'read' | 'write';

export interface DiskHealth {
  /** False: ask others first. */
  isWell(disk: DiskId, use: DiskUse): boolean;
  /** To be told of each request: of a disk that has rested, the first one tries, and others wait for what it finds. */
  asked(disk: DiskId, use: DiskUse): void;
  answered(disk: DiskId, use: DiskUse): void;
  /** It did not answer, or not what it should. */
  failed(disk: DiskId): void;
  /**
   * It could not read this one chunk, which says nothing of the others. As soon as so many different ones come after each
   * other that it looks like the disk, it is one that failed.
   */
  couldNotRead(disk: DiskId, chunk: string): void;
  /** It takes no more; its chunks can be read. */
  isFull(disk: DiskId): void;
  /** Others answered before it did, though it was asked earlier. */
  wasSlow(disk: DiskId, use: DiskUse): void;
  /** Whether it has taken a write just now, and refused none since. */
  takesWrites(disk: DiskId): boolean;
}

interface Ailment {
  /** 0: it has not failed yet. */
  restUntilMs: number;
  slowCount: number;
  /** Chunks that it could not read since it last answered. */
  unread: Set<string>;
}

/** What it took before says nothing any more. */
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
      // It has answered, if by this alone.
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
