// Whether what a SigV4 claim says is so: its time and its signature. Which headers it covers is must-be-signed.ts.
import { createHmac } from 'node:crypto';
import { percentDecode, percentEncodePath, percentReencodePath } from '../../base/text/uri.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import type { AuthenticationRequest } from './authentication-request.ts';
import { canonicalRequests, type Spelling, stringToSign } from './canonical-request.ts';
import type { Identity } from './identities.ts';
import { isSameText, signatureMismatch } from './signature-mismatch.ts';
import { requireNear } from './signing-dates.ts';
import type { SigV4Fields } from './sigv4-fields.ts';

/** s3-behaviour 12 and AWS: a signature is good for 15 minutes either way, a presigned URL until it expires. */
export function requireSigV4Time(signedFields: SigV4Fields, nowMs: number): void {
  if (signedFields.expiresSeconds === undefined) {
    requireNear(signedFields, nowMs);
    return;
  }
  const ServerTime = new Date(nowMs).toISOString();
  const aheadMs = signedFields.timeMs - nowMs;
  const expiresAtMs = signedFields.timeMs + signedFields.expiresSeconds * 1000;
  if (aheadMs > LIMITS.clockSkewMaxMs) {
    const fields = {
      'X-Amz-Expires': signedFields.expiresSeconds,
      RequestTime: signedFields.timestamp,
      ServerTime,
    };
    throw new AppError('AccessDenied', { message: 'Request is not yet valid', fields });
  }
  if (nowMs > expiresAtMs) {
    const Expires = new Date(expiresAtMs).toISOString();
    const fields = { 'X-Amz-Expires': signedFields.expiresSeconds, Expires, ServerTime };
    throw new AppError('AccessDenied', { message: 'Request has expired', fields });
  }
}

/** Throws SignatureDoesNotMatch. */
export function requireSigV4Signature(
  parts: AuthenticationRequest,
  signedFields: SigV4Fields,
  identity: Identity,
): void {
  const key = identity.signingKey(signedFields.scope);
  const isSignedFor = (canonical: string) => {
    const expected = createHmac('sha256', key).update(stringToSign(canonical, signedFields)).digest('hex');
    return isSameText(expected, signedFields.signature);
  };
  const canonicalOf = canonicalRequests(parts, signedFields.signedHeaders);
  for (const spelling of spellings(parts)) if (isSignedFor(canonicalOf(spelling))) return;
  const canonical = canonicalOf();
  throw signatureMismatch(signedFields, {
    stringToSign: stringToSign(canonical, signedFields),
    canonicalRequest: canonical,
  });
}

/**
 * The ways in which clients write what they sign, the most usual first: the path in the one encoding that AWS documents,
 * as it was sent, and decoded, with "/" for "%2F" (aws4, aws4fetch, older SDKs); each under every host that may be meant.
 * The key is the same one in all of them.
 */
function* spellings({ target, hosts }: AuthenticationRequest): Iterable<Spelling> {
  const usual = percentReencodePath(target.path) ?? '';
  const decoded = percentDecode(target.path);
  const paths = new Set([usual, target.path, ...(decoded === undefined ? [] : [percentEncodePath(decoded)])]);
  let left: number = LIMITS.signatureSpellingsMax;
  for (const host of [...(hosts.mayBeSent ? [undefined] : []), ...hosts.others()]) {
    for (const path of paths) {
      if (left-- === 0) return;
      yield { path, ...(host !== undefined && { host }) };
    }
  }
}
