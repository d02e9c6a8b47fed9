// The headers that an object keeps: from the request that makes it, and onto the answers that show it. Values are the
// bytes that were sent, one character each, so any encoding a client chose comes back unchanged (AWS would answer
// non-ASCII ones in RFC 2047 form; docs/s3.md says so).
import { AppError } from '../../../types/errors.ts';
import { LIMITS } from '../../../types/limits.ts';
import type { ObjectHeaders } from '../../../types/version.ts';

type Headers = Readonly<Record<string, string>>;
export type AnswerHeaders = Record<string, string | number | undefined>;

const METADATA_PREFIX = 'x-amz-meta-';
/** AWS's type of an object without one. */
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
  const stored: ObjectHeaders = { userMetadata: parseUserMetadata(headers) ?? Object.create(null) };
  const contentEncoding = storedEncoding(headers['content-encoding']);
  if (contentEncoding !== undefined) stored.contentEncoding = contentEncoding;
  if (headers['content-type']) stored.contentType = headers['content-type'];
  if (headers['content-disposition']) stored.contentDisposition = headers['content-disposition'];
  if (headers['content-language']) stored.contentLanguage = headers['content-language'];
  if (headers['cache-control']) stored.cacheControl = headers['cache-control'];
  if (headers.expires) stored.expires = headers.expires;
  return stored;
}

/** Without "aws-chunked", which is of the transfer, not of the object; absent when nothing is left (s3-behaviour 35). */
function storedEncoding(header: string | undefined): string | undefined {
  if (!header) return undefined;
  if (!header.toLowerCase().includes('aws-chunked')) return header;
  const codings = header.split(',').map((coding) => coding.trim());
  const stored = codings.filter((coding) => coding !== '' && coding.toLowerCase() !== 'aws-chunked');
  return stored.length === 0 ? undefined : stored.join(',');
}

/** Puts the kept headers on an answer. */
export function addObjectHeaders(answer: AnswerHeaders, stored: ObjectHeaders): void {
  answer['Content-Type'] = stored.contentType ?? CONTENT_TYPE_DEFAULT;
  if (stored.contentEncoding !== undefined) answer['Content-Encoding'] = stored.contentEncoding;
  if (stored.contentDisposition !== undefined) answer['Content-Disposition'] = stored.contentDisposition;
  if (stored.contentLanguage !== undefined) answer['Content-Language'] = stored.contentLanguage;
  if (stored.cacheControl !== undefined) answer['Cache-Control'] = stored.cacheControl;
  if (stored.expires !== undefined) answer.Expires = stored.expires;
  for (const key in stored.userMetadata) answer[METADATA_PREFIX + key] = stored.userMetadata[key];
}
