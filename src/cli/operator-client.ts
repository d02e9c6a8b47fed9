// The command line tool's side of the operator API: one signed JSON request at a time. What it cannot do ends in a
// Refusal, whose message is what the person gets to read.
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { Refusal } from '../lib/refusal.ts';
import { type Credentials, signRequest } from './sign-request.ts';

const TIMEOUT_MS = 30_000;

export interface OperatorClient {
  /** `path` below /holdfast-admin/v1, its segments encoded. Resolves with the JSON of the answer, {} for none. */
  call(method: string, path: string, body?: object): Promise<unknown>;
}

export interface ClientOptions {
  /** As `https://127.0.0.1:9000`. */
  endpoint: string;
  credentials: Credentials;
  /** PEM of a certificate to trust beside the usual ones: the self-signed one of the data folder. */
  certificate?: string | undefined;
  nowMs(): number;
}

interface Answer {
  status: number;
  text: string;
}

export function createOperatorClient(options: ClientOptions): OperatorClient {
  const base = parseEndpoint(options.endpoint);
  return {
    async call(method, path, body) {
      const text = body === undefined ? '' : JSON.stringify(body);
      const answer = await send({ base, method, path: `/holdfast-admin/v1${path}`, text, options });
      return readAnswer(answer, base);
    },
  };
}

function parseEndpoint(endpoint: string): URL {
  const isUrl = URL.canParse(endpoint) && /^https?:$/.test(new URL(endpoint).protocol);
  if (!isUrl) throw new Refusal(`--endpoint must be a URL like http://127.0.0.1:9000, not "${endpoint}"`);
  return new URL(endpoint);
}

function send(message: {
  base: URL;
  method: string;
  path: string;
  text: string;
  options: ClientOptions;
}): Promise<Answer> {
  const { base, method, path, text, options } = message;
  const headers = signRequest({
    method,
    host: base.host,
    path,
    body: text,
    credentials: options.credentials,
    nowMs: options.nowMs(),
  });
  return new Promise((resolve, reject) => {
    const isTls = base.protocol === 'https:';
    const request = (isTls ? requestHttps : requestHttp)({
      host: base.hostname.replace(/^\[|\]$/g, ''),
      port: base.port === '' ? (isTls ? 443 : 80) : base.port,
      method,
      path,
      headers: { ...headers, 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) },
      timeout: TIMEOUT_MS,
      ...(options.certificate === undefined ? {} : { ca: options.certificate }),
    });
    request.on('timeout', () => request.destroy(new Error(`no answer within ${TIMEOUT_MS / 1000} s`)));
    request.on('error', (error) => reject(unreachable(base, error)));
    request.on('response', (response) => {
      const pieces: Buffer[] = [];
      response.on('data', (piece: Buffer) => pieces.push(piece));
      response.on('error', (error) => reject(unreachable(base, error)));
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, text: Buffer.concat(pieces).toString() }),
      );
    });
    request.end(text);
  });
}

function unreachable(base: URL, error: NodeJS.ErrnoException): Refusal {
  const hint = error.code === 'ECONNREFUSED' ? '; is the server running?' : '';
  return new Refusal(`cannot reach the server at ${base.origin}: ${error.message || error.code}${hint}`);
}

function readAnswer({ status, text }: Answer, base: URL): unknown {
  let json: { error?: { code: string; message: string } };
  try {
    json = text === '' ? {} : JSON.parse(text);
  } catch {
    throw new Refusal(`${base.origin} answered ${status}, but not as a Holdfast server does`);
  }
  if (status >= 400) throw new Refusal(`${json.error?.message ?? 'refused'} (${json.error?.code ?? status})`);
  return json;
}
