// Background work of the product in the simulated world, where a minute is long.
import type { Worker } from '../../src/ports/worker.ts';

const IDLE_MAX_MS = 4000;

/** So that what a worker looks for once in a minute is met in a seed. */
export function hurried(worker: Worker): Worker {
  return {
    name: worker.name,
    async work(signal) {
      const next = await worker.work(signal);
      return next.state === 'busy' ? next : { ...next, idleMs: Math.min(next.idleMs, IDLE_MAX_MS) };
    },
  };
}
