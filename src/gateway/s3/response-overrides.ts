// Answer headers that the reader chooses: AWS's six response-* query parameters, of signed requests only, and any
// request header that begins with "response-" (service.txt 4.2, extensions 2.7).
import { textToBytes } from '../../lib/uri.ts';
import { AppError } from '../../model/errors.ts';
import { checkedHeaderValue } from './header-text.ts';
import type { AnswerHeaders } from './object-headers.ts';
import type { QueryParameters } from './operation.ts';
import { isVendorHeader } from './vendor.ts';

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
  ['accept-ranges', 'Accept-Ranges'],
  ['content-range', 'Content-Range'],
]);

/** Framing, the connection, cookies and the service's own headers are never the client's to set. */
const PROTECTED = new Set([
  'content-length',
  'transfer-encoding',
  'connection',
  'set-cookie',
  'keep-alive',
  'upgrade',
  'trailer',
]);

/** Puts the chosen headers on the answer. InvalidRequest for the parameters without a signature, InvalidArgument for CR, LF. */
export function addResponseOverrides(
  answer: AnswerHeaders,
  request: { query: QueryParameters; headers: Readonly<Record<string, string>>; isSigned: boolean },
): void {
  for (const name in request.headers) {
    if (!name.startsWith(PREFIX)) continue;
    const target = name.slice(PREFIX.length);
    if (target === '' || isProtected(target)) continue;
    answer[OWN_NAMES.get(target) ?? target] = checkedHeaderValue(name, request.headers[name] ?? '');
  }
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
  return PROTECTED.has(target) || isVendorHeader(target) || target.startsWith('access-control-');
}
