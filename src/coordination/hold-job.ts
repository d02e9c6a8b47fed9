// Runs a job of which there is one in the cluster (R44), in each process: by turns, whoever holds its lock looks at what is to be
// done, again and again. Nothing rests on there being one holder.
import type { ClockPort } from '../ports/clock.ts';
import type { JobLocksPort } from '../ports/job-locks.ts';
import type { Logger } from '../ports/telemetry.ts';

export interface HeldJob {
  /** Of the lock. */
  name: string;
  /** Logged for a look that fails, and for a lock that is not to be had. */
  failedEvent: string;
  /** After a look that failed. */
  retryMs: number;
  /** Another holds the lock, or nobody does. */
  onWaiting?(): void;
  /** The lock has come: gives the look, which resolves with when to look again. Anew with each holding. */
  begin(): () => Promise<number>;
}

/** Until `signal` aborts. Never rejects. */
export async function holdJob(
  { jobLocks, clock, log }: { jobLocks: JobLocksPort; clock: ClockPort; log: Logger },
  { name, failedEvent, retryMs, onWaiting, begin }: HeldJob,
  signal: AbortSignal,
): Promise<void> {
  onWaiting?.();
  while (!signal.aborted) {
    try {
      const lock = await jobLocks.acquire(name, signal);
      const either = AbortSignal.any([signal, lock.lost]);
      const look = begin();
      while (!either.aborted) {
        const nextMs = await look().catch((error: unknown) => {
          log.warn({ err: error }, failedEvent);
          return retryMs;
        });
        await clock.sleep(nextMs, either);
      }
      await lock.release();
    } catch (error) {
      if (!signal.aborted) log.warn({ err: error }, failedEvent);
    }
    onWaiting?.();
  }
}
