// With the shared secret both ends of a connection prove that they know it before the first byte of HTTP/2 (proto/metadata.proto),
// as certificates do in their handshake. What reads HTTP/2 handles all frames of a read in one turn: a read full of empty frames,
// of streams that are reset, or of headers held the thread for 0.3 s. Here nothing that a stranger sends is looked at.
import type { Http2Server } from 'node:http2';
import type { Socket } from 'node:net';
import { ChannelCredentials } from '@grpc/grpc-js';
import { toHex } from '../../base/bytes/bytes.ts';
import type { RandomPort } from '../../ports/clock.ts';
import { LIMITS } from '../../types/limits.ts';
import type { PeerPlaces } from '../tls/peer-door.ts';
import type { ClusterSecret } from './secret-proofs.ts';

/** First word of the caller, with its nonce, and then of the callee, with its challenge. */
const GREETING = 'holdfast rpc 1 ';
/** Of a challenge and of a nonce. */
const RANDOM_BYTES = 16;
const PROOF_DIGITS = 64;
/** What the callee says in the place of its own proof. */
const REFUSED = 'not a member'.padEnd(PROOF_DIGITS);
const NOT_A_MEMBER = 'this is for members of the cluster, who know its secret';
const NO_GREETING = 'who connects does not greet as members with the secret do: is it of an older version?';

export interface DoorDeps {
  secret: ClusterSecret;
  random: RandomPort;
}

/**
 * The next piece that the other end sends, undefined when there is none in time. Both ends are on one machine, and each waits
 * for what the other writes at once: it comes in one piece.
 */
function hear(socket: Socket): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const end = (piece?: Buffer) => {
      socket.setTimeout(0);
      socket.pause();
      socket.off('data', end).off('close', endSilent).off('timeout', cut);
      resolve(piece);
    };
    const endSilent = () => end();
    const cut = () => void socket.destroy();
    socket.on('data', end).on('close', endSilent).on('timeout', cut);
    socket.setTimeout(LIMITS.rpcConnectMaxMs);
    socket.resume();
  });
}

/** What the other end greets with, a nonce or a challenge; undefined when it speaks no such protocol. */
async function hearGreeting(socket: Socket): Promise<string | undefined> {
  const said = await hear(socket);
  // Whoever says more has not waited for the answer.
  if (said?.length !== GREETING.length + 2 * RANDOM_BYTES) return undefined;
  const text = said.toString('latin1');
  return text.startsWith(GREETING) ? text.slice(GREETING.length) : undefined;
}

function greet(socket: Socket, random: RandomPort): string {
  const own = toHex(random.bytes(RANDOM_BYTES));
  socket.write(GREETING + own);
  return own;
}

/** Lets none but those who know the secret through to `server`. */
export function guardConnections(
  server: Http2Server,
  deps: DoorDeps & {
    /** Of this node, as others know it. */
    address(): string;
    onRefused(refusal: { host: string; reason: string }): void;
    places: PeerPlaces;
  },
): void {
  const { secret, random, places } = deps;
  const enter = server.listeners('connection');

  async function admit(socket: Socket): Promise<void> {
    socket.on('error', () => undefined).setNoDelay();
    const nonce = await hearGreeting(socket);
    const challenge = nonce === undefined ? '' : greet(socket, random);
    const said = nonce === undefined ? undefined : await hear(socket);
    if (nonce === undefined || said?.length !== PROOF_DIGITS) {
      deps.onRefused({ host: socket.remoteAddress ?? '', reason: NO_GREETING });
      socket.destroy();
      return;
    }
    const fields = { address: deps.address(), challenge, nonce };
    if (!secret.verify('caller', fields, said.toString('latin1'))) {
      deps.onRefused({ host: socket.remoteAddress ?? '', reason: NOT_A_MEMBER });
      socket.end(REFUSED);
      socket.destroySoon();
      return;
    }
    socket.write(secret.prove('callee', fields));
    places.prove(socket);
    for (const listener of enter) listener.call(server, socket);
  }

  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    if (places.take(socket)) void admit(socket);
  });
}

/** Shows the callee the secret, and has it show its own. Resolves with what is wrong, if anything. */
async function showSecret(socket: Socket, { secret, random, address }: Channel & DoorDeps) {
  socket.on('error', () => undefined);
  const nonce = greet(socket, random);
  const challenge = await hearGreeting(socket);
  if (challenge === undefined) return 'UNAVAILABLE: who answers does not ask for the secret of the cluster';
  const fields = { address, challenge, nonce };
  socket.write(secret.prove('caller', fields));
  const answer = await hear(socket);
  if (answer === undefined) return 'UNAVAILABLE: the connection ended';
  const proof = answer.toString('latin1', 0, PROOF_DIGITS);
  if (proof === REFUSED) return `UNAUTHENTICATED: ${NOT_A_MEMBER}`;
  if (!secret.verify('callee', fields, proof)) return 'who answers is not a member of the cluster';
  if (answer.length > PROOF_DIGITS) socket.unshift(answer.subarray(PROOF_DIGITS));
  return undefined;
}

export interface Channel {
  /** `host:port` that is called. */
  address: string;
  random: RandomPort;
  /** Why a connection was not let through; the library tells it within a sentence of its own. */
  onRefused(reason: string): void;
}

/** Of the connections of one channel. */
export class SecretChannel extends ChannelCredentials {
  readonly #deps: Channel & DoorDeps;

  constructor(deps: Channel & DoorDeps) {
    super();
    this.#deps = deps;
  }

  override _isSecure(): boolean {
    return false;
  }

  override _equals(other: ChannelCredentials): boolean {
    return other === this;
  }

  override _createSecureConnector(
    ...given: Parameters<ChannelCredentials['_createSecureConnector']>
  ): ReturnType<ChannelCredentials['_createSecureConnector']> {
    const plain = ChannelCredentials.createInsecure()._createSecureConnector(...given);
    let opening: Socket | undefined;
    const connect = async (socket: Socket) => {
      opening = socket;
      const refusal = await showSecret(socket, this.#deps);
      opening = undefined;
      if (refusal === undefined) return { socket, secure: false };
      this.#deps.onRefused(refusal);
      throw new Error(refusal);
    };
    return { ...plain, connect, destroy: () => void opening?.destroy() };
  }
}
