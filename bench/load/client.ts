// The leanest honest S3 client: one keep-alive connection per worker, SigV4 on every request, answers read to the end.
import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';
import { Client, type Dispatcher } from 'undici';
import { createSigner, type Signer } from './sign.ts';
import type { Target } from './spec.ts';

export interface LoadRequest {
  method: string;
  /** Already percent-encoded. */
  path: string;
  /** Sorted, already encoded: as it goes on the wire. */
  query?: string;
  headers?: Record<string, string>;
  /** A stream needs its content-length among the headers. */
  body?: Buffer | Readable;
  /** Hex digest of the body when it is signed. */
  bodySha256?: string;
  /** Keep the answer's body (lists, uploads); else it is counted and dropped. */
  keepBody?: boolean;
  /** Sees each piece of the answer's body, which is only lent. */
  onPiece?(piece: Buffer): void;
}

export interface LoadResponse {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  bodyBytes: number;
  body?: Buffer;
}

export const UNSIGNED = 'UNSIGNED-PAYLOAD';
const EMPTY_SHA256 = createHash('sha256').digest('hex');

export class LoadClient {
  readonly #client: Client;
  readonly #signer: Signer;

  constructor(target: Target) {
    this.#client = new Client(target.endpoint, { bodyTimeout: 120_000, headersTimeout: 120_000 });
    this.#signer = createSigner(target);
  }

  /** Rejects on a network error; any status resolves. */
  send(request: LoadRequest): Promise<LoadResponse> {
    const headers = this.#signer.sign({
      method: request.method,
      path: request.path,
      query: request.query ?? '',
      headers: request.headers ?? {},
      payload: request.body === undefined ? EMPTY_SHA256 : (request.bodySha256 ?? UNSIGNED),
    });
    return new Promise((resolve, reject) => {
      const collector = new Collector({ request, resolve, reject });
      this.#client.dispatch(
        {
          method: request.method as Dispatcher.HttpMethod,
          path: request.query ? `${request.path}?${request.query}` : request.path,
          headers,
          body: request.body ?? null,
          // Else undici would end the connection after each HEAD.
          reset: false,
        },
        collector,
      );
    });
  }

  close(): Promise<void> {
    return this.#client.close();
  }
}

/** Sends, and throws with the answer's code unless it is a success. */
export async function succeed(client: LoadClient, request: LoadRequest): Promise<LoadResponse> {
  const response = await client.send(request);
  if (response.status >= 300) {
    const code = /<Code>([^<]*)/.exec(response.body?.toString() ?? '')?.[1] ?? '';
    throw new Error(`${request.method} ${request.path}: ${response.status} ${code}`);
  }
  return response;
}

interface CollectorOptions {
  request: LoadRequest;
  resolve(response: LoadResponse): void;
  reject(error: Error): void;
}

class Collector implements Dispatcher.DispatchHandler {
  #status = 0;
  #headers: LoadResponse['headers'] = {};
  #bodyBytes = 0;
  readonly #chunks: Buffer[] = [];
  readonly #options: CollectorOptions;

  constructor(options: CollectorOptions) {
    this.#options = options;
  }

  onRequestStart(): void {}

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: LoadResponse['headers']): void {
    this.#status = status;
    this.#headers = headers;
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    const { request } = this.#options;
    this.#bodyBytes += chunk.length;
    request.onPiece?.(chunk);
    // A refusal is kept too, so that its code can be told.
    if (request.keepBody || this.#status >= 300) this.#chunks.push(Buffer.from(chunk));
  }

  onResponseEnd(): void {
    const response: LoadResponse = {
      status: this.#status,
      headers: this.#headers,
      bodyBytes: this.#bodyBytes,
    };
    if (this.#chunks.length > 0) response.body = Buffer.concat(this.#chunks);
    this.#options.resolve(response);
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.#options.reject(error);
  }
}
