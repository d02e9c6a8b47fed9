// Whether a caller may take an action of IAM or STS: the one place that decides it, by the same engine as S3 (evaluate.ts).
import { assert } from '../../base/assert.ts';
import { ownValue } from '../../base/own-value.ts';
import { describeDecision } from '../../policy/authorize.ts';
import { compileStoredPolicy } from '../../policy/documents/compile-policy.ts';
import { type CallerPolicies, evaluate, findAbout, type NamedPolicy } from '../../policy/evaluate.ts';
import type { ContextOf } from '../../policy/patterns.ts';
import type { Caller } from '../../policy/principals.ts';
import { refusalMessage } from '../../policy/refusal-message.ts';
import { AppError } from '../../types/errors.ts';
import type { AccountRecord } from '../../types/records/rows.ts';
import type { Identities } from '../auth/identities.ts';
import type { Principal } from '../auth/principal.ts';
import type { Exchange } from '../http/exchange.ts';
import { headerText } from '../http/request-headers.ts';
import type { RequestRecord, SignedCaller } from '../http/service-route.ts';

/** Who asks, as IAM and STS know callers. */
export interface IdentityCaller {
  readonly account: AccountRecord;
  readonly accessKey: string;
  /** As policies see it. */
  readonly principal: Exclude<Caller, { kind: 'anonymous' }>;
  /** The name of a user, also where a session of it asks. */
  readonly userName?: string;
  /** With its policies and its session. */
  readonly identity: Principal;
  /** Global condition keys: of the caller and the request. */
  readonly contextOf: ContextOf;
  /** Of the request: what is asked for and what is refused stands there. */
  readonly record: Pick<RequestRecord, 'action' | 'refusedAccess'>;
  /** The same request by who has signed it as it is now. */
  as(present: Pick<SignedCaller, 'account' | 'principal'>): IdentityCaller;
}

export interface ActionQuestion {
  /** As policies name it, `iam:GetUser`. */
  readonly action: string;
  /** ARN, or `*` for an action of no resource. */
  readonly resource: string;
  /** What the refusal names instead. */
  readonly shownResource?: string | undefined;
  /** Whose the resource is. */
  readonly resourceAccount: string;
  /** Condition keys of the action and its resource; global ones are not among them. */
  readonly contextOf: ContextOf;
  /** Of a role that is assumed: it must allow the caller. */
  readonly trustPolicy?: NamedPolicy;
  /** The account's rule for passwords grants it to all of its users, as if each had a policy that does. */
  readonly isGranted?: boolean;
}

export function callerOf(
  { account, accessKey, principal }: Pick<SignedCaller, 'account' | 'accessKey' | 'principal'>,
  exchange: Pick<Exchange, 'client' | 'headers'>,
  { nowMs, record }: { nowMs: number; record: RequestRecord },
): IdentityCaller {
  const { client, headers } = exchange;
  const ofRequest: Readonly<Record<string, string | undefined>> = {
    'aws:currenttime': new Date(nowMs).toISOString(),
    'aws:epochtime': String(Math.floor(nowMs / 1000)),
    'aws:sourceip': client.remoteAddress,
    'aws:securetransport': String(client.scheme === 'https'),
    'aws:useragent': headerText(headers.values['user-agent']),
    'aws:referer': headerText(headers.values.referer),
  };
  const ofCaller = principal.valuesAt(nowMs);
  return {
    account,
    accessKey,
    principal: principal.caller,
    ...(principal.userName !== undefined && { userName: principal.userName }),
    identity: principal,
    contextOf: (key) => ownValue(ofRequest, key) ?? ofCaller(key),
    record,
    as: (present) => callerOf({ accessKey, ...present }, exchange, { nowMs, record }),
  };
}

/** Who asks, as it is now. Throws InvalidClientTokenId where its key, or what its session hangs on, is gone since; AccountProblem. */
export async function presentCaller(identities: Identities, caller: IdentityCaller): Promise<IdentityCaller> {
  const { accessKey, identity: principal } = caller;
  const present = await identities.requireStill({ accessKey, principal })?.catch((error: unknown) => {
    const isGone = error instanceof AppError && error.code === 'InvalidAccessKeyId';
    throw isGone ? new AppError('InvalidClientTokenId', { cause: error }) : error;
  });
  return present === undefined ? caller : caller.as(present);
}

/** The access key of long term by which the caller has signed, or that its session hangs on. */
export function signerOf({ accessKey, identity }: Pick<IdentityCaller, 'accessKey' | 'identity'>): string {
  return identity.session?.issuer ?? accessKey;
}

/** What the account's rule for passwords may grant (AWS "AllowUsersToChangePassword"). */
const PASSWORD_GRANT = compileGrant(['iam:ChangePassword', 'iam:GetAccountPasswordPolicy']);

function compileGrant(actions: readonly string[]): NamedPolicy {
  const statement = { Effect: 'Allow', Action: actions, Resource: '*' };
  const text = JSON.stringify({ Version: '2012-10-17', Statement: statement });
  const compiled = compileStoredPolicy(text, 'identity');
  assert(compiled.kind === 'compiled', 'it is well formed');
  return { name: 'account password policy', policy: compiled.policy };
}

function withGrant(policies: CallerPolicies): CallerPolicies {
  return { ...policies, identity: [...policies.identity, PASSWORD_GRANT] };
}

/** Throws AccessDenied, which names caller, action and resource. */
export async function authorizeAction(caller: IdentityCaller, question: ActionQuestion): Promise<void> {
  const { action, resource, resourceAccount, contextOf, trustPolicy, isGranted } = question;
  const { principal, identity } = caller;
  const { session } = identity;
  // AWS "GetSessionToken": such credentials call IAM only where MFA stood behind them.
  const isPlainSession = session !== undefined && session.kind !== 'role' && session.mfaAtMs === undefined;
  if (isPlainSession && action.startsWith('iam:')) throw new AppError('InvalidClientTokenId');
  const policies = await identity.policies();
  await findAbout(policies, action);
  const decision = evaluate({
    caller: principal,
    policies: isGranted && principal.kind === 'user' ? withGrant(policies) : policies,
    action,
    resource,
    resourceAccount,
    ...(trustPolicy && { resourcePolicy: trustPolicy, mustBeAllowedByResource: true }),
    contextOf: (key) =>
      key === 'aws:resourceaccount' ? resourceAccount : (contextOf(key) ?? caller.contextOf(key)),
  });
  if (decision.isAllowed) return;
  caller.record.refusedAccess = { action, resource, rule: describeDecision(decision) };
  const { shownResource: shown = resource } = question;
  const refused = { caller: principal, action, resource: shown, resourceAccount, decision, isOfS3: false };
  const message = refusalMessage(refused);
  throw new AppError('AccessDenied', message === undefined ? {} : { message });
}
