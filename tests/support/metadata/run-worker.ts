// A background worker run by hand.
import type { Worker } from '../../../src/ports/worker.ts';

/** Until it is idle. Throws what any part of it failed with. */
export async function runUntilIdle(worker: Worker): Promise<void> {
  for (let isBusy = true; isBusy; ) {
    const { state, failures = [] } = await worker.work(new AbortController().signal);
    if (failures.length > 0) throw failures[0];
    isBusy = state === 'busy';
  }
}
