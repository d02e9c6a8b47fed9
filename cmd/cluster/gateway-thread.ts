// A gateway of a cluster in a thread of its own: a member of the cluster like any other, with connections, caches and codec
// threads of its own, on a port that it shares with the other threads of the process. Wiring only; gateway-threads.ts starts it.
import { parentPort } from 'node:worker_threads';
import { must } from '../../src/base/assert.ts';
import { startHeapWatch } from '../../src/platform/heap/heap-release.ts';
import { systemClock, systemRandom } from '../../src/platform/system-clock.ts';
import { startLoopWatch } from '../../src/platform/telemetry/loop-watch.ts';
import { createPromTelemetry } from '../../src/platform/telemetry/prom-telemetry.ts';
import { remoteCalls, serveCalls } from '../../src/platform/threads/named-calls.ts';
import { createThreadLine, type LineEnd } from '../../src/platform/threads/thread-line.ts';
import { createThreadLog } from '../../src/platform/threads/thread-log.ts';
import { startGateway } from './gateway.ts';
import {
  GATEWAY_MAIN_CALLS,
  type GatewayCalls,
  type GatewayMainCalls,
  type GatewayStart,
} from './gateway-calls.ts';

const end = must(parentPort, 'this is the entry of a worker thread') as unknown as LineEnd;
const line = createThreadLine(end, (error) => {
  // Nobody catches it: the thread ends, and with it the process.
  throw error;
});
serveCalls(line, {
  async open(start: GatewayStart) {
    const { calls, ...opened } = await openThread(start);
    serveCalls(line, calls);
    return opened;
  },
});

async function openThread({ config, threads, number }: GatewayStart) {
  const closing = new AsyncDisposableStack();
  const main = remoteCalls<GatewayMainCalls>(line, GATEWAY_MAIN_CALLS);
  const clock = systemClock;
  const log = createThreadLog(line, { level: config.log.level, thread: number, clock });
  const telemetry = createPromTelemetry({ log, ofProcess: false });
  const loop = startLoopWatch({ clock, telemetry, log, closing });
  startHeapWatch({ clock, log, closing });
  const processContext = { config, log, telemetry, clock, random: systemRandom, loop, closing };
  const running = await startGateway(processContext, { threads, readMetrics: () => main.readMetrics() });
  const { port, address, nodeId, clusterId } = running;
  const calls = {
    pulse: () => ({ loopHeldMs: loop.heldMs(), isReady: running.isReady(), hasRoom: running.hasRoom() }),
    reload: async () => running.reload?.(),
    readFigures: () => telemetry.figures(),
    async drain() {
      await closing.disposeAsync();
      log.flush();
    },
  } satisfies Omit<GatewayCalls, 'open'>;
  return { port, address, nodeId, clusterId, calls };
}
