// Opens one stream to one node: connects, shows membership, and makes sure that it is the node that was meant, of this
// cluster, before a byte of payload leaves (proto/metadata.proto). No second try: that is node-link.ts.
import {
  Client,
  type ClientDuplexStream,
  Metadata,
  type MethodDefinition,
  type StatusObject,
  status,
} from '@grpc/grpc-js';
import { hostOf } from '../../base/text/host-port.ts';
import type { ClockPort, RandomPort } from '../../ports/clock.ts';
import type { NodeId } from '../../ports/replication.ts';
import { LIMITS } from '../../types/limits.ts';
import { HEADER, type Member } from './admission.ts';
import type { RpcCredentials } from './credentials.ts';
import { CONNECTION_OPTIONS, RPC_VERSION, WINDOW_BYTES } from './wire.ts';

export interface StreamDeps {
  self: Member;
  credentials: RpcCredentials;
  clock: ClockPort;
  random: RandomPort;
}

export interface OpenStream<Out, In> {
  readonly stream: ClientDuplexStream<Out, In>;
  /** Resolves with the reason when the stream is no more. */
  readonly ended: Promise<string>;
  /** Closes the connection with it. */
  close(): void;
}

/** Why no stream could be opened. */
export class NotReached extends Error {
  override name = 'NotReached';
}

const CHANNEL_OPTIONS = {
  ...CONNECTION_OPTIONS,
  // One attempt is one connection: when to try again is the caller's to say, for all addresses alike.
  'grpc.use_local_subchannel_pool': 1,
  'grpc.enable_retries': 0,
  'grpc.service_config_disable_resolution': 1,
  // Members reach one another directly.
  'grpc.enable_http_proxy': 0,
  'grpc-node.flow_control_window': WINDOW_BYTES,
  // Sent instead of an address; certificates are checked against the address (credentials.ts).
  'grpc.ssl_target_name_override': 'holdfast',
};

/** Rejects with {@link NotReached}, or a Refusal when the address may not be spoken to. */
export async function openStream<Out, In>(
  target: { method: MethodDefinition<Out, In>; node: NodeId; address: string },
  deps: StreamDeps,
  signal: AbortSignal,
): Promise<OpenStream<Out, In>> {
  const { method, node, address } = target;
  const { credentials, random } = deps;
  credentials.checkHost(hostOf(address));
  let refusal: string | undefined;
  const onRefused = (reason: string) => {
    refusal = reason;
  };
  const channel = credentials.forChannel({ address, random, onRefused });
  const client = new Client(`dns:${address}`, channel, CHANNEL_OPTIONS);
  const ending = new AbortController();
  const late = new AbortController();
  const waiting = AbortSignal.any([signal, ending.signal]);
  void deps.clock.sleep(LIMITS.rpcConnectMaxMs, waiting).then(() => late.abort());
  try {
    const { stream, ended } = await attempt(client, method, headersFor(deps.self, node), late.signal);
    const close = () => {
      stream.cancel();
      client.close();
    };
    void ended.then(() => client.close());
    return { stream, ended, close };
  } catch (error) {
    client.close();
    throw refusal === undefined ? error : new NotReached(refusal);
  } finally {
    ending.abort();
  }
}

async function attempt<Out, In>(
  client: Client,
  method: MethodDefinition<Out, In>,
  headers: Metadata,
  signal: AbortSignal,
): Promise<Omit<OpenStream<Out, In>, 'close'>> {
  const stream = client.makeBidiStreamRequest<Out, In>(
    method.path,
    method.requestSerialize,
    method.responseDeserialize,
    headers,
  );
  const ended = new Promise<string>((resolve) => {
    stream.once('status', ({ code, details }) => resolve(`${status[code]}: ${details}`));
  });
  const answer = await answerTo(stream, signal);
  if (answer.kind === 'accepted') {
    if (answer.headers.get(HEADER.callee)[0] === headers.get(HEADER.callee)[0]) return { stream, ended };
    stream.cancel();
    throw new NotReached('who answers is not a member of the cluster, or another node');
  }
  const { code, details } = answer.status;
  throw new NotReached(signal.aborted ? 'no answer in time' : `${status[code]}: ${details}`);
}

function headersFor({ clusterId, nodeId }: Member, callee: NodeId): Metadata {
  const headers = new Metadata();
  headers.set(HEADER.version, String(RPC_VERSION));
  headers.set(HEADER.cluster, clusterId);
  headers.set(HEADER.caller, nodeId);
  headers.set(HEADER.callee, callee);
  return headers;
}

type Answer = { kind: 'accepted'; headers: Metadata } | { kind: 'ended'; status: StatusObject };

function answerTo<Out, In>(stream: ClientDuplexStream<Out, In>, signal: AbortSignal): Promise<Answer> {
  return new Promise((resolve) => {
    const cancel = () => stream.cancel();
    const end = (answer: Answer) => {
      signal.removeEventListener('abort', cancel);
      resolve(answer);
    };
    stream.once('metadata', (headers) => end({ kind: 'accepted', headers }));
    stream.once('status', (ended) => end({ kind: 'ended', status: ended }));
    // Each error comes as a status too, and that is where it is looked at.
    stream.on('error', () => undefined);
    if (signal.aborted) cancel();
    else signal.addEventListener('abort', cancel, { once: true });
  });
}
