// Runs one role of a cluster from its start to its end: process context, signals, exit code.

import type { ProcessContext, RunningRole } from '../../src/admin/process-context.ts';
import type { Config } from '../../src/config/schema.ts';
import { startHeapWatch } from '../../src/platform/heap/heap-release.ts';
import { systemClock, systemRandom } from '../../src/platform/system-clock.ts';
import { createJsonLog } from '../../src/platform/telemetry/json-log.ts';
import { startLoopWatch } from '../../src/platform/telemetry/loop-watch.ts';
import { createPromTelemetry } from '../../src/platform/telemetry/prom-telemetry.ts';
import { rememberErrors } from '../../src/platform/telemetry/recent-errors.ts';
import { thinWarnings } from '../../src/platform/telemetry/thin-warnings.ts';
import { readVersion } from '../../src/platform/version.ts';
import type { MemberRole } from '../../src/ports/members.ts';
import { refuseTaken } from '../listening.ts';
import { openHealth } from '../open-health.ts';
import { onSignals } from '../signals.ts';
import { countGatewayThreads } from '../threads/count-threads.ts';
import { ThreadFailed } from '../threads/watched-threads.ts';

const SIGNAL_EXIT_CODES = { SIGINT: 130, SIGTERM: 143 } as const;

/** Resolves with the exit code: 0 when it was asked to stop, 1 when a store has failed. Rejects when it cannot start. */
export async function runRole(
  config: Config,
  { role, isAtRest }: { role: MemberRole; isAtRest: boolean },
): Promise<number> {
  process.umask(0o077);
  const json = createJsonLog({ level: config.log.level });
  const log = rememberErrors(thinWarnings(json, systemClock), systemClock);
  const stopWish = Promise.withResolvers<'signal'>();
  let running: RunningRole | undefined;
  const release = onSignals({
    drain: () => stopWish.resolve('signal'),
    stopNow(signal) {
      log.warn({ signal }, 'stopped-at-once');
      json.flushNow();
      process.exit(SIGNAL_EXIT_CODES[signal]);
    },
    reload() {
      running?.reload?.().then(
        () => log.info({}, 'certificate-reloaded'),
        (error) => log.error({ err: error }, 'certificate-refused'),
      );
    },
  });
  try {
    await using closing = new AsyncDisposableStack();
    const telemetry = createPromTelemetry({ log });
    const clock = systemClock;
    const loop = startLoopWatch({ clock, telemetry, log, closing });
    startHeapWatch({ clock, log, closing });
    const processContext = { config, log, telemetry, clock, random: systemRandom, loop, closing };
    // Before a folder is made, keys are read, or the process is announced.
    if (!isAtRest) await refuseTaken(role === 'gateway' ? config.listen : config.node.listen);
    let isDraining = false;
    const health = await openHealth(processContext, () => !isDraining && running?.isReady() === true);
    // A signal ends the wait for the rest of the cluster, too.
    const starting = start(role, processContext, { isAtRest, writeLines: json.writeLines });
    const started = await Promise.race([starting, stopWish.promise]);
    if (started === 'signal') return 0;
    running = started;
    const { address, nodeId, clusterId } = started;
    log.info({ version: readVersion(), role, address, nodeId, clusterId, ...health }, 'started');
    const end = await Promise.race([stopWish.promise, started.failed]);
    if (end instanceof Error)
      log.error({ err: end }, end instanceof ThreadFailed ? 'thread-failed' : 'store-failed');
    isDraining = true;
    log.info({}, 'draining');
    return end instanceof Error ? 1 : 0;
  } catch (error) {
    log.error({ role, err: error }, running === undefined ? 'not-started' : 'failed');
    throw error;
  } finally {
    release();
    log.info({}, 'stopped');
    await json.flush();
  }
}

async function start(
  role: MemberRole,
  processContext: ProcessContext,
  { isAtRest, writeLines }: { isAtRest: boolean; writeLines(lines: string): void },
): Promise<RunningRole> {
  if (isAtRest) return (await import('./maintenance.ts')).startAtRest(processContext);
  if (role === 'metadata') return (await import('./metadata.ts')).startMetadata(processContext);
  if (role === 'storage') return (await import('./storage.ts')).startStorage(processContext);
  const threads = await countGatewayThreads(processContext.config);
  if (threads > 1)
    return (await import('./gateway-threads.ts')).startGatewayThreads(processContext, {
      threads,
      writeLines,
    });
  return (await import('./gateway.ts')).startGateway(processContext);
}
