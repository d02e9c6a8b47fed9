// How long one request waits for what does not answer: all its waits together, whatever it waits for. What it does meanwhile
// gives time back, so that long work which goes on is not cut short by waits that are long over.

/** As `ClockPort` has it. */
interface Clock {
  monotonicMs(): number;
  sleep(ms: number): Promise<void>;
}

export interface PatienceBounds {
  /** Of all waits together, where nothing else is done. */
  mostMs: number;
  /** Of one wait, however long others have taken: most answers come within it. */
  leastMs: number;
}

export interface Patience {
  /** How long the next wait may be. */
  leftMs(): number;
  /** So long it has worked, or waited for its own client. */
  worked(ms: number): void;
  /** So long it has waited for memory. */
  waited(ms: number): void;
  /**
   * Something is asked. Call what it gives when the answer is there: a quick one is work, and so is all that its own client
   * takes.
   */
  begin(of?: 'client'): () => void;
  /**
   * From here on its client hears from it now and then: each answer is worth a whole wait, but for what it has waited for memory:
   * that is no sign that it gets on.
   */
  beginLong(): void;
  /** From here on its answer is sent: each wait may be a whole one. */
  beginSending(): void;
  /**
   * As `work`, but rejects with `late()` when that takes longer than is left. The work goes on, so it must change nothing that a
   * client was told has failed.
   */
  bound<T>(work: Promise<T>, late: () => Error): Promise<T>;
}

/** Waits are looked at so often. */
const LOOK_MS = 250;
/** What is answered within this is work. */
const QUICK_MS = 1000;

interface Wait {
  untilMs: number;
  end(): void;
}

/** Gives a new one to each request. */
export function createPatiences(clock: Clock, bounds: PatienceBounds): () => Patience {
  const waits = new Set<Wait>();
  let isWatching = false;

  /** One sleep serves all waits: nearly all end earlier. */
  async function watch(): Promise<void> {
    isWatching = true;
    while (waits.size > 0) {
      await clock.sleep(LOOK_MS);
      const nowMs = clock.monotonicMs();
      for (const wait of waits) if (wait.untilMs <= nowMs) wait.end();
    }
    isWatching = false;
  }

  return () =>
    new RequestPatience(clock, bounds, (wait) => {
      waits.add(wait);
      if (!isWatching) void watch();
      return () => waits.delete(wait);
    });
}

class RequestPatience implements Patience {
  readonly #clock: Clock;
  readonly #bounds: PatienceBounds;
  /** Gives what ends the watch. */
  readonly #watch: (wait: Wait) => () => void;
  /** Monotonic ms at which nothing is left. */
  #endMs: number;
  #isLong = false;
  #waitedMs = 0;
  #isSending = false;

  constructor(clock: Clock, bounds: PatienceBounds, watch: (wait: Wait) => () => void) {
    this.#clock = clock;
    this.#bounds = bounds;
    this.#watch = watch;
    this.#endMs = clock.monotonicMs() + bounds.mostMs;
  }

  leftMs(): number {
    if (this.#isSending) return this.#bounds.mostMs;
    return Math.max(this.#bounds.leastMs, this.#endMs - this.#clock.monotonicMs());
  }

  worked(ms: number): void {
    // Once because it was no wait, once because it is worth one.
    this.#endMs = Math.min(
      this.#clock.monotonicMs() + this.#bounds.mostMs,
      this.#endMs + 2 * Math.max(0, ms),
    );
  }

  waited(ms: number): void {
    this.#waitedMs += ms;
  }

  begin(of?: 'client'): () => void {
    const beganMs = this.#clock.monotonicMs();
    return () => {
      const ms = this.#clock.monotonicMs() - beganMs;
      // However long it has worked since the last one.
      if (this.#isLong) this.#endMs = this.#clock.monotonicMs() + this.#bounds.mostMs - this.#waitedMs;
      else if (of === 'client' || ms <= QUICK_MS) this.worked(ms);
    };
  }

  beginLong(): void {
    this.#isLong = true;
  }

  beginSending(): void {
    this.#isSending = true;
  }

  bound<T>(work: Promise<T>, late: () => Error): Promise<T> {
    return new Promise((resolve, reject) => {
      const answered = this.begin();
      const end = () => {
        stop();
        reject(late());
      };
      const stop = this.#watch({ untilMs: this.#clock.monotonicMs() + this.leftMs(), end });
      work.then(
        (value) => {
          stop();
          answered();
          resolve(value);
        },
        (error: unknown) => {
          stop();
          reject(error);
        },
      );
    });
  }
}

/** For work that no client waits for. */
export const ENDLESS: Patience = {
  leftMs: () => Number.POSITIVE_INFINITY,
  worked() {},
  waited() {},
  begin: () => () => {},
  beginLong() {},
  beginSending() {},
  bound: (work) => work,
};
