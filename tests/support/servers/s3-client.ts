// A signer of our own, written from AWS's documents and not from the server's code: header and query signatures, chunked
// bodies with and without signatures and trailers. Everything can be bent on its way, to send what no client would.
// Not here: sending (raw-s3.ts, raw-socket.ts).
import { createHash, createHmac } from 'node:crypto';

export interface Credentials {
  readonly accessKey: string;
  readonly secretKey: string;
}

export interface SigningOptions {
  method: string;
  /** As it goes over the wire, with its query. */
  uri: string;
  /** With `host`; names in lower case. */
  headers: Readonly<Record<string, string>>;
  credentials: Credentials;
  nowMs: number;
  region?: string;
  service?: string;
  /** The path goes into the signature as it is. */
  isPathVerbatim?: boolean;
  /** Default: all headers given. */
  signedNames?: readonly string[];
  /** Default: x-amz-content-sha256 of the headers, else UNSIGNED-PAYLOAD. */
  payloadHash?: string;
}

export interface Signed {
  /** With authorization. */
  headers: Record<string, string>;
  signature: string;
  scope: string;
  timestamp: string;
  signingKey: Buffer;
}

export const sha256Hex = (data: string | Uint8Array) => createHash('sha256').update(data).digest('hex');
const hmac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest();

export function timestampOf(nowMs: number): string {
  return new Date(nowMs).toISOString().replace(/[-:]|\.\d{3}/g, '');
}

function scopeOf(options: SigningOptions): { scope: string; signingKey: Buffer } {
  const { region = 'us-east-1', service = 's3', credentials, nowMs } = options;
  const scope = `${timestampOf(nowMs).slice(0, 8)}/${region}/${service}/aws4_request`;
  const signingKey = scope
    .split('/')
    .reduce<Buffer>((key, part) => hmac(key, part), Buffer.from(`AWS4${credentials.secretKey}`));
  return { scope, signingKey };
}

