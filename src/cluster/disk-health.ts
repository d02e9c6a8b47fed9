// Which disks are worth asking, by what they last did: what failed, is full or was slow again and again is left alone for
// a while, then tried by one request, whose outcome decides; one that hangs in writes is not asked even in need, for each
// who asked would wait for it. A guess of this process, never a ground to give up on data.
import { LIMITS } from '../model/limits.ts';
import type { ClockPort } from '../ports/clock.ts';
import type { DiskId } from '../ports/placement.ts';

export type DiskUse = 'read' | 'write';

export interface DiskHealth {
  /** False: ask others first. */
  isWell(disk: DiskId, use: DiskUse): boolean;
  /** To be told of each request: of a disk that has rested, the first one tries, and others wait for what it finds. */
  asked(disk: DiskId, use: DiskUse): void;
  answered(disk: DiskId, use: DiskUse): void;
  /** It did not answer, or not what it should: where it was a write, after so long. */
  failed(disk: DiskId, writeTookMs?: number): void;
  /**
   * It could not read this one chunk, which says nothing of the others. As soon as so many different ones come after each
   * other that it looks like the disk, it is one that failed.
   */
  couldNotRead(disk: DiskId, chunk: string): void;
  /** It takes no more; its chunks can be read. */
  isFull(disk: DiskId): void;
  /** Others answered before it did, though it was asked earlier. */
  wasSlow(disk: DiskId, use: DiskUse): void;
  /** It let a write wait in vain: until it has rested no other one waits for it. */
  hangs(disk: DiskId): void;
  /** Left alone because it hangs in writes. */
  isHanging(disk: DiskId): boolean;
  /** When it was found to hang, be it that it has rested since; undefined: it does not. */
  hungSinceMs(disk: DiskId): number | undefined;
  /** When it last answered a write, be it for want of room. */
  answeredWriteMs(disk: DiskId): number | undefined;
}

interface Ailment {
  /** 0: it has not failed yet. */
  restUntilMs: number;
  slowCount: number;
  /** Chunks that it could not read since it last answered. */
  unread: Set<string>;
}

export function createDiskHealth(clock: Pick<ClockPort, 'monotonicMs'>): DiskHealth {
  const ailments = { read: new Map<DiskId, Ailment>(), write: new Map<DiskId, Ailment>() };
  const answeredAtMs = new Map<DiskId, number>();
  /** Of disks that have answered no write since. */
  const hungAtMs = new Map<DiskId, number>();

  function hasAnsweredWrite(disk: DiskId): void {
    answeredAtMs.set(disk, clock.monotonicMs());
    hungAtMs.delete(disk);
  }

  function rest(disk: DiskId, use: DiskUse): void {
    const restUntilMs = clock.monotonicMs() + LIMITS.diskSuspectMs;
    ailments[use].set(disk, { restUntilMs, slowCount: 0, unread: new Set() });
  }

  function ailmentOf(disk: DiskId, use: DiskUse): Ailment {
    const ailment = ailments[use].get(disk) ?? { restUntilMs: 0, slowCount: 0, unread: new Set() };
    ailments[use].set(disk, ailment);
    return ailment;
  }

  /** Once is enough: requests that are older than that wait no longer, while one that tries it later has its time. */
  function hasHung(disk: DiskId): void {
    if (!hungAtMs.has(disk)) hungAtMs.set(disk, clock.monotonicMs());
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
      if (use === 'write') hasAnsweredWrite(disk);
    },
    failed(disk, writeTookMs) {
      rest(disk, 'read');
      rest(disk, 'write');
      if (writeTookMs === undefined) return;
      // What fails at once holds up nobody.
      if (writeTookMs < LIMITS.copyLateMs) hungAtMs.delete(disk);
      else hasHung(disk);
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
      hasAnsweredWrite(disk);
    },
    wasSlow(disk, use) {
      const ailment = ailmentOf(disk, use);
      ailment.slowCount++;
      if (ailment.slowCount >= LIMITS.diskSlowAnswersMax) rest(disk, use);
    },
    hangs(disk) {
      rest(disk, 'write');
      hasHung(disk);
    },
    isHanging: (disk) => hungAtMs.has(disk) && !isWell(disk, 'write'),
    hungSinceMs: (disk) => hungAtMs.get(disk),
    answeredWriteMs: (disk) => answeredAtMs.get(disk),
  };
}
