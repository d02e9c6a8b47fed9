// One HTTP request of the command line tool. A server that cannot be reached ends in a Refusal with its address.
import { type IncomingMessage, request as requestHttp, validateHeaderValue } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { Readable } from 'node:stream';
import { describeConnectionFailure } from '../base/connection-failure.ts';
import { Refusal } from '../base/refusal.ts';

/** Silence on the connection, either way. Answers that take long say white space meanwhile. */
const SILENCE_MAX_MS = 60_000;

export interface Server {
  /** As `https://127.0.0.1:9000`. */
  endpoint: string;
  /** PEM of a certificate to trust beside the usual ones: the self-signed one of the data folder. */
  certificate?: string | undefined;
}

export interface RequestToSend {
  method: string;
  /** With its query. */
  path: string;
  /** One character for each byte. */
  headers: Readonly<Record<string, string>>;
  body?: string | Readable;
}

export interface Answer {
  status: number;
  headers: IncomingMessage['headers'];
  /** The body as it comes; a broken connection is a Refusal. Either this or `text`, once. */
  pieces(): AsyncIterable<Buffer>;
  text(): Promise<string>;
}

/** Throws {@link Refusal} for what is no URL of a server. */
export function parseEndpoint(endpoint: string): URL {
  const isUrl = URL.canParse(endpoint) && /^https?:$/.test(new URL(endpoint).protocol);
  if (!isUrl) throw new Refusal(`the endpoint must be a URL like http://127.0.0.1:9000, not "${endpoint}"`);
  return new URL(endpoint);
}

/**
 * Resolves when the head of the answer is there, whatever its status. Throws {@link Refusal} for headers that cannot be
 * sent, and what breaks off the body.
 */
export async function sendRequest(server: Server, message: RequestToSend): Promise<Answer> {
  const base = parseEndpoint(server.endpoint);
  const isTls = base.protocol === 'https:';
  refuseUnsendable(message.headers);
  return new Promise((resolve, reject) => {
    const request = (isTls ? requestHttps : requestHttp)({
      host: base.hostname.replace(/^\[|\]$/g, ''),
      port: base.port === '' ? (isTls ? 443 : 80) : base.port,
      method: message.method,
      path: message.path,
      headers: message.headers,
      timeout: SILENCE_MAX_MS,
      ...(server.certificate === undefined ? {} : { ca: server.certificate }),
    });
    request.on('timeout', () => request.destroy(new Error(`no answer within ${SILENCE_MAX_MS / 1000} s`)));
    request.on('error', (error) => reject(unreachable(base, error)));
    request.on('response', (response) => {
      // Refused before all of the body was sent: nobody waits for its rest.
      response.on('end', () => request.writableEnded || request.destroy());
      resolve(answerOf(base, response));
    });
    const { body } = message;
    // Node would send the headers in the encoding of a string that is the body.
    if (body === undefined || typeof body === 'string') request.end(Buffer.from(body ?? ''));
    else body.on('error', (error) => request.destroy(error)).pipe(request);
  });
}

function refuseUnsendable(headers: RequestToSend['headers']): void {
  for (const [name, value] of Object.entries(headers)) {
    try {
      validateHeaderValue(name, value);
    } catch {
      throw new Refusal(`${JSON.stringify(value)} has characters that the header ${name} cannot have`);
    }
  }
}

function answerOf(base: URL, response: IncomingMessage): Answer {
  async function* pieces(): AsyncGenerator<Buffer> {
    try {
      yield* response;
    } catch (error) {
      throw unreachable(base, error as NodeJS.ErrnoException);
    }
  }
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    pieces,
    async text() {
      const parts: Buffer[] = [];
      for await (const piece of pieces()) parts.push(piece);
      return Buffer.concat(parts).toString();
    },
  };
}

function unreachable(base: URL, error: NodeJS.ErrnoException): Refusal {
  if (error instanceof Refusal) return error;
  return new Refusal(`cannot reach the server at ${base.origin}: ${describeConnectionFailure(base, error)}`);
}
