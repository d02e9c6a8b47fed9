// SigV4 in the query (presigned URLs): reading what it claims, and when it is good. Checking it is verify-sigv4.ts.
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import type { QueryParameters } from '../s3/operation.ts';
import { parseTimestamp } from './signing-dates.ts';
import { parseCredential, parseSignedHeaders, requireScopeDate, type SigV4Fields } from './sigv4-fields.ts';

const REQUIRED = [
  'X-Amz-Algorithm',
  'X-Amz-Credential',
  'X-Amz-Signature',
  'X-Amz-Date',
  'X-Amz-SignedHeaders',
] as const;
/** The only service whose links say themselves how long they are good; those of others are, as signed headers are, for 15 minutes. */
const WITH_EXPIRY = 's3';

/** True when the query claims a signature of this version. */
export function hasQueryFields(query: QueryParameters): boolean {
  return query.has('X-Amz-Algorithm') || query.has('X-Amz-Signature') || query.has('X-Amz-Credential');
}

/** Throws AuthorizationQueryParametersError; AccessDenied for an expiry out of range (s3-behaviour 12). */
export function readQueryFields(query: QueryParameters, service: string): SigV4Fields {
  const hasExpiry = service === WITH_EXPIRY;
  if (REQUIRED.some((name) => !query.has(name)) || (hasExpiry && !query.has('X-Amz-Expires'))) {
    throw refuse(
      'Query-string authentication version 4 requires the X-Amz-Algorithm, X-Amz-Credential, X-Amz-Signature, X-Amz-Date, X-Amz-SignedHeaders, and X-Amz-Expires parameters.',
    );
  }
  if (query.get('X-Amz-Algorithm') !== 'AWS4-HMAC-SHA256') {
    throw refuse('X-Amz-Algorithm only supports "AWS4-HMAC-SHA256".');
  }
  const { accessKey, scope } = parseCredential(query.get('X-Amz-Credential') ?? '', service, (problem) =>
    refuse(`Error parsing the X-Amz-Credential parameter; ${problem}`),
  );
  const timestamp = query.get('X-Amz-Date') ?? '';
  const timeMs = parseTimestamp(timestamp);
  if (timeMs === undefined) {
    throw refuse(`X-Amz-Date must be in the ISO8601 Long Format "yyyyMMdd'T'HHmmss'Z'".`);
  }
  requireScopeDate(scope, timestamp, refuse);
  return {
    version: 'SigV4',
    authType: 'QueryString',
    accessKey,
    scope,
    signedHeaders: parseSignedHeaders(query.get('X-Amz-SignedHeaders') ?? ''),
    signature: query.get('X-Amz-Signature') ?? '',
    timestamp,
    sentText: timestamp,
    timeMs,
    ...(hasExpiry && { expiresSeconds: parseExpiry(query.get('X-Amz-Expires') ?? '') }),
  };
}

function parseExpiry(text: string): number {
  if (!/^[+-]?\d{1,15}$/.test(text)) throw refuse('X-Amz-Expires should be a number');
  const seconds = Number(text);
  if (seconds >= 1 && seconds <= LIMITS.presignedExpiryMaxSeconds) return seconds;
  const message = `X-Amz-Expires must be between 1 and ${LIMITS.presignedExpiryMaxSeconds} seconds.`;
  throw new AppError('AccessDenied', { message });
}

function refuse(message: string): AppError {
  return new AppError('AuthorizationQueryParametersError', { message });
}
