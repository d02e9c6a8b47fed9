// Calls to shards between nodes of one process, for tests: through bytes, so that only plain data crosses, with tickets
// that grow old as those of a connection do. A node that leaves takes the outcome of its calls with it.
import { packPlain, unpackPlain } from '../../base/record-codec.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { NodeId } from '../../ports/replication.ts';
import type {
  ShardCall,
  ShardCallHandler,
  ShardCallPort,
  ShardReply,
  Ticket,
} from '../../ports/shard-calls.ts';
import { CallBroken } from '../../types/call-broken.ts';
import { LIMITS } from '../../types/limits.ts';

export interface MemoryCalls {
  /** Serves the node until the function that it returns is called. */
  serve(node: NodeId, handler: ShardCallHandler): () => void;
  /** A caller with connections of its own, until `close`. */
  createCaller(clock: ClockPort): ShardCallPort & { close(): void };
}

interface Connection {
  handler: ShardCallHandler;
  ticket: Ticket;
  hasAnswered: boolean;
  /** Aborts when the node leaves or the caller closes. */
  end: AbortSignal;
}

export function createMemoryCalls(): MemoryCalls {
  const nodes = new Map<NodeId, { handler: ShardCallHandler; left: AbortController }>();

  function createCaller(clock: ClockPort): ShardCallPort & { close(): void } {
    const closed = new AbortController();
    const connections = new Map<NodeId, Connection>();

    function connect(to: NodeId): Connection {
      const known = connections.get(to);
      if (known !== undefined && !known.end.aborted) return known;
      const node = nodes.get(to);
      if (node === undefined || closed.signal.aborted) {
        throw new CallBroken(`node ${to} cannot be reached`, { wasSent: false });
      }
      const { handler, left } = node;
      const end = AbortSignal.any([left.signal, closed.signal]);
      const connection = { handler, ticket: handler.ticket(), hasAnswered: false, end };
      connections.set(to, connection);
      void keepTicketFresh(connection);
      return connection;
    }

    async function keepTicketFresh(connection: Connection): Promise<void> {
      while (!connection.end.aborted) {
        connection.hasAnswered = false;
        await clock.sleep(LIMITS.ticketRefreshMs, connection.end);
        if (!connection.end.aborted && !connection.hasAnswered)
          connection.ticket = connection.handler.ticket();
      }
    }

    return {
      async call(to, call, signal) {
        if (signal.aborted) throw new CallBroken('the caller waits no longer', { wasSent: false });
        const connection = connect(to);
        const request = packPlain({ ...call, ticket: connection.ticket } satisfies ShardCall);
        const ended = broken(AbortSignal.any([signal, connection.end]));
        const reply = await Promise.race([serveOne(connection.handler, request), ended.promise]);
        ended.forget();
        connection.hasAnswered = true;
        connection.ticket = connection.handler.ticket();
        return unpackPlain(reply) as ShardReply;
      },
      close: () => closed.abort(),
    };
  }

  return {
    serve(node, handler) {
      const left = new AbortController();
      nodes.set(node, { handler, left });
      return () => {
        nodes.delete(node);
        left.abort();
      };
    },
    createCaller,
  };
}

async function serveOne(handler: ShardCallHandler, request: Uint8Array): Promise<Uint8Array> {
  // Not in the caller's turn: no caller may count on being answered within it.
  await new Promise((resolve) => setImmediate(resolve));
  return packPlain(await handler.handle(unpackPlain(request) as ShardCall));
}

function broken(signal: AbortSignal): { promise: Promise<never>; forget(): void } {
  const { promise, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(new CallBroken('the connection broke, or the caller left', { wasSent: true }));
  signal.addEventListener('abort', onAbort, { once: true });
  return { promise, forget: () => signal.removeEventListener('abort', onAbort) };
}
