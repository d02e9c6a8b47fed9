// Requests to one storage node: connections that are kept, a bound on how many are under way and on how many wait, one
// time limit for each, and the proof that the answer comes from a member of the cluster.
import { buildConnector, Pool } from 'undici';
import { createByteGate } from '../../lib/byte-gate.ts';
import { EMPTY_BYTES } from '../../lib/bytes.ts';
import { freeMemory } from '../../lib/free-memory.ts';
import { hostOf } from '../../lib/host-port.ts';
import { AppError } from '../../model/errors.ts';
import { LIMITS } from '../../model/limits.ts';
import type { ClockPort } from '../../ports/clock.ts';
import {
  isSameProof,
  type PeerCertificates,
  type PeerCredentials,
  type Prover,
  refuseSecretBeyondLoopback,
  tlsOptions,
} from './peer-proof.ts';
import { HEADER, isRefusalCode, parseChecksum, parseWhole, type RefusalCode } from './wire.ts';

export interface NodeRequest {
  method: 'PUT' | 'GET' | 'HEAD' | 'DELETE' | 'POST';
  path: string;
  body?: Uint8Array;
  /** Headers, as wire.ts writes them. */
  checksum?: string;
  map?: string;
  fence?: string;
  signal?: AbortSignal;
  timeoutMs?: number;
  /** More ends the connection. */
  answerBytesMax: number;
}

export interface NodeAnswer {
  status: number;
  error: RefusalCode | undefined;
  /** As announced: of HEAD without the bytes. */
  sizeBytes: number;
  bytes: Uint8Array;
  checksum: number | undefined;
  receivedAtMs: number | undefined;
  /** Of the node's placement map; 0: it did not say. */
  mapVersion: number;
}

interface AnswerHead extends Omit<NodeAnswer, 'bytes'> {
  proof: string;
  /** As they came, for the proof. */
  texts: { checksum: string; map: string; error: string };
}

type Headers = Record<string, string | string[] | undefined>;

export interface NodeConnectionOptions {
  clusterId: string;
  credentials: PeerCredentials;
  prover: Prover | undefined;
  connector: buildConnector.connector;
  clock: Pick<ClockPort, 'wallMs'>;
  onMapVersion?: (version: number) => void;
}

/** Of all nodes: with the certificates of the moment at which a connection is made. */
export function createConnector(credentials: PeerCredentials): buildConnector.connector {
  const connectBy = (certificates?: PeerCertificates) =>
    buildConnector({
      timeout: LIMITS.chunkConnectMaxMs,
      // One that is resumed asks for no certificate.
      maxCachedSessions: 0,
      ...(certificates && tlsOptions(certificates)),
    });
  if (credentials.kind === 'secret') return connectBy();
  let connect = connectBy(credentials);
  credentials.follow?.((now) => {
    connect = connectBy(now);
  });
  return (options, callback) => connect(options, callback);
}

export class NodeConnection {
  readonly address: string;
  readonly #options: NodeConnectionOptions;
  readonly #pool: Pool;
  readonly #gate = createByteGate(LIMITS.chunkConnectionsPerNode);
  #waitingCount = 0;

