// The one shape of every background job: do a unit of work, then wait for more. Throttling, errors and shutdown are
// written once, in the runner.

export interface Worker {
  readonly name: string;
  /** Does one bounded unit. `busy`: call again soon; `idle`: nothing to do for `idleMs`. */
  work(signal: AbortSignal): Promise<{ state: 'busy' } | { state: 'idle'; idleMs: number }>;
}
