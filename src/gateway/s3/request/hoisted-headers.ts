// Headers that a signed request carries in its query, where SDKs put them (x-amz-acl, x-amz-meta-...). They mean the same as in
// the head, so each of them counts. With SigV4, checksums in the query are ignored: SDKs put that of an empty body there when
// they presign, and S3 does not check the upload by it. With SigV2 they count: it signs a header and a parameter in the same
// way, so who has the URL could send a signed header as a parameter instead, and it would be ignored.
import { textToBytes } from '../../../base/text/uri.ts';
import { isSigV2Header } from '../../auth/sigv2-header.ts';
import type { OperationRequest, QueryParameters } from '../operation.ts';
import { checkedHeaderName, checkedHeaderValue } from './header-text.ts';

const PREFIX = 'x-amz-';
const CONTENT_SHA256 = 'x-amz-content-sha256';
const NOT_HEADERS = new Set([
  'x-amz-algorithm',
  'x-amz-credential',
  'x-amz-date',
  'x-amz-expires',
  'x-amz-security-token',
  'x-amz-signature',
  'x-amz-signedheaders',
  'x-amz-user-agent',
]);
const IGNORED = /^x-amz-(?:checksum-|sdk-checksum-algorithm$|trailer$|decoded-content-length$)/;

/**
 * The request's headers with those of its query; the same object where there are none. SigV2 signs them as headers in
 * both its forms (auth/sigv2-string.ts), so they are headers in both. InvalidArgument for what cannot be one.
 */
export function hoistedHeaders(
  headers: OperationRequest['headers'],
  query: QueryParameters,
): OperationRequest['headers'] {
  if (query.size === 0) return headers;
  const isV2 = query.has('Signature') || isSigV2Header(headers.authorization ?? '');
  if (!isV2 && !query.has('X-Amz-Signature')) return headers;
  const merged: Record<string, string> = Object.assign(Object.create(null), headers);
  for (const [parameter, value] of query) {
    const name = parameter.toLowerCase();
    if (!name.startsWith(PREFIX)) continue;
    // SigV2 signs each as a line: a value with a line break could stand for two headers.
    const text = checkedHeaderValue(checkedHeaderName(name), textToBytes(value));
    if (NOT_HEADERS.has(name) || (!isV2 && (name === CONTENT_SHA256 || IGNORED.test(name)))) continue;
    // A header that was sent as such is the signed one.
    merged[name] ??= text;
  }
  return merged;
}
