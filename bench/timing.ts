// Times of a benchmark, and what is told of many of them.
import { readdirSync, readFileSync } from 'node:fs';
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
  return readStat(`/proc/${pid}/stat`).cpuSeconds;
}

/** The same of each of its threads, by name and number. */
export function threadCpuSecondsOf(pid: number): Map<string, number> {
  const found = new Map<string, number>();
  for (const tid of readdirSync(`/proc/${pid}/task`)) {
    try {
      const { name, cpuSeconds } = readStat(`/proc/${pid}/task/${tid}/stat`);
      found.set(`${name} ${tid}`, cpuSeconds);
    } catch {
      // It has ended since.
    }
  }
  return found;
}

function readStat(path: string): { name: string; cpuSeconds: number } {
  const text = readFileSync(path, 'latin1');
  // The name, in brackets, may hold anything.
  const fields = text.split(') ').at(-1)?.split(' ') ?? [];
  const name = text.slice(text.indexOf('(') + 1, text.lastIndexOf(')'));
  return { name, cpuSeconds: (Number(fields[11]) + Number(fields[12])) / 100 };
}
