// Requests to one storage node, as wire.ts says them: their heads, with the proof that a member of the cluster asks, and
// the proof that the answer comes from one.

import { assert } from '../../base/assert.ts';
import { hostOf } from '../../base/text/host-port.ts';
import type { ClockPort } from '../../ports/clock.ts';
import { LIMITS } from '../../types/limits.ts';
import type { AnswerHead } from './answer-head.ts';
import type { Dial } from './dial.ts';
import type { PeerAnswer, PeerRequest } from './peer-connection.ts';
import { PeerPool } from './peer-pool.ts';
import { isSameProof, type PeerCredentials, type Prover, refuseSecretBeyondLoopback } from './peer-proof.ts';
import { HEADER, isRefusalCode, parseChecksum, parseWhole, type RefusalCode } from './wire.ts';

export interface NodeRequest {
  method: 'PUT' | 'GET' | 'HEAD' | 'DELETE' | 'POST';
  path: string;
  body?: Uint8Array;
  /** Headers, as wire.ts writes them. */
  checksum?: string;
  map?: string;
  fence?: string;
  part?: string;
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

export interface NodeConnectionOptions {
  clusterId: string;
  credentials: PeerCredentials;
  prover: Prover | undefined;
  dial: Dial;
  clock: ClockPort;
  onMapVersion?: (version: number) => void;
}

export class NodeConnection {
  readonly address: string;
  readonly #options: NodeConnectionOptions;
  readonly #pool: PeerPool;

  constructor(address: string, options: NodeConnectionOptions) {
    refuseSecretBeyondLoopback(hostOf(address), options.credentials);
    this.address = address;
    this.#options = options;
    this.#pool = new PeerPool(address, options);
  }

  /** Rejects with AppError: SlowDown when too many wait, ServiceUnavailable when there is no answer to believe. */
  async request(request: NodeRequest): Promise<NodeAnswer> {
    const { signal, timeoutMs = LIMITS.chunkRequestMaxMs } = request;
    const exchange = new NodeExchange(this.address, request, this.#options);
    const answer = answerOf(await this.#pool.request(exchange, { signal, timeoutMs }));
    this.#options.onMapVersion?.(answer.mapVersion);
    return answer;
  }

  /** Ends what is under way, and all connections. */
  async close(): Promise<void> {
    this.#pool.close();
  }
}

class NodeExchange implements PeerRequest {
  readonly body: Uint8Array | undefined;
  readonly isAnswerBare: boolean;
  readonly answerBytesMax: number;
  readonly #address: string;
  readonly #request: NodeRequest;
  readonly #options: NodeConnectionOptions;
  /** Of the attempt that is under way. */
  #proof = '';

  constructor(address: string, request: NodeRequest, options: NodeConnectionOptions) {
    assert(IS_PATH.test(request.path), 'a path is one word');
    this.body = request.body;
    this.isAnswerBare = request.method === 'HEAD';
    this.answerBytesMax = request.answerBytesMax;
    this.#address = address;
    this.#request = request;
    this.#options = options;
  }

  head(): string {
    const { method, path, body, checksum = '', map = '', fence = '', part = '' } = this.#request;
    const { clusterId, prover, clock } = this.#options;
    let head = `${method} ${path} HTTP/1.1\r\nhost: ${this.#address}\r\n${HEADER.cluster}: ${clusterId}\r\n`;
    if (body !== undefined) head += `content-length: ${body.length}\r\n`;
    if (checksum !== '') head += `${HEADER.checksum}: ${checksum}\r\n`;
    if (map !== '') head += `${HEADER.map}: ${map}\r\n`;
    if (fence !== '') head += `${HEADER.fence}: ${fence}\r\n`;
    if (part !== '') head += `${HEADER.part}: ${part}\r\n`;
    if (prover !== undefined) {
      const timeMs = String(clock.wallMs());
      const sizeBytes = body?.length ?? 0;
      this.#proof = prover.request({
        clusterId,
        address: this.#address,
        method,
        path,
        sizeBytes,
        checksum,
        map,
        fence,
        timeMs,
      });
      head += `${HEADER.timeMs}: ${timeMs}\r\n${HEADER.proof}: ${this.#proof}\r\n`;
    }
    return `${head}\r\n`;
  }

  problemOf({ status, sizeBytes = 0, headers }: AnswerHead): string | undefined {
    const { prover } = this.#options;
    if (status === 401 || status === 403) return 'refused as a stranger: is it of another cluster?';
    if (prover === undefined) return undefined;
    const text = (name: string) => headers.get(name) ?? '';
    const proof = prover.answer({
      proof: this.#proof,
      status,
      sizeBytes,
      checksum: text(HEADER.checksum),
      map: text(HEADER.map),
      error: text(HEADER.error),
    });
    return isSameProof(headers.get(HEADER.proof), proof)
      ? undefined
      : 'the answer is not proven by the secret of the cluster';
  }
}

const IS_PATH = /^\/[\w./-]*$/;

function answerOf({ head: { status, headers, sizeBytes = 0 }, bytes }: PeerAnswer): NodeAnswer {
  const error = headers.get(HEADER.error) ?? '';
  return {
    status,
    sizeBytes,
    bytes,
    error: isRefusalCode(error) ? error : undefined,
    checksum: parseChecksum(headers.get(HEADER.checksum)),
    receivedAtMs: parseWhole(headers.get(HEADER.receivedAtMs)),
    mapVersion: parseWhole(headers.get(HEADER.map)) ?? 0,
  };
}
