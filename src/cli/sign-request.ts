// Signs a request of the command line tool: SigV4 in the Authorization header (AWS "Create a signed AWS API request").
// Only what the tool needs: no signed chunks.
import { createHash, createHmac } from 'node:crypto';
import { trimBlanks } from '../base/text/trim-blanks.ts';

export interface Credentials {
  accessKey: string;
  secretKey: string;
  /** Of temporary credentials. */
  sessionToken?: string | undefined;
}

export interface RequestToSign {
  method: string;
  /** With port, as the Host header has it. */
  host: string;
  /** Percent-encoded as RFC 3986 has it: see `encodeSegment`. */
  path: string;
  /** As it is sent: sorted, encoded, each name with its `=`. Absent: none. */
  query?: string;
  /** Sent besides, and signed: lower-case names, values as they travel, one character for each byte. */
  headers?: Readonly<Record<string, string>>;
  /** The body, or its SHA-256 in hex where it is not in memory. */
  body: string | { sha256: string };
  /** Default: the operator API's. */
  service?: 'holdfast' | 's3' | 'iam' | 'sts';
  credentials: Credentials;
  nowMs: number;
}

const REGION = 'us-east';

/** The headers to send, host among them. */
export function signRequest(request: RequestToSign): Record<string, string> {
  const time = new Date(request.nowMs).toISOString().replace(/[-:]|\.\d{3}/g, '');
  const { body, service = 'holdfast', query = '' } = request;
  const { sessionToken } = request.credentials;
  const scope = `${time.slice(0, 8)}/${REGION}/${service}/aws4_request`;
  const digest = typeof body === 'string' ? sha256(body) : body.sha256;
  const headers: Record<string, string> = {
    ...request.headers,
    ...(sessionToken !== undefined && { 'x-amz-security-token': sessionToken }),
    host: request.host,
    'x-amz-content-sha256': digest,
    'x-amz-date': time,
  };
  const names = Object.keys(headers).sort();
  const signedHeaders = names.join(';');
  const headerLines = names.map((name) => `${name}:${signedValue(headers[name] ?? '')}\n`);
  const canonical = [request.method, request.path, query, headerLines.join(''), signedHeaders, digest].join(
    '\n',
  );
  const toSign = ['AWS4-HMAC-SHA256', time, scope, sha256(Buffer.from(canonical, 'latin1'))].join('\n');
  const signature = hmac(signingKey(request.credentials.secretKey, scope), toSign).toString('hex');
  const credential = `${request.credentials.accessKey}/${scope}`;
  return {
    ...headers,
    authorization: `AWS4-HMAC-SHA256 Credential=${credential}, SignedHeaders=${signedHeaders}, Signature=${signature}`,
  };
}

/** A path segment in the only spelling that both ends canonicalise alike. */
export function encodeSegment(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** The blanks around a value are not signed, and each run of them within it is as one. */
function signedValue(value: string): string {
  return trimBlanks(value.replace(/[ \t]+/g, ' '));
}

function signingKey(secretKey: string, scope: string): Buffer {
  return scope.split('/').reduce<Buffer>(hmac, Buffer.from(`AWS4${secretKey}`));
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

function sha256(text: string | Buffer): string {
  return createHash('sha256').update(text).digest('hex');
}
