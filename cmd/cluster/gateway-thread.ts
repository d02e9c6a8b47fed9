// A gateway of a cluster in a thread of its own: a member of the cluster like any other, with connections, caches and codec
// threads of its own, on a port that it shares with the other threads of the process. Wiring only; gateway-threads.ts starts it.
import { remoteCalls, serveCalls } from '../../src/platform/threads/named-calls.ts';
import { openLine, openThreadContext } from '../threads/thread-entry.ts';
import { startGateway } from './gateway.ts';
import {
  GATEWAY_MAIN_CALLS,
  type GatewayCalls,
  type GatewayMainCalls,
  type GatewayStart,
} from './gateway-calls.ts';

const line = openLine();
serveCalls(line, {
  async open(start: GatewayStart) {
    const { calls, ...opened } = await openThread(start);
    serveCalls(line, calls);
    return opened;
  },
});

async function openThread({ config, threads, number }: GatewayStart) {
  const main = remoteCalls<GatewayMainCalls>(line, GATEWAY_MAIN_CALLS);
  const threadContext = openThreadContext(line, { config, thread: number });
  const { log, telemetry, loop, closing } = threadContext;
  const running = await startGateway(threadContext, {
    ...{ threads, number },
    readMetrics: () => main.readMetrics(),
  });
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
