// What proto/metadata.proto says, as values for the gRPC library. The file itself is loaded, so that it is the contract
// and cannot go stale. Nothing here knows what the payloads mean.
import { fileURLToPath } from 'node:url';
import {
  type ChannelOptions,
  logVerbosity,
  type MethodDefinition,
  type ServiceDefinition,
  setLogVerbosity,
} from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { must } from '../../base/assert.ts';
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

const PROTO_FILE = fileURLToPath(new URL('../../../proto/metadata.proto', import.meta.url));
const loaded = loadSync(PROTO_FILE, { defaults: true });

export const METADATA_SERVICE = must(
  loaded['holdfast.metadata.v1.Metadata'],
  `${PROTO_FILE} has no service Metadata`,
) as ServiceDefinition;

function method<Request, Response>(name: string): MethodDefinition<Request, Response> {
  return must(METADATA_SERVICE[name], `${PROTO_FILE} has no call ${name}`) as MethodDefinition<
    Request,
    Response
  >;
}

export const CALLS = method<CallFrame, ReplyFrame>('Calls');
export const REPLICATE = method<MessageFrame, Silence>('Replicate');

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
