// A bound for what may take as long as it likes, or never end.
import { CANCELLED } from './cancelled.ts';

/** As `ClockPort` has it. */
interface Sleeper {
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** Resolves and rejects as `work` does, but after `maxMs` with undefined: the work goes on, and nobody waits for it. */
export async function within<T>(work: Promise<T>, maxMs: number, clock: Sleeper): Promise<T | undefined> {
  const over = new AbortController();
  try {
    return await Promise.race([work, clock.sleep(maxMs, over.signal).then(() => undefined)]);
  } finally {
    over.abort(CANCELLED);
  }
}
