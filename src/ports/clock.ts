// Time and chance as parameters, so that everything above them runs under simulation.

export interface ClockPort {
  /** Wall clock, ms since epoch. */
  wallMs(): number;
  /** Monotonic, ms, of arbitrary origin. */
  monotonicMs(): number;
  /** Resolves after `ms`, or at once when `signal` aborts (never rejects). */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export interface RandomPort {
  /** Cryptographically random bytes; simulations give seeded ones. */
  bytes(sizeBytes: number): Uint8Array;
}

// How late the event loop of this thread is: what it holds up is everything that the process does.

export interface LoopDelay {
  readonly maxMs: number;
  readonly p99Ms: number;
}

export interface LoopDelayPort {
  /** Begins to measure; `end` returns the delays since then, and ends it. */
  measure(): { end(): LoopDelay };
}
