// A gateway process of a cluster with several gateways, each in a thread of its own, so that the process uses more than one
// processor. The main thread writes the log, adds up metrics and ends them all. Wiring only.
import type { ProcessContext, RunningRole } from '../../src/admin/process-context.ts';
import { must } from '../../src/base/assert.ts';
import { serveCalls } from '../../src/platform/threads/named-calls.ts';
import { shareOfSettings } from '../threads/gateway-threads.ts';
import { WatchedThreads } from '../threads/watched-threads.ts';
import { GATEWAY_CALLS, type GatewayCalls, type GatewayMainCalls } from './gateway-calls.ts';

/** Rejects as startGateway does. `writeLines`: to the log of the process. */
export async function startGatewayThreads(
  { config, log, telemetry, clock, closing }: ProcessContext,
  { threads, writeLines }: { threads: number; writeLines(lines: string): void },
): Promise<RunningRole> {
  const failure = Promise.withResolvers<Error>();
  const calls = {
    writeLog: writeLines,
    noteError: ({ event, message }) => log.note(event, message),
    readMetrics: () => telemetry.scrape(),
  } satisfies GatewayMainCalls;
  const watched = new WatchedThreads<GatewayCalls>({
    role: 'gateway',
    count: threads,
    entry: new URL('./gateway-thread.ts', import.meta.url),
    callNames: GATEWAY_CALLS,
    clock,
    serve: (line) => serveCalls(line, calls),
    onFailed: failure.resolve,
  });
  closing.defer(() => watched.close((thread) => thread.drain(), config.drainTimeoutMs));
  telemetry.addThreads(() => watched.readFigures());
  const own = shareOfSettings(config, threads);
  const open = (thread: (typeof watched.threads)[number], port: number) =>
    thread.calls.open({
      config: { ...own, listen: { ...own.listen, port } },
      threads,
      number: thread.number,
    });
  const [first, ...others] = watched.threads;
  // The first one makes what all have in common: a certificate, and the port where any will do.
  const { port, address, nodeId, clusterId } = await open(
    must(first, 'there is a thread'),
    config.listen.port,
  );
  await Promise.all(others.map((thread) => open(thread, port)));
  void watched.watch();
  return {
    address,
    nodeId,
    clusterId,
    failed: failure.promise,
    isReady: () => watched.threads.some(({ pulse }) => pulse?.isReady === true),
    reload: () => watched.tellAll(({ calls: thread }) => thread.reload()),
  };
}
