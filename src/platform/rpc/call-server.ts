// Serves calls of gateways and of other nodes: streams that rpc-server.ts has admitted. Each call goes to the handler as
// it comes, its reply leaves when it is there, the replies of a turn in one frame, which says where this node's clock
// stands (R48). Bounded, with a share for each account whose commands these are: what is beyond is answered busy, and a
// caller that takes no replies is not read from.
import { type ServerDuplexStream, status } from '@grpc/grpc-js';
import { assert } from '../../base/assert.ts';
import { createFairShare, type SharePath } from '../../base/async/fair-share.ts';
import { packPlain, unpackPlain } from '../../base/record-codec.ts';
import type { NodeId } from '../../ports/replication.ts';
import type { ShardCall, ShardCallHandler, ShardReply } from '../../ports/shard-calls.ts';
import type { Logger, TelemetryPort } from '../../ports/telemetry.ts';
import { LIMITS } from '../../types/limits.ts';
import { commandPathOf } from '../../types/tenant.ts';
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

  /** Never rejects. */
  async function answer(call: ShardCall, sizeBytes: number): Promise<Uint8Array> {
    const account = call.kind === 'execute' ? commandPathOf(call.envelope.origin, call.body) : [];
    if (!hasRoom(account, sizeBytes)) return packPlain({ kind: 'busy' } satisfies ShardReply);
    counts.take(account, 1);
    sizes.take(account, sizeBytes);
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

  function serve(stream: CallStream, caller: NodeId): void {
    if (isDraining) {
      endStream(stream);
      return;
    }
    const sender = createFrameSender({
      // Replies are bounded by what is read, not here: one that is lost would leave its caller in doubt.
      queueBytesMax: Number.POSITIVE_INFINITY,
      onTaken() {
        if (stream.isPaused() && !isDraining && sender.unsentBytes() <= LIMITS.repliesUnsentBytesMax) {
          stream.resume();
        }
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
      for (const [index, call] of calls.entries()) {
        void answer(call, frame.payloads[index]?.length ?? 0).then((reply) => {
          sender.send(frame.numbers[index] ?? 0, reply);
          if (sender.unsentBytes() > LIMITS.repliesUnsentBytesMax) stream.pause();
          noteIdle();
        });
      }
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
