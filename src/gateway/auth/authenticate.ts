// Who sent a request: finds the one form of authentication that it uses, checks time, signature and account. Serves S3
// and every other service whose requests are signed, by service name. What the caller may do is policy/authorize.ts.
import type { KeyObject } from 'node:crypto';
import type { ClockPort } from '../../ports/clock.ts';
import { AppError } from '../../types/errors.ts';
import type { Caller } from '../s3/caller.ts';
import { invalidArgument } from '../s3/request/arguments.ts';
import type { AuthenticationRequest } from './authentication-request.ts';
import type { Identities, Identity } from './identities.ts';
import type { KeyUses } from './key-uses.ts';
import { requireSignedHeaders } from './must-be-signed.ts';
import type { SignatureFailures } from './signature-failures.ts';
import { refuseSigV2, type SigV2Fields } from './sigv2-fields.ts';
import { isSigV2Header, readSigV2Header } from './sigv2-header.ts';
import { hasSigV2Query, readSigV2Query } from './sigv2-query.ts';
import type { SigV4Fields } from './sigv4-fields.ts';
import { readHeaderFields } from './sigv4-header.ts';
import { hasQueryFields, readQueryFields } from './sigv4-query.ts';
import { requireSigV2Signature, requireSigV2Time } from './verify-sigv2.ts';
import { requireSigV4Signature, requireSigV4Time } from './verify-sigv4.ts';

/** What the chunks of a body go on signing from (AWS "Calculating the seed signature"). */
export interface Seed {
  readonly signingKey: KeyObject;
  readonly signature: string;
  readonly timestamp: string;
  readonly scopeText: string;
}

export interface Authentication {
  readonly caller: Caller;
  /** Absent for anonymous callers, and with SigV2, by which no chunks are signed. */
  readonly seed?: Seed;
  /** When it was signed, ms since epoch, as the request says; absent for anonymous callers. */
  readonly signedAtMs?: number;
}

/** How a service takes signatures: the service in the scope of SigV4, and whether SigV2, which has no scope, will do. */
export interface SigningRules {
  readonly service: string;
  readonly takesSigV2: boolean;
}

const ANONYMOUS: Authentication = { caller: { kind: 'anonymous' } };
const SECURITY_TOKEN = 'x-amz-security-token';

type HeadOfRequest = Omit<AuthenticationRequest, 'payloadHash'>;

export interface AuthenticationDependencies {
  identities: Identities;
  /** Absent: uses of keys are not noted. */
  keyUses?: KeyUses;
  /** Absent: nobody who guesses has to wait. */
  failures?: SignatureFailures;
  /** The client's. */
  address?: string;
  clock: ClockPort;
  rules: SigningRules;
}

/** Throws the AppError that AWS gives for what is wrong with the request's authentication. */
export async function authenticate(
  deps: AuthenticationDependencies,
  request: AuthenticationRequest,
): Promise<Authentication> {
  const signer = await findSigner(deps, request);
  if (signer === undefined) return ANONYMOUS;
  const { signedFields, identity } = signer;
  const { accessKey, authType, version } = signedFields;
  judgeSignature(deps, accessKey, () => {
    if (signedFields.version === 'SigV2') requireSigV2Signature(request, signedFields, identity);
    else requireSigV4Signature(request, signedFields, identity);
  });
  const signature = { signatureVersion: version, authType };
  const caller = admitCaller(deps, identity, { signature, use: useOf(signedFields) });
  if (signedFields.version === 'SigV2') {
    const { time } = signedFields;
    return 'timeMs' in time ? { caller, signedAtMs: time.timeMs } : { caller };
  }
  const { timestamp, timeMs: signedAtMs, scope } = signedFields;
  return {
    caller,
    signedAtMs,
    seed: {
      signingKey: identity.signingKey(scope),
      signature: signedFields.signature,
      timestamp,
      scopeText: scope.text,
    },
  };
}

type SignedCaller = Extract<Caller, { kind: 'account' }>;

/** The caller whose signature is good, and the note that its key was used. Throws AccountProblem. */
export function admitCaller(
  { keyUses }: Pick<AuthenticationDependencies, 'keyUses'>,
  { account, principal, accessKey }: Identity,
  {
    signature,
    use,
  }: {
    signature: Pick<SignedCaller, 'signatureVersion' | 'authType'>;
    use: Parameters<KeyUses['note']>[1];
  },
): SignedCaller {
  const { session } = principal;
  if (session === undefined) keyUses?.note(accessKey, use);
  else if (session.kind === 'role') keyUses?.noteRole(session, use);
  // Only callers with the right secret get this error.
  if (account.state === 'suspended') throw new AppError('AccountProblem');
  // The key's text is that of the identity: the one that was sent would keep the header that it stands in.
  return { kind: 'account', account, principal, accessKey, ...signature };
}

