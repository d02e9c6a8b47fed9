// The canonical request and the string to sign of SigV4, exactly as S3 builds them: paths are not normalised, queries
// sorted by their encoded bytes, header values trimmed and their runs of blanks made one (AWS "Create a canonical
// request"). Texts hold one character (0-255) for each byte.
import { hash } from 'node:crypto';
import { trimBlanks } from '../../base/text/trim-blanks.ts';
import { percentEncode, percentReencodePath } from '../../base/text/uri.ts';
import type { RequestHeaders } from '../http/request-headers.ts';
import type { Query } from '../s3/request/query.ts';
import type { Target } from '../s3/request/target.ts';
import type { SigV4Fields } from './sigv4-fields.ts';

/** The parts of a request that a signature covers. */
export interface SignedParts {
  readonly method: string;
  readonly target: Target;
  readonly headers: RequestHeaders;
  /** x-amz-content-sha256, or what stands for it. */
  readonly payloadHash: string;
}

/** What may stand in a canonical request instead of what the request itself says. */
export interface Spelling {
  /** Of the Host header: proxies and public names change it on the way. */
  readonly host?: string;
  /** The path as the client wrote it, where that is not the one encoding that AWS documents. */
  readonly path?: string;
}

/** The canonical request in each spelling. What does not depend on the spelling is made once: heads may be long. */
export function canonicalRequests(
  parts: SignedParts,
  signedHeaders: readonly string[],
): (spelling?: Spelling) => string {
  const values = canonicalValues(parts.headers, signedHeaders);
  const query = canonicalQuery(parts.target.query);
  const usualPath = percentReencodePath(parts.target.path) ?? '';
  const hostAt = signedHeaders.indexOf('host');
  const linesOf = (names: readonly string[]) => {
    let lines = '';
    for (const name of names) lines += `${name}:${values.get(name) ?? ''}\n`;
    return lines;
  };
  const before = linesOf(signedHeaders.slice(0, Math.max(0, hostAt)));
  const behind = linesOf(signedHeaders.slice(hostAt + 1));
  const names = signedHeaders.join(';');
  return ({ host = values.get('host') ?? '', path = usualPath } = {}) => {
    const hostLine = hostAt === -1 ? '' : `host:${host}\n`;
    return `${parts.method}\n${path}\n${query}\n${before}${hostLine}${behind}\n${names}\n${parts.payloadHash}`;
  };
}

/** Without the signature itself, which only presigned requests have in the query. */
function canonicalQuery(query: Query): string {
  if (query.pairs.length === 0) return '';
  const encoded: [string, string][] = [];
  for (const [name, value] of query.pairs) {
    if (name !== 'X-Amz-Signature') encoded.push([percentEncode(name), percentEncode(value)]);
  }
  // Encoded texts are ASCII, so comparing them compares bytes.
  encoded.sort(([a, x], [b, y]) => (a < b ? -1 : a > b ? 1 : x < y ? -1 : x > y ? 1 : 0));
  return encoded.map(([name, value]) => `${name}=${value}`).join('&');
}

/** In one pass: of a head of many short names each may be a signed one. */
function canonicalValues(
  headers: RequestHeaders,
  signedHeaders: readonly string[],
): Map<string, string | undefined> {
  const values = new Map<string, string | undefined>();
  for (const name of signedHeaders) values.set(name, undefined);
  for (let at = 0; at < headers.sentNames.length; at++) {
    const name = headers.sentNames[at] as string;
    if (!values.has(name)) continue;
    const value = withSingleBlanks(headers.sentValues[at] as string);
    const earlier = values.get(name);
    values.set(name, earlier === undefined ? value : `${earlier},${value}`);
  }
  return values;
}

const BLANKS = /[ \t]+/g;
const BLANK = /[ \t]/;

/** Most values have no blank. */
function withSingleBlanks(value: string): string {
  return BLANK.test(value) ? trimBlanks(value.replace(BLANKS, ' ')) : value;
}

export function stringToSign(
  canonical: string,
  signedFields: Pick<SigV4Fields, 'timestamp' | 'scope'>,
): string {
  return `AWS4-HMAC-SHA256\n${signedFields.timestamp}\n${signedFields.scope.text}\n${hash('sha256', Buffer.from(canonical, 'latin1'))}`;
}
