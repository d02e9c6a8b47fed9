// When calls that were read start: so many in one turn of the event loop, whatever frames bring. A frame of 256 KiB holds 750
// deletions, which would hold the loop for a tenth of a second, and with it replication and other callers. Calls of one frame
// start in their order; frames that wait take turns.

/** The shortest calls take 40 to 120 us each, with all that they do before they first wait. */
const STARTS_OF_TURN_MAX = 64;
/** A frame that waits gives way to the others after so many. */
const STARTS_IN_A_ROW_MAX = 16;

export interface CallTurns {
  /**
   * Calls `starts`, in their order: at once those for which this turn has room, the others in later turns. Undefined: all have
   * been called. Else it resolves when they have.
   */
  add(starts: readonly (() => void)[]): Promise<void> | undefined;
}

interface Waiting {
  readonly starts: readonly (() => void)[];
  next: number;
  onStarted(): void;
}

export function createCallTurns(): CallTurns {
  const waiting: Waiting[] = [];
  let startedCount = 0;
  let isInTurn = false;

  function watchTurn(): void {
    if (isInTurn) return;
    isInTurn = true;
    setImmediate(beginTurn);
  }

  function beginTurn(): void {
    isInTurn = false;
    startedCount = 0;
    while (startedCount < STARTS_OF_TURN_MAX) {
      const first = waiting.shift();
      if (first === undefined) return;
      startSome(first, STARTS_IN_A_ROW_MAX);
      if (first.next < first.starts.length) waiting.push(first);
      else first.onStarted();
    }
  }

  function startSome(frame: Pick<Waiting, 'starts' | 'next'>, max: number): void {
    watchTurn();
    const end = Math.min(frame.starts.length, frame.next + max);
    startedCount += end - frame.next;
    while (frame.next < end) frame.starts[frame.next++]?.();
  }

  return {
    add(starts) {
      const frame = { starts, next: 0 };
      if (waiting.length === 0) startSome(frame, STARTS_OF_TURN_MAX - startedCount);
      if (frame.next === starts.length) return undefined;
      return new Promise((onStarted) => waiting.push({ ...frame, onStarted }));
    },
  };
}
