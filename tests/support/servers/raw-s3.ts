// Signed requests over plain HTTP at the level where faults happen: one request on one connection, bodies of any
// speed, connections that can be cut, a clock of the caller's. The payload is unsigned, unless the caller gives its
// x-amz-content-sha256.
// Not here: the operations and their XML (s3-client.ts), retries, TLS.
import { createHash, createHmac } from 'node:crypto';
import { type Agent, type ClientRequest, type IncomingMessage, request } from 'node:http';
import type { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';

/** Where and as whom; a TestServer fits. */
export interface Access {
  readonly endpoint: string;
  readonly accessKey: string;
  readonly secretKey: string;
  /** Wall clock of the client, ms; default this machine's. */
  readonly nowMs?: () => number;
}

export interface RawRequest {
  method: string;
  /** Percent-encoded, with its query: `/bucket/a%20key?uploads`. */
  path: string;
  headers?: Readonly<Record<string, string>>;
  body?: Buffer | Readable;
  agent?: Agent;
}

export interface RawAnswer {
  status: number;
  headers: IncomingMessage['headers'];
  body: Buffer;
}

/** `/bucket/key` as it stands in a request line and in a signature. */
export function pathOf(bucket: string, key: string): string {
  const encoded = encodeURIComponent(key).replaceAll('%2F', '/');
  return `/${bucket}/${encoded.replace(/[!'()*]/g, (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`)}`;
}

/** Of bytes, one character each, as header values are sent. */
const sha256 = (bytes: string) => createHash('sha256').update(bytes, 'latin1').digest('hex');
const hmac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest();

/** The headers with which a request is signed (SigV4), the wanted ones among the signed ones. */
export function signedHeaders(
  access: Access,
  wanted: Pick<RawRequest, 'method' | 'path' | 'headers'>,
): Record<string, string> {
  const url = new URL(access.endpoint);
  const [path = '/', query = ''] = wanted.path.split('?', 2);
  const time = new Date(access.nowMs?.() ?? Date.now()).toISOString().replace(/[-:]|\.\d+/g, '');
  const headers: Record<string, string> = {
    host: url.host,
    'x-amz-content-sha256': 'UNSIGNED-PAYLOAD',
    'x-amz-date': time,
    ...Object.fromEntries(
      Object.entries(wanted.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value]),
    ),
  };
  const names = Object.keys(headers).sort();
  const pairs = query === '' ? [] : query.split('&').map((pair) => (pair.includes('=') ? pair : `${pair}=`));
  const canonical = [
    wanted.method,
    path,
    pairs.sort().join('&'),
    ...names.map((name) => `${name}:${headers[name]?.trim()}`),
    '',
    names.join(';'),
    headers['x-amz-content-sha256'],
  ].join('\n');
  const scope = `${time.slice(0, 8)}/us-east-1/s3/aws4_request`;
  const key = scope.split('/').reduce<string | Buffer>(hmac, `AWS4${access.secretKey}`);
  const signature = hmac(key, ['AWS4-HMAC-SHA256', time, scope, sha256(canonical)].join('\n')).toString(
    'hex',
  );
  const authorization = `AWS4-HMAC-SHA256 Credential=${access.accessKey}/${scope}, SignedHeaders=${names.join(';')}, Signature=${signature}`;
  return { ...headers, authorization };
}

/** Sends a request with no other headers than these and Node's own, and reads the whole answer. */
export async function sendBare(
  { endpoint }: Pick<Access, 'endpoint'>,
  wanted: Omit<RawRequest, 'body'> & { body?: Buffer },
): Promise<RawAnswer> {
  const { hostname, port } = new URL(endpoint);
  const { method, path, headers } = wanted;
  const sent = request({ host: hostname, port, method, path, ...(headers && { headers }) });
  const answered = answerOf(sent);
  sent.end(wanted.body);
  const answer = await answered;
  return { status: answer.statusCode ?? 0, headers: answer.headers, body: await buffer(answer) };
}

/** Sends the head of a request; the caller writes its body and ends it, or destroys it. */
export function openRequest(access: Access, wanted: Omit<RawRequest, 'body'>): ClientRequest {
  const { hostname, port } = new URL(access.endpoint);
  return request({
    host: hostname.replace(/^\[|\]$/g, ''),
    port,
    method: wanted.method,
    path: wanted.path,
    headers: signedHeaders(access, wanted),
    ...(wanted.agent && { agent: wanted.agent }),
  });
}

/** Resolves with the head of the answer; rejects when the connection ends before it. */
export function answerOf(sent: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    sent.once('response', resolve);
    sent.once('error', reject);
    sent.once('close', () => reject(new Error('the connection closed without an answer')));
  });
}

/** Sends a whole request and reads the whole answer; rejects when the connection ends in between. */
export async function send(access: Access, wanted: RawRequest): Promise<RawAnswer> {
  const { body } = wanted;
  const sized = Buffer.isBuffer(body) ? { 'content-length': String(body.length) } : {};
  const sent = openRequest(access, { ...wanted, headers: { ...sized, ...wanted.headers } });
  const answered = answerOf(sent);
  if (body === undefined || Buffer.isBuffer(body)) {
    sent.end(body);
  } else {
    // Whatever breaks the body breaks the answer too, which is where it is told.
    pipeline(body, sent).catch(() => {});
  }
  const answer = await answered;
  return { status: answer.statusCode ?? 0, headers: answer.headers, body: await buffer(answer) };
}
