// The one stream of a kind from this process to one node: opened when there is something to say, opened anew after a
// while when it broke, each time at the address that the node has then. What goes over it is the caller's.
import type { ClientDuplexStream, MethodDefinition } from '@grpc/grpc-js';
import type { NodeId } from '../../ports/replication.ts';
import type { Logger } from '../../ports/telemetry.ts';
import { LIMITS } from '../../types/limits.ts';
import { type OpenStream, openStream, type StreamDeps } from './open-stream.ts';

export interface LinkDeps extends StreamDeps {
  /** `host:port`, of now; undefined: not known. */
  addressOf(node: NodeId): string | undefined;
  log: Logger;
}

export interface LinkEvents<Out, In> {
  onOpen(stream: ClientDuplexStream<Out, In>): void;
  onFrame(frame: In): void;
  /** After every attempt that failed and every stream that ended, but not after `close`. */
  onDown(reason: string): void;
}

export interface NodeLink {
  /** Opens the stream unless it is open or being opened. False: not now, it failed a moment ago or has no address. */
  wake(): boolean;
  /** Ends the stream, for a reason that stands in the log; `onDown` follows. */
  cut(reason: string): void;
  close(): void;
}

export function createNodeLink<Out, In>(
  target: { node: NodeId; method: MethodDefinition<Out, In> },
  deps: LinkDeps,
  events: LinkEvents<Out, In>,
): NodeLink {
  const { node, method } = target;
  const { clock, log } = deps;
  const closed = new AbortController();
  let state: 'down' | 'opening' | 'open' = 'down';
  let open: OpenStream<Out, In> | undefined;
  let cutReason: string | undefined;
  let failureCount = 0;
  let retryAtMs = 0;
  /** Last written to the log: one line for each change. */
  let lastReason = '';

  async function run(address: string): Promise<void> {
    let reason: string;
    let isStable = false;
    try {
      open = await openStream({ method, node, address }, deps, closed.signal);
      const openedAtMs = clock.monotonicMs();
      reason = await serve(open, address);
      isStable = clock.monotonicMs() - openedAtMs > LIMITS.rpcBackoffMaxMs;
    } catch (error) {
      reason = error instanceof Error ? error.message : String(error);
    }
    open = undefined;
    state = 'down';
    if (closed.signal.aborted) return;
    // One that is accepted and cut at once, again and again, is waited for as one that does not answer.
    failureCount = isStable ? 0 : failureCount + 1;
    retryAtMs = clock.monotonicMs() + backOffMs();
    if (reason !== lastReason) log.warn({ node, address, path: method.path, reason }, 'rpc-down');
    lastReason = reason;
    events.onDown(reason);
  }

  async function serve(opened: OpenStream<Out, In>, address: string): Promise<string> {
    if (closed.signal.aborted) opened.close();
    else {
      state = 'open';
      cutReason = undefined;
      log.info({ node, address, path: method.path }, 'rpc-open');
      lastReason = '';
      opened.stream.on('data', (frame: In) => events.onFrame(frame));
      events.onOpen(opened.stream);
    }
    const reason = await opened.ended;
    return cutReason ?? reason;
  }

  /** Half of it by chance, so that the nodes of a cluster do not come back all at once. */
  function backOffMs(): number {
    const wholeMs = Math.min(LIMITS.rpcBackoffMinMs * 2 ** (failureCount - 1), LIMITS.rpcBackoffMaxMs);
    const [chance = 0] = deps.random.bytes(1);
    return failureCount === 0 ? 0 : (wholeMs * (255 + chance)) / 510;
  }

  return {
    wake() {
      if (closed.signal.aborted) return false;
      if (state !== 'down') return true;
      if (clock.monotonicMs() < retryAtMs) return false;
      const address = deps.addressOf(node);
      if (address === undefined) return false;
      state = 'opening';
      void run(address);
      return true;
    },
    cut(reason) {
      cutReason = reason;
      open?.close();
    },
    close() {
      closed.abort();
      open?.close();
    },
  };
}