  constructor(address: string, options: NodeConnectionOptions) {
    const { credentials } = options;
    refuseSecretBeyondLoopback(hostOf(address), credentials);
    this.address = address;
    this.#options = options;
    this.#pool = new Pool(`${credentials.kind === 'tls' ? 'https' : 'http'}://${address}`, {
      connections: LIMITS.chunkConnectionsPerNode,
      pipelining: 1,
      keepAliveTimeout: LIMITS.chunkIdleMaxMs,
      keepAliveMaxTimeout: LIMITS.chunkIdleMaxMs,
      maxHeaderSize: LIMITS.peerHeaderBytesMax,
      // One limit for the whole request is below.
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: options.connector,
    });
  }

  /** Rejects with AppError: SlowDown when too many wait, ServiceUnavailable when there is no answer to believe. */
  async request(request: NodeRequest): Promise<NodeAnswer> {
    if (this.#waitingCount >= LIMITS.chunkRequestsWaitingMax) throw new AppError('SlowDown');
    this.#waitingCount++;
    await this.#gate.enter(1);
    this.#waitingCount--;
    try {
      request.signal?.throwIfAborted();
      const answer = await this.#send(request);
      this.#options.onMapVersion?.(answer.mapVersion);
      return answer;
    } catch (error) {
      if (error instanceof AppError) throw error;
      throw new AppError('ServiceUnavailable', {
        cause: new Error(`node ${this.address}`, { cause: error }),
      });
    } finally {
      this.#gate.leave(1);
    }
  }

  close(): Promise<void> {
    return this.#pool.destroy();
  }

  #send(request: NodeRequest): Promise<NodeAnswer> {
    const { method, path, body, signal, timeoutMs = LIMITS.chunkRequestMaxMs } = request;
    const headers = this.#headersOf(request);
    return new Promise((resolve, reject) => {
      let abort: ((reason: Error) => void) | undefined;
      let head: AnswerHead | undefined;
      let bytes: Uint8Array = EMPTY_BYTES;
      let atBytes = 0;
      let ended: Error | undefined;
      const end = (reason: Error) => {
        ended ??= reason;
        if (abort !== undefined) return abort(reason);
        // Nothing has been sent, and nothing will be.
        settle();
        reject(reason);
      };
      const onAbort = () => end(new Error('no longer wanted'));
      signal?.addEventListener('abort', onAbort);
      const timer = setTimeout(() => end(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs);
      const settle = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', onAbort);
      };
      this.#pool.dispatch(
        { method, path, headers, body: body ?? null },
        {
          onRequestStart(controller) {
            abort = (reason) => controller.abort(reason);
            if (ended !== undefined) abort(ended);
          },
          onResponseStart: (controller, status, received) => {
            head = readHead(status, received);
            const bodyBytes = method === 'HEAD' ? 0 : head.sizeBytes;
            if (bodyBytes > request.answerBytesMax) controller.abort(new Error('the answer is too long'));
            else if (bodyBytes > 0) bytes = Buffer.allocUnsafeSlow(bodyBytes);
          },
          onResponseData(controller, piece) {
            if (atBytes + piece.length > bytes.length)
              return controller.abort(new Error('the answer is too long'));
            bytes.set(piece, atBytes);
            atBytes += piece.length;
            // The parser still looks at the piece's length in this turn.
            queueMicrotask(() => freeMemory(piece));
          },
          onResponseEnd: () => {
            settle();
            const problem = this.#problemOf(head, headers[HEADER.proof] ?? '');
            if (problem !== undefined) reject(new Error(problem));
            else if (head !== undefined && atBytes === bytes.length) resolve(answerOf(head, bytes));
            else reject(new Error('the answer ended early'));
          },
          onResponseError(_controller, error) {
            settle();
            reject(ended ?? error);
          },
        },
      );
    });
  }

  #headersOf({
    method,
    path,
    body,
    checksum = '',
    map = '',
    fence = '',
  }: NodeRequest): Record<string, string> {
    const { clusterId, prover, clock } = this.#options;
    const headers: Record<string, string> = { [HEADER.cluster]: clusterId };
    if (checksum !== '') headers[HEADER.checksum] = checksum;
    if (map !== '') headers[HEADER.map] = map;
    if (fence !== '') headers[HEADER.fence] = fence;
    if (prover === undefined) return headers;
    const timeMs = String(clock.wallMs());
    const sizeBytes = body?.length ?? 0;
    headers[HEADER.timeMs] = timeMs;
    headers[HEADER.proof] = prover.request({
      ...{ clusterId, address: this.address, method, path, sizeBytes, checksum, map, fence, timeMs },
    });
    return headers;
  }

  /** Why an answer is not to be believed. */
  #problemOf(head: AnswerHead | undefined, proof: string): string | undefined {
    const { prover } = this.#options;
    if (head === undefined) return 'there was no answer';
    if (head.status === 401 || head.status === 403) return 'refused as a stranger: is it of another cluster?';
    if (prover === undefined) return undefined;
    const { status, sizeBytes, texts } = head;
    return isSameProof(head.proof, prover.answer({ ...texts, proof, status, sizeBytes }))
      ? undefined
      : 'the answer is not proven by the secret of the cluster';
  }
}

function readHead(status: number, headers: Headers): AnswerHead {
  const text = (name: string) => {
    const value = headers[name];
    return typeof value === 'string' ? value : '';
  };
  const texts = { checksum: text(HEADER.checksum), map: text(HEADER.map), error: text(HEADER.error) };
  return {
    status,
    texts,
    error: isRefusalCode(texts.error) ? texts.error : undefined,
    sizeBytes: parseWhole(text('content-length')) ?? 0,
    checksum: parseChecksum(texts.checksum),
    receivedAtMs: parseWhole(text(HEADER.receivedAtMs)),
    mapVersion: parseWhole(texts.map) ?? 0,
    proof: text(HEADER.proof),
  };
}

function answerOf({ texts: _texts, proof: _proof, ...head }: AnswerHead, bytes: Uint8Array): NodeAnswer {
  return { ...head, bytes };
}
