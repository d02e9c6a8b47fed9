// Runs the background jobs: one loop each, that does a unit of work, waits, and begins again. Errors, back-off and
// shutdown are written here once. What a unit is, and how long an idle job waits, are the job's to say.
import { CANCELLED } from '../base/async/cancelled.ts';
import type { ClockPort } from '../ports/clock.ts';
import type { Logger, TelemetryPort } from '../ports/telemetry.ts';
import type { Worker } from '../ports/worker.ts';

const RETRY_MIN_MS = 1000;
const RETRY_MAX_MS = 60_000;
/** Between two units of a busy job, so that requests are served in between. */
const BREATH_MS = 1;

export interface WorkerRunner {
  start(): void;
  /** Ends the wait of an idle job: there is something to do now. Nothing happens when it is at work. */
  wake(name: string): void;
  /** Aborts the signal that units got, and resolves when the last one has ended. Safe to repeat. */
  stop(): Promise<void>;
}

export function createWorkerRunner(deps: {
  workers: readonly Worker[];
  clock: ClockPort;
  log: Logger;
  telemetry: TelemetryPort;
}): WorkerRunner {
  const { clock, log, telemetry } = deps;
  const stopping = new AbortController();
  /** Several workers may have one name: one for each disk. */
  const waits = new Map<Worker, AbortController>();
  let loops: Promise<void>[] = [];

  async function run(worker: Worker): Promise<void> {
    let failureCount = 0;
    while (!stopping.signal.aborted) {
      let waitMs: number;
      try {
        const outcome = await worker.work(stopping.signal);
        if (stopping.signal.aborted) return;
        waitMs = outcome.state === 'busy' ? BREATH_MS : outcome.idleMs;
        failureCount = 0;
        for (const error of outcome.failures ?? []) logFailure(worker, error, waitMs);
      } catch (error) {
        // A unit that is cut off by the end of the server may fail as it likes.
        if (stopping.signal.aborted) return;
        waitMs = Math.min(RETRY_MIN_MS * 2 ** failureCount, RETRY_MAX_MS);
        failureCount++;
        logFailure(worker, error, waitMs);
      }
      await wait(worker, waitMs);
    }
  }

  function logFailure({ name }: Worker, error: unknown, retryInMs: number): void {
    telemetry.count('holdfast_worker_failures_total', { worker: name });
    log.error({ worker: name, err: error, retryInMs }, 'worker-failed');
  }

  async function wait(worker: Worker, waitMs: number): Promise<void> {
    const woken = new AbortController();
    waits.set(worker, woken);
    await clock.sleep(waitMs, woken.signal);
    waits.delete(worker);
  }

  return {
    start() {
      loops = deps.workers.map(run);
    },
    wake(name) {
      for (const [worker, woken] of waits) if (worker.name === name) woken.abort(CANCELLED);
    },
    async stop() {
      stopping.abort();
      for (const woken of waits.values()) woken.abort(CANCELLED);
      await Promise.all(loops);
    },
  };
}
