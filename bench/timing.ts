// Times of a benchmark, and what is told of many of them.
import { readFileSync } from 'node:fs';
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

/** User and system time of a process since its start, from proc_pid_stat(5); its unit is 10 ms on Linux. */
export function cpuSecondsOf(pid: number): number {
  // The command's name, in brackets, may hold anything.
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').at(-1)?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / 100;
}
