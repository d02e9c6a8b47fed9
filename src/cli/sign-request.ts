// Signs a request of the command line tool: SigV4 in the Authorization header (AWS "Create a signed AWS API request").
// Only what the operator API needs: no query, no session tokens, whole bodies.
import { createHash, createHmac } from 'node:crypto';

export interface Credentials {
  accessKey: string;
  secretKey: string;
}

export interface RequestToSign {
  method: string;
  /** With port, as the Host header has it. */
  host: string;
  /** Percent-encoded as RFC 3986 has it: see `encodeSegment`. */
  path: string;
  body: string;
  credentials: Credentials;
  nowMs: number;
}

const SERVICE = 'holdfast';
const REGION = 'us-east';

/** The headers to send, host among them. */
export function signRequest(request: RequestToSign): Record<string, string> {
  const time = new Date(request.nowMs).toISOString().replace(/[-:]|\.\d{3}/g, '');
  const scope = `${time.slice(0, 8)}/${REGION}/${SERVICE}/aws4_request`;
  const headers = { host: request.host, 'x-amz-content-sha256': sha256(request.body), 'x-amz-date': time };
  const signedHeaders = Object.keys(headers).join(';');
  const headerLines = Object.entries(headers).map(([name, value]) => `${name}:${value}\n`);
  const canonical = [
    request.method,
    request.path,
    '',
    headerLines.join(''),
    signedHeaders,
    headers['x-amz-content-sha256'],
  ].join('\n');
  const toSign = ['AWS4-HMAC-SHA256', time, scope, sha256(canonical)].join('\n');
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

function signingKey(secretKey: string, scope: string): Buffer {
  return scope.split('/').reduce<Buffer>(hmac, Buffer.from(`AWS4${secretKey}`));
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
