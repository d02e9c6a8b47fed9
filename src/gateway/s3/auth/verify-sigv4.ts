// Whether what a SigV4 claim says is so: its time, the headers that it covers, its signature.
import { createHmac } from 'node:crypto';
import { AppError } from '../../../model/errors.ts';
import { LIMITS } from '../../../model/limits.ts';
import { isVendorHeader } from '../vendor.ts';
import type { AuthenticationRequest } from './authentication-request.ts';
import { canonicalRequest, type SignedParts, type Spelling, stringToSign } from './canonical-request.ts';
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

/** The host, Content-MD5 and what is of the vendor's must be signed; the digest of the body is so by itself. */
export function requireSignedHeaders({ headers }: SignedParts, claim: SigV4Claim): void {
  const unsigned = claim.signedHeaders.includes('host') ? [] : ['host'];
  for (const name of headers.sentNames) {
    if (mustBeSigned(name) && !claim.signedHeaders.includes(name)) unsigned.push(name);
  }
  if (unsigned.length === 0) return;
  throw new AppError('AccessDenied', {
    message: 'There were headers present in the request which were not signed',
    fields: { HeadersNotSigned: unsigned.join(', ') },
  });
}

function mustBeSigned(name: string): boolean {
  if (name === 'x-amz-content-sha256') return false;
  return isVendorHeader(name) || name === 'content-md5';
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
  const canonical = canonicalRequest(parts, claim.signedHeaders);
  if (parts.hosts.mayBeSent && isSignedFor(canonical)) return;
  for (const spelling of otherSpellings(parts)) {
    if (isSignedFor(canonicalRequest(parts, claim.signedHeaders, spelling))) return;
  }
  throw signatureMismatch(claim, {
    stringToSign: stringToSign(canonical, claim),
    canonicalRequest: canonical,
  });
}

/** AWS signs the path as it is sent, whatever is encoded in it and how; and Host is not always what the client wrote. */
function* otherSpellings({ target, hosts }: AuthenticationRequest): Iterable<Spelling> {
  const { path } = target;
  if (hosts.mayBeSent) yield { path };
  for (const host of hosts.others()) {
    yield { host };
    yield { host, path };
  }
}