/**
 * Who the head says has signed the request: everything but the signature itself is checked, so that nothing of a body has
 * to be read. Undefined: nobody. Throws as `authenticate`.
 */
export async function findSigner(
  deps: AuthenticationDependencies,
  request: HeadOfRequest,
): Promise<{ signedFields: SigV4Fields | SigV2Fields; identity: Identity } | undefined> {
  const signedFields = readSignedFields(request, deps.rules);
  if (signedFields === undefined) return undefined;
  const nowMs = deps.clock.wallMs();
  if (signedFields.version === 'SigV2') requireSigV2Time(signedFields, nowMs);
  else requireSigV4Time(signedFields, nowMs);
  requireSignedHeaders(request, signedFields);
  const { accessKey } = signedFields;
  const identity = await identityOf(deps, { accessKey, token: securityToken(request), nowMs });
  return { signedFields, identity };
}

/** Whose the access key is. Throws InvalidAccessKeyId, and for a token InvalidToken and ExpiredToken. */
export async function identityOf(
  { identities }: Pick<AuthenticationDependencies, 'identities'>,
  claim: { accessKey: string; token: string | undefined; nowMs: number },
): Promise<Identity> {
  const { accessKey, token, nowMs } = claim;
  const identity =
    token === undefined
      ? await identities.find(accessKey)
      : await identities.findSession(accessKey, token, nowMs);
  if (identity !== undefined) return identity;
  throw new AppError('InvalidAccessKeyId', { fields: { AWSAccessKeyId: accessKey } });
}

/** The one form in which the request is signed; undefined: in none. */
function readSignedFields(
  request: HeadOfRequest,
  rules: SigningRules,
): SigV4Fields | SigV2Fields | undefined {
  const { parameters } = request.target.query;
  const { values } = request.headers;
  const { authorization } = values;
  const isPresigned = hasQueryFields(parameters);
  const isPresignedV2 = hasSigV2Query(parameters);
  if ([authorization !== undefined, isPresigned, isPresignedV2].filter(Boolean).length > 1) {
    const message =
      'Only one auth mechanism allowed; only the X-Amz-Algorithm query parameter, Signature query string parameter or the Authorization header should be specified';
    throw invalidArgument({ name: 'Authorization', value: authorization ?? '', message });
  }
  if (isPresigned) return readQueryFields(parameters, rules.service);
  const isV2 = isPresignedV2 || isSigV2Header(authorization ?? '');
  if (isV2 && !rules.takesSigV2) throw refuseSigV2();
  if (isPresignedV2) return readSigV2Query(parameters);
  if (authorization === undefined) return undefined;
  return isV2 ? readSigV2Header(values) : readHeaderFields(values, rules.service);
}

/** Runs `verify`. Throws AuthenticationLockout where too many signatures were wrong, and what `verify` throws. */
export function judgeSignature(
  { failures, address }: Pick<AuthenticationDependencies, 'failures' | 'address'>,
  accessKey: string,
  verify: () => void,
): void {
  if (failures === undefined || address === undefined) verify();
  else failures.judge({ accessKey, address }, verify);
}

/** Version 2 names no region. */
export const SIGV2_REGION = 'us-east';

/** Version 2 signs for S3 alone. */
function useOf(fields: SigV4Fields | SigV2Fields): { region: string; service: string } {
  if (fields.version === 'SigV2') return { region: SIGV2_REGION, service: 's3' };
  const { region, service } = fields.scope;
  return { region, service };
}

/** The one token of temporary credentials, in a header or in the query. Throws InvalidToken for two different ones. */
function securityToken({ headers, target }: HeadOfRequest): string | undefined {
  const { parameters } = target.query;
  const sent = [
    headers.values[SECURITY_TOKEN],
    parameters.get('X-Amz-Security-Token'),
    // SDKs write it in lower case beside a SigV2 signature.
    parameters.get(SECURITY_TOKEN),
  ].filter((token) => token !== undefined);
  if (new Set(sent).size > 1) throw new AppError('InvalidToken');
  return sent[0];
}
