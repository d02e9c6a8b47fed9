// How processes of a test end: told to, or by themselves, with what they said.
import type { ChildProcess, ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { within } from '../../../src/base/async/within.ts';
import { systemClock } from '../../../src/platform/system-clock.ts';

/** Of a command, which waits for a minute at most for others. */
const ENDS_WITHIN_MS = 100_000;

/** What a command of the program came to. */
export interface Ran {
  /** -1: a signal has ended it. */
  code: number;
  /** Of both streams. */
  output: string;
}

/** Resolves when the process has ended. Kills one that does not, and rejects with its name, `what`, and what it said. */
export async function ranToEnd(child: ChildProcessWithoutNullStreams, what: string): Promise<Ran> {
  const parts: string[] = [];
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => parts.push(text));
  const closed = await within(once(child, 'close'), ENDS_WITHIN_MS, systemClock);
  const output = parts.join('');
  if (closed === undefined) {
    child.kill('SIGKILL');
    throw new Error(`it has not ended in ${ENDS_WITHIN_MS} ms: ${what}: ${output}`);
  }
  const [code] = closed as [number | null];
  return { code: code ?? -1, output };
}

/** Asks it to end, unless it has. Resolves with its exit code when it is gone, null when a signal ended it. */
export async function endGracefully(child: ChildProcess): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
  const gone = once(child, 'exit');
  child.kill('SIGTERM');
  return (await gone)[0];
}
