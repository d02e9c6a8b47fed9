// The embedded server as one thing that starts and stops. How it is put together is wire-embedded.ts; reading settings
// and acting on signals is server.ts.

import { checkGivenCredentials } from '../src/admin/root-credentials.ts';
import type { Config } from '../src/config/schema.ts';
import { startHeapWatch } from '../src/platform/heap/heap-release.ts';
import { systemClock, systemRandom } from '../src/platform/system-clock.ts';
import type { JsonLog } from '../src/platform/telemetry/json-log.ts';
import { startLoopWatch } from '../src/platform/telemetry/loop-watch.ts';
import { createPromTelemetry } from '../src/platform/telemetry/prom-telemetry.ts';
import { rememberErrors } from '../src/platform/telemetry/recent-errors.ts';
import { thinWarnings } from '../src/platform/telemetry/thin-warnings.ts';
import type { ClockPort } from '../src/ports/clock.ts';
import type { Logger } from '../src/ports/telemetry.ts';
import { refuseTaken } from './listening.ts';
import { openHealth } from './open-health.ts';
import { countThreads } from './threads/count-threads.ts';
import { wireThreads } from './threads/wire-threads.ts';
import { type WiredServer, wireEmbedded } from './wire-embedded.ts';

export interface EmbeddedServer extends WiredServer {
  /** Lets requests in flight end, drainTimeout at most, then closes everything. Safe to repeat. */
  stop(): Promise<void>;
}

/** Resolves when requests are taken. Rejects with what was refused, having closed what it had opened. */
export async function startEmbedded(options: {
  config: Config;
  /** With `writeLines` it takes the lines of gateway threads as they are. */
  log: Logger & Partial<Pick<JsonLog, 'writeLines'>>;
  /** Of tests; default the system's. */
  clock?: ClockPort;
}): Promise<EmbeddedServer> {
  const { config, clock = systemClock } = options;
  checkGivenCredentials(config.root);
  await refuseTaken(config.listen);
  await using opening = new AsyncDisposableStack();
  const log = rememberErrors(thinWarnings(options.log, clock), clock);
  const telemetry = createPromTelemetry({ log });
  const loop = startLoopWatch({ clock, telemetry, log, closing: opening });
  startHeapWatch({ clock, log, closing: opening });
  const processContext = { config, log, telemetry, clock, random: systemRandom, loop, closing: opening };
  let wired: WiredServer | undefined;
  await openHealth(processContext, () => wired?.isReady() === true);
  const counts = await countThreads(config);
  const { writeLines = linesTo(options.log) } = options.log;
  wired =
    counts.gateway === 1 && counts.metadata === 0
      ? await wireEmbedded(processContext)
      : await wireThreads(processContext, { counts, writeLines });
  const closing = opening.move();
  let stopped: Promise<void> | undefined;
  return {
    ...wired,
    stop() {
      stopped ??= closing.disposeAsync();
      return stopped;
    },
  };
}

/** Takes lines of a log of JSON apart again. */
function linesTo(log: Logger): (lines: string) => void {
  return (lines) => {
    for (const line of lines.trimEnd().split('\n')) {
      const { level, time: _, event, ...fields } = JSON.parse(line);
      log[level as keyof Logger](fields, event);
    }
  };
}
