// Whether what a SigV4 claim says is so: its time and its signature. Which headers it covers is must-be-signed.ts.
import { createHmac } from 'node:crypto';
import { percentDecode, percentEncodePath, percentReencodePath } from '../../base/text/uri.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import type { AuthenticationRequest } from './authentication-request.ts';
import { canonicalRequests, type Spelling, stringToSign } from './canonical-request.ts';
import type { Identity } from './identities.ts';
import type { SigV4Claim } from './signature-claim.ts';
import { isSameText, signatureMismatch } from './signature-mismatch.ts';
import { requireNear } from './signing-dates.ts';

/** s3-behaviour 12 and AWS: a signature is good for 15 minutes either way, a presigned URL until it expires. */
export function requireSigV4Time(claim: SigV4Claim, nowMs: number): void {
  if (claim.expiresSeconds === undefined) {
    requireNear(claim, nowMs);
    return;
  }
  const ServerTime = new Date(nowMs).toISOString();
  const aheadMs = claim.timeMs - nowMs;
  const expiresAtMs = claim.timeMs + claim.expiresSeconds * 1000;
  if (aheadMs > LIMITS.clockSkewMaxMs) {
    const fields = { 'X-Amz-Expires': claim.expiresSeconds, RequestTime: claim.timestamp, ServerTime };
    throw new AppError('AccessDenied', { message: 'Request is not yet valid', fields });
  }
  if (nowMs > expiresAtMs) {
    const Expires = new Date(expiresAtMs).toISOString();
    const fields = { 'X-Amz-Expires': claim.expiresSeconds, Expires, ServerTime };
    throw new AppError('AccessDenied', { message: 'Request has expired', fields });
  }
}

/** Throws SignatureDoesNotMatch. */
export function requireSigV4Signature(
  parts: AuthenticationRequest,
  claim: SigV4Claim,
  identity: Identity,
): void {
  const key = identity.signingKey(claim.scope);
  const isSignedFor = (canonical: string) => {
    const expected = createHmac('sha256', key).update(stringToSign(canonical, claim)).digest('hex');
    return isSameText(expected, claim.signature);
  };
  const canonicalOf = canonicalRequests(parts, claim.signedHeaders);
  for (const spelling of spellings(parts)) if (isSignedFor(canonicalOf(spelling))) return;
  const canonical = canonicalOf();
  throw signatureMismatch(claim, {
    stringToSign: stringToSign(canonical, claim),
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
