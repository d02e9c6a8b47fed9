// How every thread of this process begins: its line to the main thread, and what its parts get when they are wired.
import { parentPort } from 'node:worker_threads';
import type { ProcessContext } from '../../src/admin/process-context.ts';
import { must } from '../../src/base/assert.ts';
import type { Config } from '../../src/config/schema.ts';
import { startHeapWatch } from '../../src/platform/heap/heap-release.ts';
import { systemClock, systemRandom } from '../../src/platform/system-clock.ts';
import { startLoopWatch } from '../../src/platform/telemetry/loop-watch.ts';
import { createPromTelemetry } from '../../src/platform/telemetry/prom-telemetry.ts';
import { createThreadLine, type LineEnd, type ThreadLine } from '../../src/platform/threads/thread-line.ts';
import { createThreadLog, type ThreadLog } from '../../src/platform/threads/thread-log.ts';

/** A line whose failure nobody catches: the thread ends, and with it the process. `end`: default to the main thread. */
export function openLine(
  end: unknown = must(parentPort, 'this is the entry of a worker thread'),
): ThreadLine {
  return createThreadLine(end as LineEnd, (error) => {
    throw error;
  });
}

export interface ThreadContext extends ProcessContext {
  readonly log: ThreadLog;
}

/** `thread`: as the lines of its log name it. `main`: the line to the main thread. */
export function openThreadContext(
  main: ThreadLine,
  { config, thread }: { config: Config; thread: number | string },
): ThreadContext {
  const closing = new AsyncDisposableStack();
  const clock = systemClock;
  const log = createThreadLog(main, { level: config.log.level, thread, clock });
  const telemetry = createPromTelemetry({ log, ofProcess: false });
  const loop = startLoopWatch({ clock, telemetry, log, closing });
  startHeapWatch({ clock, log, closing });
  return { config, log, telemetry, clock, random: systemRandom, loop, closing };
}
