// The one shape of every background job: do a unit of work, then wait for more. Throttling, errors and shutdown are
// written once, in the runner.

export interface Worker {
  readonly name: string;
  /** Does one bounded unit. `busy`: call again soon; `idle`: nothing to do for `idleMs`. Rejects when nothing could be done. */
  work(signal: AbortSignal): Promise<WorkOutcome>;
}

export type WorkOutcome = ({ state: 'busy' } | { state: 'idle'; idleMs: number }) & {
  /** Failures of parts: they are logged, and do not delay the rest. */
  failures?: readonly unknown[];
};
