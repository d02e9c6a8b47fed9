// Answer headers that the reader chooses: AWS's six response-* query parameters, of signed requests only, and any
// request header that begins with "response-" (service 4.2, extensions 2.7) but those of one closed list, which are
// passed over: what they say is the server's to say.
import { textToBytes } from '../../../base/text/uri.ts';
import { AppError } from '../../../types/errors.ts';
import type { QueryParameters } from '../operation.ts';
import { checkedHeaderValue } from './header-text.ts';
import type { AnswerHeaders } from './object-headers.ts';
import { canonicalHeaderName } from './vendor.ts';

const PREFIX = 'response-';

/** The query parameters of AWS, these and no others: what follows "response-", and the header on the wire. */
const PARAMETERS: readonly (readonly [target: string, wireName: string])[] = [
  ['content-type', 'Content-Type'],
  ['content-language', 'Content-Language'],
  ['expires', 'Expires'],
  ['cache-control', 'Cache-Control'],
  ['content-disposition', 'Content-Disposition'],
  ['content-encoding', 'Content-Encoding'],
];
export const RESPONSE_PARAMETERS: readonly string[] = PARAMETERS.map(([target]) => PREFIX + target);

/** Names that answers already have in this spelling: an override takes their place. */
const OWN_NAMES: ReadonlyMap<string, string> = new Map([
  ...PARAMETERS,
  ['etag', 'ETag'],
  ['last-modified', 'Last-Modified'],
  ['vary', 'Vary'],
]);

/** Never the client's to set, by what they would change. */
const PROTECTED = new Set([
  // Where the body ends, and which bytes it has.
  'content-length',
  'transfer-encoding',
  'trailer',
  'te',
  'content-range',
  'accept-ranges',
  // The connection, and what proxies do with the answer.
  'connection',
  'keep-alive',
  'upgrade',
  'via',
  'forwarded',
  'alt-svc',
  'alt-used',
  // Who answers, when, and where to go instead.
  'server',
  'date',
  'age',
  'status',
  'warning',
  'allow',
  'location',
  'refresh',
  'retry-after',
  // What a browser keeps, lets in or trusts of the whole host.
  'set-cookie',
  'set-cookie2',
  'clear-site-data',
  'www-authenticate',
  'authentication-info',
  'strict-transport-security',
  'public-key-pins',
  'public-key-pins-report-only',
  'expect-ct',
  'content-security-policy',
  'content-security-policy-report-only',
  'x-content-security-policy',
  'x-webkit-csp',
  'x-frame-options',
  'x-content-type-options',
  'x-xss-protection',
  'x-permitted-cross-domain-policies',
  'referrer-policy',
  'permissions-policy',
  'feature-policy',
  'document-policy',
  'origin-agent-cluster',
  'timing-allow-origin',
  'service-worker-allowed',
  'sourcemap',
  'x-sourcemap',
  'link',
  'nel',
  'report-to',
  'reporting-endpoints',
  // Orders to proxies in front: to send a file of theirs, or to keep the answer for all.
  'x-sendfile',
  'x-lighttpd-send-file',
  'x-reproxy-url',
  'surrogate-control',
  'surrogate-key',
  'edge-control',
  'cdn-cache-control',
]);
const PROTECTED_PREFIXES = [
  'x-amz-',
  'x-svc-',
  'access-control-',
  'cross-origin-',
  'proxy-',
  'sec-',
  'x-accel-',
  'x-forwarded-',
];

/**
 * Puts the chosen headers on the answer, but those of the closed list; beside what headers have chosen `Vary: *`, too: a shared cache
 * would give the answer to all who ask for the object. InvalidRequest for the parameters without a signature, InvalidArgument for CR,
 * LF.
 */
export function addResponseOverrides(
  answer: AnswerHeaders,
  request: { query: QueryParameters; headers: Readonly<Record<string, string>>; isSigned: boolean },
): void {
  let isChosen = false;
  for (const name in request.headers) {
    if (!name.startsWith(PREFIX)) continue;
    const target = name.slice(PREFIX.length);
    if (target === '' || isProtected(target)) continue;
    answer[OWN_NAMES.get(target) ?? target] = checkedHeaderValue(name, request.headers[name] ?? '');
    isChosen = true;
  }
  if (isChosen) answer.Vary = '*';
  if (request.query.size === 0) return;
  for (const [target, wireName] of PARAMETERS) {
    const name = PREFIX + target;
    const value = request.query.get(name);
    if (value === undefined) continue;
    if (!request.isSigned) {
      const message = 'Request specific response headers cannot be used for anonymous GET requests.';
      throw new AppError('InvalidRequest', { message });
    }
    // A header carries bytes: the text's UTF-8, one character each.
    answer[wireName] = textToBytes(checkedHeaderValue(name, value));
  }
}

function isProtected(target: string): boolean {
  const name = canonicalHeaderName(target);
  return PROTECTED.has(name) || PROTECTED_PREFIXES.some((prefix) => name.startsWith(prefix));
}
