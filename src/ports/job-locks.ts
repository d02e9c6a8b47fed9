// Who runs a job of which there is one in the cluster (R44). A lock says who should, not who does: a holder that stood
// still may go on after another has taken over, so every durable effect carries the token, and targets refuse lower ones.
// Contract (tests/contract/job-locks.test.ts): tokens of one name rise from holder to holder, in the order of waiting.

export interface JobLock {
  /** Of this holding; a later one of the same name has a greater one. */
  readonly token: number;
  /** Aborts when the lock may have gone to another. Measured by the holder's monotonic clock, so before it has. */
  readonly lost: AbortSignal;
  /** Lets the next one in at once, or, with the coordinator away, when the lease ends. Never rejects; safe to repeat. */
  release(): Promise<void>;
}

export interface JobLocksPort {
  /**
   * Waits its turn, through any absence of the coordinator. `name`: lower-case letters, digits and dashes.
   * Rejects with the reason of `signal` when it aborts while waiting; has no hold on the lock afterwards.
   */
  acquire(name: string, signal: AbortSignal): Promise<JobLock>;
  /** For the operator: who holds it, by the name that the holder's process gave. */
  holder(name: string): Promise<{ holder: string; token: number } | undefined>;
}
