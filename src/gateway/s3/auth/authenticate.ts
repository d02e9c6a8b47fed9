// Who sent a request: finds the one form of authentication that it uses, checks signature, time and account. Serves S3
// and every other door that is signed by SigV4, by service name. What the caller may do is identity/authorize.ts.
import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto';
import { bytesToText } from '../../../lib/uri.ts';
import { AppError } from '../../../model/errors.ts';
import { LIMITS } from '../../../model/limits.ts';
import type { ClockPort } from '../../../ports/clock.ts';
import { invalidArgument } from '../arguments.ts';
import type { Caller } from '../operation.ts';
import { canonicalRequest, type SignedParts, stringToSign } from './canonical-request.ts';
import type { Identities, Identity } from './identities.ts';
import type { SignatureClaim } from './signature-claim.ts';
import { readHeaderClaim, refuseSigV2 } from './sigv4-header.ts';
import { hasQueryClaim, readQueryClaim } from './sigv4-query.ts';

export interface AuthenticationRequest extends SignedParts {
  /** What the host may be called instead of what Host says; asked for only when the signature does not fit. */
  otherHosts(): readonly string[];
}

/** What the chunks of a body go on signing from (AWS "Calculating the seed signature"). */
export interface Seed {
  readonly signingKey: KeyObject;
  readonly signature: string;
  readonly timestamp: string;
  readonly scopeText: string;
}

export interface Authentication {
  readonly caller: Caller;
  /** Absent for anonymous callers. */
  readonly seed?: Seed;
}

const ANONYMOUS: Authentication = { caller: { kind: 'anonymous' } };

/** Throws the AppError that AWS gives for what is wrong with the request's authentication. */
export async function authenticate(
  deps: { identities: Identities; clock: ClockPort; service: string },
  request: AuthenticationRequest,
): Promise<Authentication> {
  const claim = readClaim(request, deps.service);
  if (claim === undefined) return ANONYMOUS;
  requireTime(claim, deps.clock.wallMs());
  requireSignedHeaders(request, claim);
  const { values } = request.headers;
  if (values['x-amz-security-token'] !== undefined || hasQueryToken(request)) {
    throw new AppError('InvalidToken');
  }
  const identity = await deps.identities.find(claim.accessKey);
  if (identity === undefined) {
    throw new AppError('InvalidAccessKeyId', { fields: { AWSAccessKeyId: claim.accessKey } });
  }
  requireSignature(request, claim, identity);
  // Told only to who knows the secret.
  if (identity.account.state === 'suspended') throw new AppError('AccountProblem');
  const { accessKey, authType, signature, timestamp, scope } = claim;
  return {
    caller: { kind: 'account', account: identity.account, accessKey, signatureVersion: 'SigV4', authType },
    seed: { signingKey: identity.signingKey(scope), signature, timestamp, scopeText: scope.text },
  };
}

function readClaim(request: AuthenticationRequest, service: string): SignatureClaim | undefined {
  const { parameters } = request.query;
  const { authorization } = request.headers.values;
  const isPresigned = hasQueryClaim(parameters);
  const isPresignedV2 = parameters.has('AWSAccessKeyId') || parameters.has('Signature');
  if (authorization !== undefined && (isPresigned || isPresignedV2)) {
    const message =
      'Only one auth mechanism allowed; only the X-Amz-Algorithm query parameter, Signature query string parameter or the Authorization header should be specified';
    throw invalidArgument({ name: 'Authorization', value: authorization, message });
  }
  if (authorization !== undefined) return readHeaderClaim(request.headers.values, service);
  if (isPresigned) return readQueryClaim(parameters, service);
  if (isPresignedV2) throw refuseSigV2();
  return undefined;
}

function hasQueryToken(request: AuthenticationRequest): boolean {
  return request.query.parameters.has('X-Amz-Security-Token');
}

/** s3-behaviour 12 and AWS: a signature is good for 15 minutes either way, a presigned URL until it expires. */
function requireTime(claim: SignatureClaim, nowMs: number): void {
  const ServerTime = new Date(nowMs).toISOString();
  const aheadMs = claim.timeMs - nowMs;
  if (claim.expiresSeconds === undefined) {
    if (Math.abs(aheadMs) <= LIMITS.clockSkewMaxMs) return;
    throw new AppError('RequestTimeTooSkewed', {
      fields: {
        RequestTime: claim.timestamp,
        ServerTime,
        MaxAllowedSkewMilliseconds: LIMITS.clockSkewMaxMs,
      },
    });
  }
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

/** The host and everything that is of the vendor's must be signed. */
function requireSignedHeaders(request: AuthenticationRequest, claim: SignatureClaim): void {
  const unsigned = claim.signedHeaders.includes('host') ? [] : ['host'];
  for (const name of request.headers.sentNames) {
    const isVendors = name.startsWith('x-amz-') || name.startsWith('x-std-');
    if (isVendors && !claim.signedHeaders.includes(name)) unsigned.push(name);
  }
  if (unsigned.length === 0) return;
  throw new AppError('AccessDenied', {
    message: 'There were headers present in the request which were not signed',
    fields: { HeadersNotSigned: unsigned.join(', ') },
  });
}

function requireSignature(request: AuthenticationRequest, claim: SignatureClaim, identity: Identity): void {
  const key = identity.signingKey(claim.scope);
  const isSignedFor = (canonical: string) => {
    const expected = createHmac('sha256', key).update(stringToSign(canonical, claim)).digest('hex');
    return isSameText(expected, claim.signature);
  };
  const canonical = canonicalRequest(request, claim.signedHeaders, undefined);
  if (isSignedFor(canonical)) return;
  for (const host of request.otherHosts()) {
    if (isSignedFor(canonicalRequest(request, claim.signedHeaders, host))) return;
  }
  const toSign = stringToSign(canonical, claim);
  throw new AppError('SignatureDoesNotMatch', {
    fields: {
      AWSAccessKeyId: claim.accessKey,
      StringToSign: toSign,
      SignatureProvided: claim.signature,
      StringToSignBytes: spacedHex(toSign),
      CanonicalRequest: bytesToText(canonical) ?? canonical,
      CanonicalRequestBytes: spacedHex(canonical),
    },
  });
}

/** In time that does not depend on where they differ. */
export function isSameText(expected: string, given: string): boolean {
  const [a, b] = [Buffer.from(expected, 'latin1'), Buffer.from(given, 'latin1')];
  return a.length === b.length && timingSafeEqual(a, b);
}

function spacedHex(text: string): string {
  return Buffer.from(text, 'latin1')
    .toString('hex')
    .replace(/..(?!$)/g, '$& ');
}
