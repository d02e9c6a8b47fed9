// Crowds of connections whose bodies come at full speed: one turn of the event loop would read a part of each, and all else
// would wait for hundreds of reads. So much is read in one turn; who has more to read then waits, and goes on in a later
// turn, in the order of a tenant queue. Who comes fresh to a turn always has one read in it.
import type { SharePath } from './fair-share.ts';
import { createTenantQueue } from './tenant-queue.ts';

export interface ReadTurns {
  /**
   * So many bytes have been read in one piece. False: whoever reads is to stop; `goOn` is called in a later turn.
   */
  mayGoOn(path: SharePath, sizeBytes: number, goOn: () => void): boolean;
}

export interface ReadTurnsOptions {
  /** Read in one turn, and by those who go on in it. */
  readonly turnBytesMax: number;
  /** The most that one read gives. */
  readonly readBytes: number;
  /** A piece costs as much as so many bytes, however small it is. */
  readonly pieceBytesMin: number;
  /** Calls back in the next turn of the loop. */
  nextTurn?(then: () => void): void;
}

export function createReadTurns(options: ReadTurnsOptions): ReadTurns {
  const { turnBytesMax, readBytes, pieceBytesMin, nextTurn = setImmediate } = options;
  const waiting = createTenantQueue<() => void>();
  let turnBytes = 0;
  let isInTurn = false;

  function beginTurn(): void {
    turnBytes = 0;
    isInTurn = waiting.size > 0;
    for (let bytes = 0; bytes < turnBytesMax; bytes += readBytes) waiting.next(() => true)?.();
    if (isInTurn) nextTurn(beginTurn);
  }

  return {
    mayGoOn(path, sizeBytes, goOn) {
      if (!isInTurn) {
        isInTurn = true;
        nextTurn(beginTurn);
      }
      turnBytes += Math.max(sizeBytes, pieceBytesMin);
      if (turnBytes < turnBytesMax) return true;
      waiting.add(path, goOn);
      return false;
    },
  };
}
