// The authentication policy of services whose requests have small bodies and are signed by SigV4 under a service name of
// their own, so that no signature made for S3 opens them; SigV2 names no service.
import { hash } from 'node:crypto';
import { AppError } from '../../types/errors.ts';
import { authenticate, findSigner } from '../auth/authenticate.ts';
import type { Identity } from '../auth/identities.ts';
import { signerOf } from '../auth/principal.ts';
import { parseTarget } from '../s3/request/target.ts';
import type { Exchange } from './exchange.ts';
import { bodyBytesOf, readProved, readWhole } from './read-whole.ts';
import { requireSingleHeaders } from './request-headers.ts';
import type {
  AuthenticationPolicy,
  RequestRecord,
  ServiceDependencies,
  SignedCaller,
} from './service-route.ts';
import { takeBodyShare, takePlaces } from './shedding.ts';

export interface SigningPolicy {
  /** Name of the service in the credential's scope. */
  readonly service: string;
  /** Bytes of a request's body at most. */
  readonly bodyBytesMax: number;
  /** The same where the head does not say the body's digest. Default bodyBytesMax. */
  readonly unverifiedBytesMax?: number;
  /** From the head to the last byte of the body. */
  readonly bodyMaxMs: number;
  /** Whether requests are refused while there are too many (docs/limits.md). */
  readonly isShed: boolean;
  /** Of accounts that are known: whether this one may ask at all. Nothing is read of what others send. */
  mayAsk(identity: Pick<Identity, 'account' | 'principal'>): boolean;
}

export function signedCaller(policy: SigningPolicy): AuthenticationPolicy<SignedCaller> {
  return {
    name: `SigV4 for ${policy.service}`,
    authenticate: (deps, exchange, record) => takeSigned(policy, deps, { exchange, record }),
  };
}

interface Asked {
  exchange: Exchange;
  record: RequestRecord;
}

/**
 * The account that has signed, and the body. If the digest is signed, the body is read only when the signature fits.
 * Otherwise the head must name the access key of somebody who may ask at least, and bodies until then are bounded by
 * address.
 */
async function takeSigned(
  policy: SigningPolicy,
  deps: ServiceDependencies,
  asked: Asked,
): Promise<SignedCaller> {
  const { exchange } = asked;
  // A server with too much to do looks at nothing of it.
  if (policy.isShed) deps.requireRoom(exchange);
  requireSingleHeaders(exchange.headers);
  const sentDigest = exchange.headers.values['x-amz-content-sha256'];
  const reading = { ...policy, clock: deps.clock };
  if (sentDigest !== undefined) {
    const caller = await identify(policy, deps, { ...asked, payloadHash: sentDigest });
    const body = await (policy.isShed ? readProved(deps, exchange, policy) : readWhole(exchange, reading));
    if (sentDigest.toLowerCase() !== hash('sha256', body)) throw new AppError('XAmzContentSHA256Mismatch');
    // The client has taken its time for the body: its key or its rights may be gone since.
    const looking = deps.identities.requireStill(caller);
    const present = looking && (await exchange.inTime(looking));
    if (present !== undefined) requireMayAsk(policy, present);
    return { ...caller, ...present, body };
  }
  // Clients of other services than S3 sign the digest without sending it: the body must be read to know.
  await requireSigner(policy, deps, exchange);
  const isRead = Promise.withResolvers<void>();
  const bodyBytesMax = policy.unverifiedBytesMax ?? policy.bodyBytesMax;
  const units = bodyBytesOf(exchange, bodyBytesMax);
  takePlaces(deps.shedding, deps.unverifiedBodies, { exchange, units, until: isRead.promise });
  try {
    const body = await readWhole(exchange, { ...reading, bodyBytesMax });
    const caller = await identify(policy, deps, { ...asked, payloadHash: hash('sha256', body) });
    const held = { exchange, units: body.length, until: exchange.closed };
    if (policy.isShed) takeBodyShare(deps.shedding, deps.provedBodies, held);
    return { ...caller, body };
  } finally {
    isRead.resolve();
  }
}

/** The head must name the access key of somebody who may ask; whether its holder has sent it is seen later. */
async function requireSigner(
  policy: SigningPolicy,
  deps: ServiceDependencies,
  exchange: Exchange,
): Promise<void> {
  const signer = await exchange.inTime(findSigner(checking(policy, deps, exchange), headOf(deps, exchange)));
  requireMayAsk(policy, signer?.identity);
}

async function identify(
  policy: SigningPolicy,
  deps: ServiceDependencies,
  { exchange, record, payloadHash }: Asked & { payloadHash: string },
): Promise<Omit<SignedCaller, 'body'>> {
  const asked = { ...headOf(deps, exchange), payloadHash };
  const { caller } = await exchange.inTime(authenticate(checking(policy, deps, exchange), asked));
  if (caller.kind === 'anonymous') throw new AppError('AccessDenied');
  const { account, accessKey, principal } = caller;
  exchange.proveAccount(account.accountId, signerOf(caller));
  record.accountId = account.accountId;
  record.accessKey = accessKey;
  requireMayAsk(policy, caller);
  if (policy.isShed) deps.requireShare(exchange);
  return { account, principal, accessKey };
}

/** The one place where it is decided who may use the service. */
function requireMayAsk(
  { mayAsk }: SigningPolicy,
  identity: Pick<Identity, 'account' | 'principal'> | undefined,
): void {
  if (identity === undefined || !mayAsk(identity)) throw new AppError('AccessDenied');
}

function checking({ service }: SigningPolicy, deps: ServiceDependencies, { client }: Exchange) {
  const { identities, keyUses, failures, clock } = deps;
  const rules = { service, takesSigV2: false };
  return { identities, keyUses, failures, address: client.remoteAddress, clock, rules };
}

function headOf(deps: ServiceDependencies, exchange: Exchange) {
  return {
    method: exchange.request.method ?? '',
    target: parseTarget(exchange.uri, undefined),
    headers: exchange.headers,
    hosts: deps.hostsOf(exchange),
  };
}
