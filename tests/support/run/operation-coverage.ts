// Which operations the whole run has seen succeed, with which errors it has seen each of them end, and which errors at
// all. Servers of tests give up their request log when they stop; the last test (tests/last) reads what all of them left.
import { appendFile, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { LogLine } from '../servers/start-server.ts';

export const SUCCESS = 'success';
/** In place of an operation: whatever was asked for, of whomever. */
export const ANYTHING = '*';

/** Set by vitest.config.ts for the run. */
const folderOf = () => process.env.OPERATION_COVERAGE_FOLDER;

/**
 * Leaves what the requests of one server have shown. `isOdd`: it was damaged, or in an odd world, so that it says nothing
 * about its operations, but still that an error can be seen.
 */
export async function leaveCoverage(
  lines: readonly LogLine[],
  options: { isOdd?: boolean | undefined } = {},
): Promise<void> {
  const folder = folderOf();
  if (folder === undefined) return;
  const seen = new Set<string>();
  for (const { event, operation, errorCode = SUCCESS } of lines) {
    if (event !== 'request') continue;
    seen.add(`${ANYTHING} ${errorCode}\n`);
    if (operation !== undefined && options.isOdd !== true) seen.add(`${operation} ${errorCode}\n`);
  }
  await appendFile(join(folder, `${process.pid}.txt`), [...seen].join(''));
}

/** What all servers of this run have left: operation → outcomes. */
export async function readCoverage(): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const folder = folderOf();
  const coverage = new Map<string, Set<string>>();
  for (const name of folder === undefined ? [] : await readdir(folder)) {
    for (const line of (await readFile(join(folder ?? '', name), 'utf8')).split('\n')) {
      const [operation = '', outcome = ''] = line.split(' ');
      if (outcome === '') continue;
      const outcomes = coverage.get(operation) ?? new Set();
      coverage.set(operation, outcomes.add(outcome));
    }
  }
  return coverage;
}
