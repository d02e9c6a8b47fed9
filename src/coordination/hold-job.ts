// Runs a job that one process of the cluster does (R44). In each process it waits for the job's lock, and its holder looks
// again and again what is to be done. Correctness does not depend on there being one holder.
import type { ClockPort } from '../ports/clock.ts';
import type { JobLocksPort } from '../ports/coordination.ts';
import type { Logger } from '../ports/telemetry.ts';

export interface HeldJob {
  /** Of the lock. */
  name: string;
  /** Logged for a failed look, and for a lock that cannot be got. */
  failedEvent: string;
  /** Pause after a failed look. */
  retryMs: number;
  /** Called while another process, or none, holds the lock. */
  onWaiting?(): void;
  /** Called when the lock is got, each time: returns the look, which resolves with the time until the next look. */
  begin(): () => Promise<number>;
}

/** Runs until `signal` aborts. Never rejects. */
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
