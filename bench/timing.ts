// Times of a benchmark, and what is told of many of them.
import { must } from '../src/base/assert.ts';

/** How long it took, ms. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

/** The value that `share` of them, in percent, do not exceed. Throws where there are none. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return must(sorted[Math.max(0, Math.ceil((sorted.length * share) / 100) - 1)], 'a value');
}
