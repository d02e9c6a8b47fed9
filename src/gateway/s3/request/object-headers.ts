// The headers that an object keeps: from the request that makes it, and onto the answers that show it. Values are the
// bytes that were sent, one character each, so any encoding a client chose comes back unchanged (AWS would answer
// non-ASCII ones in RFC 2047 form; docs/s3.md says so).
import { AppError } from '../../../types/errors.ts';
import { LIMITS } from '../../../types/limits.ts';
import type { ObjectHeaders } from '../../../types/version.ts';

type Headers = Readonly<Record<string, string>>;
export type AnswerHeaders = Record<string, string | number | undefined>;

const METADATA_PREFIX = 'x-amz-meta-';
/** What AWS says an object is when nobody told. */
const CONTENT_TYPE_DEFAULT = 'binary/octet-stream';

/** User metadata alone; undefined where the request brings none. MetadataTooLarge above 2 KB, names and values together. */
export function parseUserMetadata(headers: Headers): ObjectHeaders['userMetadata'] | undefined {
  // No prototype: metadata may be called "__proto__".
  const userMetadata: ObjectHeaders['userMetadata'] = Object.create(null);
  let userMetadataBytes = 0;
  let hasSome = false;
  for (const name in headers) {
    if (!name.startsWith(METADATA_PREFIX)) continue;
    const value = headers[name] ?? '';
    const key = name.slice(METADATA_PREFIX.length);
    userMetadata[key] = value;
    userMetadataBytes += key.length + value.length;
    hasSome = true;
  }
  if (userMetadataBytes > LIMITS.userMetadataBytesMax) {
    throw new AppError('MetadataTooLarge', {
      fields: { Size: userMetadataBytes, MaxSizeAllowed: LIMITS.userMetadataBytesMax },
    });
  }
  return hasSome ? userMetadata : undefined;
}

/** Reads the headers to keep. Errors as parseUserMetadata. */
export function parseObjectHeaders(headers: Headers): ObjectHeaders {
  const kept: ObjectHeaders = { userMetadata: parseUserMetadata(headers) ?? Object.create(null) };
  const contentEncoding = storedEncoding(headers['content-encoding']);
  if (contentEncoding !== undefined) kept.contentEncoding = contentEncoding;
  if (headers['content-type']) kept.contentType = headers['content-type'];
  if (headers['content-disposition']) kept.contentDisposition = headers['content-disposition'];
  if (headers['content-language']) kept.contentLanguage = headers['content-language'];
  if (headers['cache-control']) kept.cacheControl = headers['cache-control'];
  if (headers.expires) kept.expires = headers.expires;
  return kept;
}

/** Without "aws-chunked", which is of the transfer, not of the object; absent when nothing is left (s3-behaviour 35). */
function storedEncoding(header: string | undefined): string | undefined {
  if (!header) return undefined;
  if (!header.toLowerCase().includes('aws-chunked')) return header;
  const codings = header.split(',').map((coding) => coding.trim());
  const kept = codings.filter((coding) => coding !== '' && coding.toLowerCase() !== 'aws-chunked');
  return kept.length === 0 ? undefined : kept.join(',');
}

/** Puts the kept headers on an answer. */
export function addObjectHeaders(answer: AnswerHeaders, kept: ObjectHeaders): void {
  answer['Content-Type'] = kept.contentType ?? CONTENT_TYPE_DEFAULT;
  if (kept.contentEncoding !== undefined) answer['Content-Encoding'] = kept.contentEncoding;
  if (kept.contentDisposition !== undefined) answer['Content-Disposition'] = kept.contentDisposition;
  if (kept.contentLanguage !== undefined) answer['Content-Language'] = kept.contentLanguage;
  if (kept.cacheControl !== undefined) answer['Cache-Control'] = kept.cacheControl;
  if (kept.expires !== undefined) answer.Expires = kept.expires;
  for (const key in kept.userMetadata) answer[METADATA_PREFIX + key] = kept.userMetadata[key];
}
