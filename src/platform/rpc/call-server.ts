// Serves calls of gateways and of other nodes: streams that rpc-server.ts has admitted. Calls go to the handler in the order
// in which they came, so many in a turn of the event loop (call-turns.ts); a reply leaves when it is there, the replies of a
// turn in one frame, which says where this node's clock stands (R48). Bounded, with a share for each account whose calls
// these are: what is beyond is answered busy, and a caller that takes no replies, or whose calls wait, is not read from.
import { type ServerDuplexStream, status } from '@grpc/grpc-js';
import { assert } from '../../base/assert.ts';
import { createFairShare, type SharePath } from '../../base/async/fair-share.ts';
import { packPlain, unpackPlain } from '../../base/record-codec.ts';
import type { NodeId } from '../../ports/replication.ts';
import type { ShardCall, ShardCallHandler, ShardReply } from '../../ports/shard-calls.ts';
import type { Logger, TelemetryPort } from '../../ports/telemetry.ts';
import { LIMITS } from '../../types/limits.ts';
import { commandPathOf } from '../../types/tenant.ts';
import { createCallTurns } from './call-turns.ts';
import { createFrameSender, type FrameSender } from './frame-sender.ts';
import { type CallFrame, type ReplyFrame, RPC_VERSION } from './wire.ts';

type CallStream = ServerDuplexStream<CallFrame, ReplyFrame>;

export interface CallServer {
  /** Serves an admitted stream to its end. */
  serve(stream: CallStream, caller: NodeId): void;
  /** Reads no more calls; resolves when those that were taken are answered and their replies have left. */
  drain(): Promise<void>;
  /** Ends all streams. */
  close(): void;
}

export function createCallServer(deps: {
  handler: ShardCallHandler;
  log: Logger;
  telemetry: TelemetryPort;
}): CallServer {
  const { handler, log, telemetry } = deps;
  const streams = new Map<CallStream, FrameSender>();
  const turns = createCallTurns();
  const weights = [LIMITS.accountShareWeight];
  const counts = createFairShare({ limit: LIMITS.callsInFlightMax, weights });
  const sizes = createFairShare({ limit: LIMITS.callsInFlightBytesMax, weights });
  let isDraining = false;
  let onIdle: (() => void) | undefined;

  function noteIdle(): void {
    if (!isDraining || counts.used > 0) return;
    if ([...streams.values()].every((sender) => sender.unsentBytes() === 0)) onIdle?.();
  }

  function hasRoom(account: SharePath, sizeBytes: number): boolean {
    if (counts.used === 0) return true;
    return counts.mayTake(account, 1) && sizes.mayTake(account, sizeBytes);
  }

  /** Takes a place for the call. What it gives answers the call, and never rejects; undefined: there is no place. */
  function admit(call: ShardCall, sizeBytes: number): (() => Promise<Uint8Array>) | undefined {
    const account = pathOf(call);
    if (!hasRoom(account, sizeBytes)) return undefined;
    counts.take(account, 1);
    sizes.take(account, sizeBytes);
    return () => answer(call, sizeBytes, account);
  }

  async function answer(call: ShardCall, sizeBytes: number, account: SharePath): Promise<Uint8Array> {
    try {
      const reply = packPlain(await handler.handle(call));
      assert(reply.length <= LIMITS.rpcMessageBytesMax, `the reply to ${call.name} fits into a message`);
      return reply;
    } catch (error) {
      log.error({ name: call.name, shard: call.envelope.shard, err: error }, 'shard-call-failed');
      return packPlain({ kind: 'unknown' } satisfies ShardReply);
    } finally {
      counts.giveBack(account, 1);
      sizes.giveBack(account, sizeBytes);
    }
  }

  /** Resolves when all have gone to the handler; undefined: they have. */
  function begin(
    calls: ShardCall[],
    { payloads }: CallFrame,
    onReply: (index: number, reply: Uint8Array) => void,
  ): Promise<void> | undefined {
    const starts = calls.map((call, index) => {
      const start = admit(call, payloads[index]?.length ?? 0);
      return start === undefined
        ? () => onReply(index, packPlain({ kind: 'busy' } satisfies ShardReply))
        : () => void start().then((reply) => onReply(index, reply));
    });
    return turns.add(starts);
  }

  function serve(stream: CallStream, caller: NodeId): void {
    if (isDraining) {
      endStream(stream);
      return;
    }
    let areCallsWaiting = false;
    const resume = () => {
      const isKept = isDraining || areCallsWaiting || sender.unsentBytes() > LIMITS.repliesUnsentBytesMax;
      if (stream.isPaused() && !isKept) stream.resume();
    };
    const sender = createFrameSender({
      // Replies are bounded by what is read, not here: one that is lost would leave its caller in doubt.
      queueBytesMax: Number.POSITIVE_INFINITY,
      onTaken() {
        resume();
        noteIdle();
      },
    });
    streams.set(stream, sender);
    sender.attach((batch, onTaken) => {
      telemetry.count('holdfast_rpc_frames_total', { kind: 'replies' });
      stream.write({ version: RPC_VERSION, ticket: handler.ticket(), ...batch }, onTaken);
    });
    // The caller's first ticket.
    sender.sendEmpty();

    stream.on('data', (frame: CallFrame) => {
      let calls: ShardCall[];
      try {
        calls = readCalls(frame);
      } catch (error) {
        log.error({ node: caller, err: error }, 'call-frame-unreadable');
        stream.emit('error', { code: status.INVALID_ARGUMENT, details: 'the frame cannot be read' });
        return;
      }
      telemetry.count('holdfast_rpc_received_frames_total', { kind: 'calls' });
      if (calls.length === 0) sender.sendEmpty();
      const allStarted = begin(calls, frame, (index, reply) => {
        sender.send(frame.numbers[index] ?? 0, reply);
        if (sender.unsentBytes() > LIMITS.repliesUnsentBytesMax) stream.pause();
        noteIdle();
      });
      if (allStarted === undefined) return;
      areCallsWaiting = true;
      stream.pause();
      void allStarted.then(() => {
        areCallsWaiting = false;
        resume();
      });
    });
    const end = () => {
      streams.delete(stream);
      sender.close();
      noteIdle();
    };
    stream.on('cancelled', end);
    stream.on('end', () => {
      end();
      stream.end();
    });
  }

  return {
    serve,
    async drain() {
      isDraining = true;
      for (const stream of streams.keys()) stream.pause();
      await new Promise<void>((resolve) => {
        onIdle = resolve;
        noteIdle();
      });
    },
    close() {
      isDraining = true;
      for (const stream of streams.keys()) endStream(stream);
    },
  };
}

function endStream(stream: CallStream): void {
  stream.emit('error', { code: status.UNAVAILABLE, details: 'the node ends' });
}

/** Empty for what other nodes and workers ask. */
function pathOf({ kind, envelope: { origin, account }, body }: ShardCall): SharePath {
  if (kind === 'execute') return commandPathOf(origin, body);
  return kind === 'query' && typeof account === 'string' ? [account] : [];
}

function readCalls(frame: CallFrame): ShardCall[] {
  if (frame.version !== RPC_VERSION) throw new Error(`a frame of version ${frame.version}`);
  if (frame.numbers.length !== frame.payloads.length) throw new Error('not as many numbers as payloads');
  return frame.payloads.map((payload) => {
    const call = unpackPlain(payload) as ShardCall;
    const { shard } = call.envelope ?? {};
    const { monotonicMs, wallMs } = call.ticket ?? {};
    if (![shard, monotonicMs, wallMs].every((number) => typeof number === 'number')) {
      throw new Error('not a call');
    }
    return call;
  });
}
