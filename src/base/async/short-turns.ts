// Short work of which hundreds may be ready at once: each has the thread for less than a turn of the event loop may take, and
// all together would keep it. What is ready runs at once until it has taken some ms of this turn. The rest waits for the next
// turns, in turns of its owners: in each as much runs as fits, and whatever else is ready runs in between.
import { nextTurn } from './next-turn.ts';
import { createTenantQueue } from './tenant-queue.ts';

/** undefined: this turn of the loop has room. Else it resolves when it is the owner's turn, in this turn or a later one. */
export type ShortTurns = (turn: {
  readonly owner: string | undefined;
  readonly work: string;
}) => Promise<void> | undefined;

export interface ShortTurnsOptions {
  readonly clock: { monotonicMs(): number };
  /** Lets whatever else is ready run: one turn of the event loop. */
  pause?(): Promise<void>;
  /** Resolves, in this turn, when what a step has left to do at once is done. */
  settled?(): Promise<void>;
}

/** Half of what short work takes of one turn. */
const WINDOW_MS = 4;

export function createShortTurns(options: ShortTurnsOptions): ShortTurns {
  const { clock, pause = nextTurn, settled = afterMicrotasks } = options;
  const waiting = createTenantQueue<() => void>();
  /** Until then work begins without a further look. */
  let windowEndsAtMs = 0;
  /** The window began in this turn of the loop. */
  let isOfThisTurn = false;
  let isRunning = false;

  /**
   * To learn when a turn ends costs one more turn: it is asked for only when a window is over, which work that comes now and
   * then would take up in several turns.
   */
  function isSpent(): boolean {
    const nowMs = clock.monotonicMs();
    if (nowMs < windowEndsAtMs) return false;
    if (isOfThisTurn) return true;
    begin(nowMs + WINDOW_MS);
    return false;
  }

  function begin(endsAtMs: number): void {
    isOfThisTurn = true;
    windowEndsAtMs = endsAtMs;
    void pause().then(() => {
      isOfThisTurn = false;
      windowEndsAtMs = clock.monotonicMs() + WINDOW_MS;
    });
  }

  async function run(): Promise<void> {
    isRunning = true;
    while (waiting.size > 0) {
      await pause();
      begin(clock.monotonicMs() + 2 * WINDOW_MS);
      do {
        waiting.next(() => true)?.();
        await settled();
      } while (waiting.size > 0 && !isSpent());
    }
    isRunning = false;
  }

  return ({ owner = '', work }) => {
    // Not before those that wait.
    if (!isRunning && !isSpent()) return undefined;
    return new Promise((resolve) => {
      waiting.add([owner, work], resolve);
      if (!isRunning) void run();
    });
  };
}

function afterMicrotasks(): Promise<void> {
  return new Promise((resolve) => queueMicrotask(() => process.nextTick(resolve)));
}
