// What proto/metadata.proto says, as values for the gRPC library. wire.test.ts holds the two together. Nothing here knows what
// the payloads mean.
import {
  type ChannelOptions,
  logVerbosity,
  type MethodDefinition,
  type ServiceDefinition,
  setLogVerbosity,
} from '@grpc/grpc-js';
import { type MessageCodec, messageCodec } from '../../base/protobuf.ts';
import type { Ticket } from '../../ports/shard-calls.ts';
import { LIMITS } from '../../types/limits.ts';

// It would write to the terminal what it also throws; our own log has that, in its own form.
setLogVerbosity(logVerbosity.NONE);

/** Of the contract and of what its payloads mean: a node of another version is refused when it connects. */
export const RPC_VERSION = 7;

interface Versioned {
  version: number;
}
/** Parallel arrays: the number of a call, and its payload. */
export interface CallFrame extends Versioned {
  numbers: number[];
  payloads: Uint8Array[];
}
export interface ReplyFrame extends Versioned {
  ticket: Ticket | null;
  numbers: number[];
  payloads: Uint8Array[];
}
export interface MessageFrame extends Versioned {
  payloads: Uint8Array[];
}
export type Silence = Record<never, never>;

const TICKET = messageCodec<Ticket>({
  processId: { number: 1, type: 'string' },
  monotonicMs: { number: 2, type: 'double' },
  wallMs: { number: 3, type: 'double' },
});
const CALL_FRAME = messageCodec<CallFrame>({
  version: { number: 1, type: 'uint32' },
  numbers: { number: 2, type: 'uint32', isRepeated: true },
  payloads: { number: 3, type: 'bytes', isRepeated: true },
});
const REPLY_FRAME = messageCodec<ReplyFrame>({
  version: { number: 1, type: 'uint32' },
  ticket: { number: 2, type: TICKET },
  numbers: { number: 3, type: 'uint32', isRepeated: true },
  payloads: { number: 4, type: 'bytes', isRepeated: true },
});
const MESSAGE_FRAME = messageCodec<MessageFrame>({
  version: { number: 1, type: 'uint32' },
  payloads: { number: 2, type: 'bytes', isRepeated: true },
});
const SILENCE = messageCodec<Silence>({});

/** A call of which both sides send as they like. */
function method<Request extends object, Response extends object>(
  name: string,
  request: MessageCodec<Request>,
  response: MessageCodec<Response>,
): MethodDefinition<Request, Response> {
  return {
    path: `/holdfast.metadata.v1.Metadata/${name}`,
    requestStream: true,
    responseStream: true,
    requestSerialize: (message) => request.encode(message),
    requestDeserialize: (bytes) => request.decode(bytes),
    responseSerialize: (message) => response.encode(message),
    responseDeserialize: (bytes) => response.decode(bytes),
  };
}

export const CALLS = method('Calls', CALL_FRAME, REPLY_FRAME);
export const REPLICATE = method('Replicate', MESSAGE_FRAME, SILENCE);
export const METADATA_SERVICE = { calls: CALLS, replicate: REPLICATE } satisfies ServiceDefinition;

/** A frame of one message of the largest size, with what stands around it. */
const FRAME_BYTES_MAX = LIMITS.rpcMessageBytesMax + 64 * 1024;

/** Of both ends. */
export const CONNECTION_OPTIONS: ChannelOptions = {
  'grpc.max_send_message_length': FRAME_BYTES_MAX,
  'grpc.max_receive_message_length': FRAME_BYTES_MAX,
  'grpc.keepalive_time_ms': LIMITS.rpcKeepaliveMs,
  'grpc.keepalive_timeout_ms': LIMITS.rpcKeepaliveTimeoutMs,
  'grpc.enable_channelz': 0,
};

/** What may still be under way on a stream before its reader has taken anything: several frames. */
export const WINDOW_BYTES = 16 * LIMITS.rpcFrameBytes;
