// Headers that a presigned URL carries in its query, where SDKs put them (x-amz-acl, x-amz-meta-...): they mean the same
// there, so none may be passed over. Checksums are the exception: SDKs put that of an empty body there while presigning,
// and S3 does not judge the upload by it.
import type { OperationRequest, QueryParameters } from './operation.ts';

const PREFIX = 'x-amz-';
const NOT_HEADERS = new Set([
  'x-amz-algorithm',
  'x-amz-content-sha256',
  'x-amz-credential',
  'x-amz-date',
  'x-amz-expires',
  'x-amz-security-token',
  'x-amz-signature',
  'x-amz-signedheaders',
  'x-amz-user-agent',
]);
const IGNORED = /^x-amz-(?:checksum-|sdk-checksum-algorithm$|trailer$|decoded-content-length$)/;

/** The request's headers with those of its presigned query; the same object where there are none. */
export function hoistedHeaders(
  headers: OperationRequest['headers'],
  query: QueryParameters,
): OperationRequest['headers'] {
  if (!query.has('X-Amz-Signature') && !query.has('Signature')) return headers;
  const merged: Record<string, string> = Object.assign(Object.create(null), headers);
  for (const [parameter, value] of query) {
    const name = parameter.toLowerCase();
    if (!name.startsWith(PREFIX) || NOT_HEADERS.has(name) || IGNORED.test(name)) continue;
    // A header that was sent as such is the signed one.
    merged[name] ??= Buffer.from(value, 'utf8').toString('latin1');
  }
  return merged;
}
