// Many time limits with one timer: a request's limit is nearly always far from being reached, and a timer with its own
// signal for each would cost more than the rest of what keeps a connection in order.
import type { ClockPort } from '../../ports/clock.ts';

/** Why a sleep ends early; one for all, because an exception with its stack costs more. */
const LOOK_AGAIN = new Error('an earlier deadline');

export interface Deadline {
  readonly atMs: number;
  /** Called once, when the time has come and the deadline still stands. */
  readonly onLate: () => void;
}

export class Deadlines {
  readonly #clock: Pick<ClockPort, 'monotonicMs' | 'sleep'>;
  readonly #standing = new Set<Deadline>();
  #sleep: { untilMs: number; wake: AbortController } | undefined;

  constructor(clock: Pick<ClockPort, 'monotonicMs' | 'sleep'>) {
    this.#clock = clock;
  }

  add(afterMs: number, onLate: () => void): Deadline {
    const deadline = { atMs: this.#clock.monotonicMs() + afterMs, onLate };
    this.#standing.add(deadline);
    if (this.#sleep === undefined) void this.#run();
    else if (deadline.atMs < this.#sleep.untilMs) this.#sleep.wake.abort(LOOK_AGAIN);
    return deadline;
  }

  remove(deadline: Deadline | undefined): void {
    if (deadline !== undefined) this.#standing.delete(deadline);
  }

  /** Forgets all of them, and lets the process end. */
  clear(): void {
    this.#standing.clear();
    this.#sleep?.wake.abort(LOOK_AGAIN);
  }

  async #run(): Promise<void> {
    while (this.#standing.size > 0) {
      const untilMs = Math.min(...Array.from(this.#standing, ({ atMs }) => atMs));
      const wake = new AbortController();
      this.#sleep = { untilMs, wake };
      await this.#clock.sleep(Math.max(0, untilMs - this.#clock.monotonicMs()), wake.signal);
      const nowMs = this.#clock.monotonicMs();
      for (const deadline of this.#standing) {
        if (deadline.atMs > nowMs) continue;
        this.#standing.delete(deadline);
        deadline.onLate();
      }
    }
    this.#sleep = undefined;
  }
}
