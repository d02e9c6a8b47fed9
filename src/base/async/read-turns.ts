// Crowds of connections whose bodies come at full speed: one turn of the event loop would read a part of each, and all else
// would wait for hundreds of reads. So much is read in one turn; who has more to read then waits, and goes on in a later
// turn, in the order of a tenant queue. Who comes fresh to a turn always has one read in it. Other work that bodies make for
// the thread counts as so many bytes that are read.
import type { SharePath } from './fair-share.ts';
import { createTenantQueue } from './tenant-queue.ts';

export interface ReadTurns {
  /**
   * So many bytes have been read in one piece. False: whoever reads is to stop; `goOn` is called in a later turn, which has
   * room for as many.
   */
  mayGoOn(path: SharePath, sizeBytes: number, goOn: () => void): boolean;
  /**
   * For work that costs as much as so many bytes. Undefined: there is room for it in this turn, and nobody waits. Else it
   * resolves in a later one.
   */
  enter(path: SharePath, sizeBytes: number): Promise<void> | undefined;
  /** Resolves in a later turn, of which it has as much as all who read: for work of some ms. */
  wait(path: SharePath): Promise<void>;
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

interface Waiter {
  readonly sizeBytes: number;
  goOn(): void;
}

export function createReadTurns(options: ReadTurnsOptions): ReadTurns {
  const { turnBytesMax, readBytes, pieceBytesMin, nextTurn = setImmediate } = options;
  const waiting = createTenantQueue<Waiter>();
  let turnBytes = 0;
  let isInTurn = false;

  function watchTurn(): void {
    if (isInTurn) return;
    isInTurn = true;
    nextTurn(beginTurn);
  }

  function beginTurn(): void {
    turnBytes = 0;
    isInTurn = waiting.size > 0;
    for (let bytes = 0; bytes < turnBytesMax; ) {
      const next = waiting.next(() => true);
      if (next === undefined) break;
      bytes += next.sizeBytes;
      next.goOn();
    }
    if (isInTurn) nextTurn(beginTurn);
  }

  return {
    mayGoOn(path, sizeBytes, goOn) {
      watchTurn();
      turnBytes += Math.max(sizeBytes, pieceBytesMin);
      if (turnBytes < turnBytesMax) return true;
      waiting.add(path, { sizeBytes: Math.max(sizeBytes, readBytes), goOn });
      return false;
    },
    enter(path, sizeBytes) {
      watchTurn();
      if (waiting.size === 0 && turnBytes + sizeBytes <= turnBytesMax) {
        turnBytes += sizeBytes;
        return undefined;
      }
      return new Promise((goOn) => waiting.add(path, { sizeBytes, goOn }));
    },
    wait: (path) =>
      new Promise((goOn) => {
        watchTurn();
        waiting.add(path, { sizeBytes: turnBytesMax, goOn });
      }),
  };
}
