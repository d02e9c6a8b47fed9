// SigV2 in the query (presigned URLs): reading what it claims, and until when it is good. Checking it is
// verify-sigv2.ts.
import { AppError } from '../../types/errors.ts';
import type { QueryParameters } from '../s3/operation.ts';
import type { SigV2Fields } from './sigv2-fields.ts';

const INTEGER = /^[+-]?\d{1,19}$/;
/** AWS takes seconds up to here. Milliseconds by mistake are far beyond. */
const EXPIRES_MAX_SECONDS = 2 ** 31 - 1;
/** The first moment that has a date; what is before has expired all the same. */
const EXPIRES_MIN_SECONDS = -62_135_596_800;

/** True when the query claims a signature of this version. */
export function hasSigV2Query(query: QueryParameters): boolean {
  return query.has('Signature') || query.has('AWSAccessKeyId');
}

/** Throws AccessDenied when a parameter is missing or Expires is malformed. */
export function readSigV2Query(query: QueryParameters): SigV2Fields {
  const accessKey = query.get('AWSAccessKeyId');
  const signature = query.get('Signature');
  const expires = query.get('Expires');
  if (accessKey === undefined || signature === undefined || expires === undefined) {
    throw new AppError('AccessDenied', {
      message: 'Query-string authentication requires the Signature, Expires and AWSAccessKeyId parameters',
    });
  }
  const seconds = Number(expires);
  if (!INTEGER.test(expires) || seconds > EXPIRES_MAX_SECONDS) {
    throw new AppError('AccessDenied', {
      message: `Invalid date (should be seconds since epoch): ${expires}`,
    });
  }
  return {
    version: 'SigV2',
    authType: 'QueryString',
    accessKey,
    signature,
    dateLine: expires,
    time: { expiresAtMs: Math.max(seconds, EXPIRES_MIN_SECONDS) * 1000 },
  };
}
