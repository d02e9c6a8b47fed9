// How late the event loop of this thread is: what it holds up is everything that the process does.

export interface LoopDelay {
  readonly maxMs: number;
  readonly p99Ms: number;
}

export interface LoopDelayPort {
  /** Begins to measure; `end` returns the delays since then, and ends it. */
  measure(): { end(): LoopDelay };
}
