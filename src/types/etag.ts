// ETags as AWS computes them: the MD5 of the bytes, or for a multipart object the MD5 of its parts' MD5s and "-N".
// Stored unquoted; the gateway puts quotes around them.
import { createHash } from 'node:crypto';

/** Unquoted: 32 hex digits, for multipart followed by "-" and the number of parts. */
export type ETag = string;

/** The ETag of an object made of parts (AWS "Checking object integrity": composite ETag). */
export function multipartETag(partMd5s: readonly string[]): ETag {
  const hash = createHash('md5');
  for (const md5 of partMd5s) hash.update(md5.slice(0, 32), 'hex');
  return `${hash.digest('hex')}-${partMd5s.length}`;
}

/** True when the ETag is the MD5 of the whole object. */
export function isPlainMd5(etag: ETag): boolean {
  return etag.length === 32;
}
