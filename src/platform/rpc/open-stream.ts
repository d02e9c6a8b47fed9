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
import { toHex } from '../../base/bytes/bytes.ts';
import { hostOf } from '../../base/text/host-port.ts';
import type { ClockPort, RandomPort } from '../../ports/clock.ts';
import type { NodeId } from '../../ports/replication.ts';
import { LIMITS } from '../../types/limits.ts';
import { HEADER, type Member } from './admission.ts';
import type { RpcCredentials } from './credentials.ts';
import type { HandshakeFields } from './secret-proofs.ts';
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
  const host = hostOf(address);
  deps.credentials.checkHost(host);
  const client = new Client(`dns:${address}`, deps.credentials.forChannel(host), CHANNEL_OPTIONS);
  const ending = new AbortController();
  const late = new AbortController();
  const waiting = AbortSignal.any([signal, ending.signal]);
  void deps.clock.sleep(LIMITS.rpcConnectMaxMs, waiting).then(() => late.abort());
  try {
    const handshake = {
      path: method.path,
      address,
      clusterId: deps.self.clusterId,
      caller: deps.self.nodeId,
      callee: node,
      challenge: '',
      nonce: '',
    };
    const { stream, ended } = await attempt(client, method, handshake, deps, late.signal);
    const close = () => {
      stream.cancel();
      client.close();
    };
    void ended.then(() => client.close());
    return { stream, ended, close };
  } catch (error) {
    client.close();
    throw error;
  } finally {
    ending.abort();
  }
}

/** Answers a challenge once. */
async function attempt<Out, In>(
  client: Client,
  method: MethodDefinition<Out, In>,
  handshake: HandshakeFields,
  deps: StreamDeps,
  signal: AbortSignal,
): Promise<Omit<OpenStream<Out, In>, 'close'>> {
  const { secret } = deps.credentials;
  const stream = client.makeBidiStreamRequest<Out, In>(
    method.path,
    method.requestSerialize,
    method.responseDeserialize,
    headersFor(handshake, secret?.prove('caller', handshake)),
  );
  const ended = new Promise<string>((resolve) => {
    stream.once('status', ({ code, details }) => resolve(`${status[code]}: ${details}`));
  });
  const answer = await answerTo(stream, signal);
  if (answer.kind === 'accepted') {
    const isNode = answer.headers.get(HEADER.callee)[0] === handshake.callee;
    const proof = String(answer.headers.get(HEADER.proof)[0] ?? '');
    if (isNode && (secret === undefined || secret.verify('callee', handshake, proof)))
      return { stream, ended };
    stream.cancel();
    throw new NotReached('who answers is not a member of the cluster, or another node');
  }
  const challenge = answer.status.metadata.get(HEADER.challenge)[0];
  const mayAnswer = secret !== undefined && handshake.challenge === '' && typeof challenge === 'string';
  if (answer.status.code !== status.UNAUTHENTICATED || !mayAnswer) {
    const { code, details } = answer.status;
    throw new NotReached(signal.aborted ? 'no answer in time' : `${status[code]}: ${details}`);
  }
  const nonce = toHex(deps.random.bytes(16));
  return attempt(client, method, { ...handshake, challenge, nonce }, deps, signal);
}

function headersFor(handshake: HandshakeFields, proof: string | undefined): Metadata {
  const headers = new Metadata();
  headers.set(HEADER.version, String(RPC_VERSION));
  headers.set(HEADER.cluster, handshake.clusterId);
  headers.set(HEADER.caller, handshake.caller);
  headers.set(HEADER.callee, handshake.callee);
  if (handshake.challenge === '' || proof === undefined) return headers;
  headers.set(HEADER.challenge, handshake.challenge);
  headers.set(HEADER.nonce, handshake.nonce);
  headers.set(HEADER.proof, proof);
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