/** "Create a canonical request": the query's names and values decoded and encoded, then sorted. */
export function canonicalOf(
  options: SigningOptions,
  signedNames: readonly string[],
  payloadHash: string,
): string {
  const question = options.uri.indexOf('?');
  const path = question === -1 ? options.uri : options.uri.slice(0, question);
  const query = question === -1 ? '' : options.uri.slice(question + 1);
  const encode = (text: string) =>
    encodeURIComponent(text).replace(
      /[!'()*]/g,
      (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`,
    );
  const decodePath = (text: string) => {
    try {
      return decodeURIComponent(text);
    } catch {
      // What cannot be decoded is sent, and signed, as it stands.
      return text;
    }
  };
  const decode = (text: string) => decodePath(text.replaceAll('+', ' '));
  const pairs = query
    .split('&')
    .filter((pair) => pair !== '')
    .map((pair) => {
      const equals = pair.indexOf('=');
      const [name, value] = equals === -1 ? [pair, ''] : [pair.slice(0, equals), pair.slice(equals + 1)];
      return [encode(decode(name)), encode(decode(value))] as const;
    })
    // By name first: the joined text would put "a%20=" before "a=".
    .sort(([a, x], [b, y]) => (a === b ? Number(x > y) - Number(x < y) : Number(a > b) - Number(a < b)))
    .map((pair) => pair.join('='));
  const lines = signedNames.map(
    (name) => `${name}:${(options.headers[name] ?? '').replace(/^ +| +$/g, '').replace(/ +/g, ' ')}\n`,
  );
  const encodedPath = path
    .split('/')
    .map((segment) => encode(decodePath(segment)))
    .join('/');
  const canonicalPath = options.isPathVerbatim === true ? path : encodedPath;
  return [
    options.method,
    canonicalPath,
    pairs.join('&'),
    lines.join(''),
    signedNames.join(';'),
    payloadHash,
  ].join('\n');
}

/** SigV4 in the Authorization header; x-amz-date is added unless the headers are dated. */
export function signHeaders(options: SigningOptions): Signed {
  const timestamp = timestampOf(options.nowMs);
  const isDated = options.headers['x-amz-date'] !== undefined || options.headers.date !== undefined;
  const headers: Record<string, string> = {
    ...options.headers,
    ...(!isDated && { 'x-amz-date': timestamp }),
  };
  const signedNames = options.signedNames ?? Object.keys(headers).sort();
  const payloadHash = options.payloadHash ?? headers['x-amz-content-sha256'] ?? 'UNSIGNED-PAYLOAD';
  const canonical = canonicalOf({ ...options, headers }, signedNames, payloadHash);
  const { scope, signingKey } = scopeOf(options);
  const signature = hmac(
    signingKey,
    ['AWS4-HMAC-SHA256', timestamp, scope, sha256Hex(Buffer.from(canonical, 'latin1'))].join('\n'),
  ).toString('hex');
  headers.authorization = `AWS4-HMAC-SHA256 Credential=${options.credentials.accessKey}/${scope}, SignedHeaders=${signedNames.join(';')}, Signature=${signature}`;
  return { headers, signature, scope, timestamp, signingKey };
}

/** The URI of a presigned request; `headers` are those that the user of the URL must send. */
export function presign(options: SigningOptions & { expiresSeconds: number | string }): string {
  const timestamp = timestampOf(options.nowMs);
  const { scope, signingKey } = scopeOf(options);
  const signedNames = options.signedNames ?? Object.keys(options.headers).sort();
  const parameters = [
    ['X-Amz-Algorithm', 'AWS4-HMAC-SHA256'],
    ['X-Amz-Credential', `${options.credentials.accessKey}/${scope}`],
    ['X-Amz-Date', timestamp],
    ['X-Amz-Expires', String(options.expiresSeconds)],
    ['X-Amz-SignedHeaders', signedNames.join(';')],
  ].map(([name, value]) => `${name}=${encodeURIComponent(value ?? '')}`);
  const uri = `${options.uri}${options.uri.includes('?') ? '&' : '?'}${parameters.join('&')}`;
  const canonical = canonicalOf({ ...options, uri }, signedNames, options.payloadHash ?? 'UNSIGNED-PAYLOAD');
  const signature = hmac(
    signingKey,
    ['AWS4-HMAC-SHA256', timestamp, scope, sha256Hex(Buffer.from(canonical, 'latin1'))].join('\n'),
  ).toString('hex');
  return `${uri}&X-Amz-Signature=${signature}`;
}

export interface ChunkedOptions {
  body: Buffer;
  chunkBytes: number;
  /** Signs the chunks, from the request's own signature on. */
  seed?: Signed;
  trailer?: { name: string; value: string };
  /** Changes a chunk's signature before it is written. */
  bend?: (signature: string, index: number) => string;
}

/** The aws-chunked form of a body. */
export function chunkedBody(options: ChunkedOptions): Buffer {
  const { body, chunkBytes, seed, trailer, bend = (signature) => signature } = options;
  const parts: (Buffer | string)[] = [];
  let previous = seed?.signature ?? '';
  const sign = (kind: string, digests: readonly string[]) => {
    if (seed === undefined) return '';
    previous = hmac(
      seed.signingKey,
      [`AWS4-HMAC-SHA256-${kind}`, seed.timestamp, seed.scope, previous, ...digests].join('\n'),
    ).toString('hex');
    return previous;
  };
  const chunkCount = Math.ceil(body.length / chunkBytes);
  for (let index = 0; index <= chunkCount; index++) {
    const chunk = body.subarray(index * chunkBytes, (index + 1) * chunkBytes);
    const signature = sign('PAYLOAD', [sha256Hex(''), sha256Hex(chunk)]);
    const extension = seed === undefined ? '' : `;chunk-signature=${bend(signature, index)}`;
    parts.push(`${chunk.length.toString(16)}${extension}\r\n`);
    if (chunk.length > 0) parts.push(chunk, '\r\n');
  }
  if (trailer !== undefined) {
    parts.push(`${trailer.name}:${trailer.value}\r\n`);
    if (seed !== undefined) {
      const signature = sign('TRAILER', [sha256Hex(`${trailer.name}:${trailer.value}\n`)]);
      parts.push(`x-amz-trailer-signature:${bend(signature, chunkCount + 1)}\r\n`);
    }
  }
  parts.push('\r\n');
  return Buffer.concat(parts.map((part) => Buffer.from(part)));
}
