// Calls to shards on other nodes: one stream to each node, any number of calls under way on it, the calls of a turn in
// one frame. Keeps the ticket of each connection (R48) and gives each call the one of its moment, so that a call that
// waits on its way grows old with it. Which node to call, and whether to call again, is not decided here.
import { assert } from '../../base/assert.ts';
import { type Moment, momentNow, passedMs } from '../../base/moment.ts';
import { packPlain, unpackPlain } from '../../base/record-codec.ts';
import type { NodeId } from '../../ports/replication.ts';
import type { ShardCall, ShardCallPort, ShardReply, Ticket } from '../../ports/shard-calls.ts';
import type { TelemetryPort } from '../../ports/telemetry.ts';
import { CallBroken } from '../../types/call-broken.ts';
import { LIMITS } from '../../types/limits.ts';
import { createFrameSender, type FrameSender } from './frame-sender.ts';
import { createNodeLink, type LinkDeps } from './node-link.ts';
import { CALLS, type CallFrame, type ReplyFrame, RPC_VERSION } from './wire.ts';

export interface CallClientDeps extends LinkDeps {
  telemetry: TelemetryPort;
}

export interface CallClient extends ShardCallPort {
  /** Calls that are under way reject. */
  close(): void;
}

type Request = Omit<ShardCall, 'ticket'>;

interface Waiting {
  call: Request;
  asked: Moment;
  /** Once it has been given to the stream. */
  number: number | undefined;
  resolve(reply: ShardReply): void;
  reject(error: unknown): void;
}

export function createCallClient(deps: CallClientDeps): CallClient {
  const nodes = new Map<NodeId, NodeCalls>();
  let isClosed = false;
  return {
    async call(to, call, signal) {
      if (isClosed) throw new CallBroken('this process ends', { wasSent: false });
      if (signal.aborted) throw aborted(signal, false);
      const node = nodes.get(to) ?? createNodeCalls(to, deps);
      nodes.set(to, node);
      return node.call(call, signal);
    },
    close() {
      isClosed = true;
      for (const node of nodes.values()) node.close();
      nodes.clear();
    },
  };
}

interface NodeCalls {
  call(call: Request, signal: AbortSignal): Promise<ShardReply>;
  close(): void;
}

function createNodeCalls(node: NodeId, deps: CallClientDeps): NodeCalls {
  const { clock, telemetry } = deps;
  /** Given to the stream, and not answered; by number. */
  const underWay = new Map<number, Waiting>();
  /** For a stream with a ticket. */
  const unsent = new Set<Waiting>();
  let sender = newSender();
  let ticket: Ticket | undefined;
  let lastNumber = 0;
  let hasAnswered = false;
  let streamEnd = new AbortController();

  const link = createNodeLink<CallFrame, ReplyFrame>({ node, method: CALLS }, deps, {
    onOpen(stream) {
      sender.attach((batch, onTaken) => {
        telemetry.count('holdfast_rpc_frames_total', { kind: 'calls' });
        stream.write({ version: RPC_VERSION, ...batch }, onTaken);
      });
      streamEnd = new AbortController();
      void keepTicketFresh(streamEnd.signal);
    },
    onFrame: take,
    onDown,
  });

  function take(frame: ReplyFrame): void {
    hasAnswered = true;
    telemetry.count('holdfast_rpc_received_frames_total', { kind: 'replies' });
    if (frame.version !== RPC_VERSION || frame.ticket === null) {
      link.cut('a frame that cannot be read');
      return;
    }
    ticket = frame.ticket;
    for (const waiting of unsent) {
      unsent.delete(waiting);
      start(waiting, ticket);
    }
    for (const [index, number] of frame.numbers.entries()) {
      const waiting = underWay.get(number);
      // Its caller waits no longer.
      if (waiting === undefined) continue;
      underWay.delete(number);
      try {
        waiting.resolve(unpackPlain(frame.payloads[index] ?? new Uint8Array()) as ShardReply);
      } catch (cause) {
        waiting.reject(new CallBroken('the reply cannot be read', { wasSent: true, cause }));
      }
    }
  }

  function start(waiting: Waiting, current: Ticket): void {
    try {
      // R48: it ages from when it was asked, though the ticket came later.
      const ageMs = passedMs(waiting.asked, momentNow(clock));
      if (!Number.isFinite(ageMs)) {
        waiting.resolve({ kind: 'too-old' });
        return;
      }
      const monotonicMs = current.monotonicMs - ageMs;
      const ticket = { ...current, monotonicMs, wallMs: current.wallMs - ageMs };
      const call: ShardCall = { ...waiting.call, ticket };
      const payload = packPlain(call);
      assert(payload.length <= LIMITS.rpcMessageBytesMax, `${waiting.call.name} fits into a message`);
      do lastNumber = (lastNumber + 1) >>> 0;
      while (underWay.has(lastNumber));
      if (sender.send(lastNumber, payload)) {
        waiting.number = lastNumber;
        underWay.set(lastNumber, waiting);
      } else waiting.resolve({ kind: 'busy' });
    } catch (error) {
      waiting.reject(error);
    }
  }

  function onDown(reason: string): void {
    streamEnd.abort();
    ticket = undefined;
    for (const waiting of unsent) waiting.reject(new CallBroken(reason, { wasSent: false }));
    for (const [number, waiting] of underWay) {
      waiting.reject(new CallBroken(reason, { wasSent: !sender.withdraw(number) }));
    }
    unsent.clear();
    underWay.clear();
    sender.close();
    sender = newSender();
  }

  /** R48: a call on an idle connection must not be refused for the age of its ticket. */
  async function keepTicketFresh(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      hasAnswered = false;
      await clock.sleep(LIMITS.ticketRefreshMs, signal);
      if (!signal.aborted && !hasAnswered) sender.sendEmpty();
    }
  }

  /** Takes a call back whose caller waits no longer. True: it may have been evaluated. */
  function withdraw(waiting: Waiting): boolean {
    unsent.delete(waiting);
    if (waiting.number === undefined) return false;
    underWay.delete(waiting.number);
    return !sender.withdraw(waiting.number);
  }

  return {
    call(call, signal) {
      return new Promise((resolve, reject) => {
        const onAbort = () => reject(aborted(signal, withdraw(waiting)));
        const settled = () => signal.removeEventListener('abort', onAbort);
        const waiting: Waiting = {
          call,
          asked: momentNow(clock),
          number: undefined,
          resolve(reply) {
            settled();
            resolve(reply);
          },
          reject(error) {
            settled();
            reject(error);
          },
        };
        signal.addEventListener('abort', onAbort, { once: true });
        if (!link.wake()) {
          waiting.reject(new CallBroken(`node ${node} cannot be reached`, { wasSent: false }));
        } else if (ticket !== undefined) start(waiting, ticket);
        else if (unsent.size < LIMITS.callsInFlightMax) unsent.add(waiting);
        else waiting.resolve({ kind: 'busy' });
      });
    },
    close() {
      link.close();
      onDown('this process ends');
    },
  };
}

function newSender(): FrameSender {
  return createFrameSender({ queueBytesMax: LIMITS.callQueueBytesMax });
}

function aborted(signal: AbortSignal, wasSent: boolean): CallBroken {
  return new CallBroken('the caller waits no longer', { wasSent, cause: signal.reason });
}
