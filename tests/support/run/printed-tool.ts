// The command line tool within the test's process: its commands get a context whose printed lines are kept.
import { setTimeout as sleep } from 'node:timers/promises';
import type { CliContext } from '../../../src/cli/connect.ts';

export interface PrintedTool {
  readonly context: CliContext;
  /** What has been printed since this was asked last. */
  taken(): string;
}

export function createPrintedTool(): PrintedTool {
  const printed: string[] = [];
  return {
    context: { env: {}, print: (line) => void printed.push(line), nowMs: Date.now, sleep },
    taken: () => printed.splice(0).join('\n'),
  };
}
