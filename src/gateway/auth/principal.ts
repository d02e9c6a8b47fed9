// Who has signed a request, as policies judge it: the account's root, a user, or a session of a role, with the policies that
// allow and limit it, and the values of the condition keys that are about the caller (AWS "AWS global condition context keys").

import { findReadyMadePolicy } from '../../policy/documents/ready-made-policies.ts';
import { type CallerPolicies, type NamedPolicy, NO_POLICIES } from '../../policy/evaluate.ts';
import type { ContextOf, ContextValue } from '../../policy/patterns.ts';
import type { Caller as PolicyCaller } from '../../policy/principals.ts';
import type { RoleRecord, StoredPrincipal, UserRecord } from '../../types/records/identity-records.ts';
import type { AccountRecord } from '../../types/records/rows.ts';
import type { Tag } from '../../types/tags.ts';
import { ownSigner, presignedSigner } from '../../types/tenant.ts';
import type { PolicyCache } from './policy-cache.ts';
import type { Session } from './sessions.ts';

export interface Principal {
  readonly caller: Exclude<PolicyCaller, { kind: 'anonymous' }>;
  /**
   * What is compiled belongs to who caches the principal. A request in the middle of a long body does not keep it: where it has gone
   * meanwhile it is looked up again, with the errors of Identities.requireStill.
   */
  policies(): CallerPolicies | Promise<CallerPolicies>;
  /** Of the condition keys about the caller, whenever they are asked for: `nowMs` is the request's time. */
  valuesAt(nowMs: number): ContextOf;
  /** The user's or role's id, or `root`. */
  readonly id: string;
  /** Of a user. */
  readonly userName?: string;
  /** Of temporary credentials. */
  readonly session?: Session;
  /** Of credentials of long term: when their access key was made. */
  readonly keyCreatedAtMs?: number;
}

export function userArn(accountId: string, { path, name }: Pick<UserRecord, 'path' | 'name'>): string {
  return `arn:aws:iam::${accountId}:user${path}${name}`;
}

export function roleArn(accountId: string, { path, name }: Pick<RoleRecord, 'path' | 'name'>): string {
  return `arn:aws:iam::${accountId}:role${path}${name}`;
}

/** As `aws:userid` and GetCallerIdentity name it. */
export function userIdOf({ id, session }: Principal, accountId: string): string {
  if (session?.kind === 'role') return `${id}:${session.name}`;
  return id === 'root' ? accountId : id;
}

/**
 * As whose a request counts within its account (types/tenant.ts). A session counts as the key that began it, or as its role:
 * whoever begins many sessions has no more for it.
 */
export function signerOf({
  principal: { id, session },
  accessKey,
  authType,
}: {
  principal: Pick<Principal, 'id' | 'session'>;
  accessKey: string;
  authType: 'AuthHeader' | 'QueryString' | 'Form';
}): string {
  const key = session?.kind === 'role' ? id : (session?.issuer ?? accessKey);
  return authType === 'AuthHeader' ? ownSigner(key) : presignedSigner(key);
}

export function rootPrincipal(account: AccountRecord, session?: Session): Principal {
  const { accountId, canonicalId } = account;
  const arn = `arn:aws:iam::${accountId}:root`;
  return withValues({
    caller: { kind: 'root', accountId, canonicalId, arn },
    policies: () => NO_POLICIES,
    id: 'root',
    ...(session && { session }),
    facts: { principalArn: arn, type: 'Account', tags: [] },
  });
}

export interface CompiledPrincipal {
  readonly principal: Principal;
  /** Its policies stay as long as this is kept. */
  readonly compiled: CallerPolicies;
}

/** `session`: of a user, GetSessionToken's; of a role, always there. `again` compiles its policies when they have gone. */
export async function storedPrincipal(
  { account, principal }: { account: AccountRecord; principal: StoredPrincipal },
  {
    policies,
    session,
    again,
  }: { policies: PolicyCache; session?: Session; again(): Promise<CallerPolicies> },
): Promise<CompiledPrincipal> {
  const compiled = await policiesOf(principal, { cache: policies, session, accountId: account.accountId });
  const held = new WeakRef(compiled);
  const given = { account, entity: principal.entity, session };
  return { principal: principalOf(given, () => held.deref() ?? again()), compiled };
}

function principalOf(
  {
    account,
    entity,
    session,
  }: { account: AccountRecord; entity: StoredPrincipal['entity']; session: Session | undefined },
  policies: Principal['policies'],
): Principal {
  const { accountId, canonicalId } = account;
  const common = {
    policies,
    id: entity.id,
    ...(session && { session }),
  };
  if (entity.kind === 'user') {
    const arn = userArn(accountId, entity);
    return withValues({
      ...common,
      caller: { kind: 'user', accountId, canonicalId, arn, id: entity.id },
      userName: entity.name,
      facts: { principalArn: arn, type: 'User', tags: entity.tags },
    });
  }
  const principalArn = roleArn(accountId, entity);
  const arn = `arn:aws:sts::${accountId}:assumed-role/${entity.name}/${session?.name ?? ''}`;
  return withValues({
    ...common,
    caller: { kind: 'role-session', accountId, canonicalId, arn, roleArn: principalArn, id: entity.id },
    facts: { principalArn, type: 'AssumedRole', tags: sessionTags(entity.tags, session?.tags ?? []) },
  });
}

/** Tags of a session come before those of its role that have the same key. */
function sessionTags(ofRole: readonly Tag[], ofSession: readonly Tag[]): readonly Tag[] {
  const given = new Set(ofSession.map(({ key }) => key.toLowerCase()));
  return [...ofSession, ...ofRole.filter(({ key }) => !given.has(key.toLowerCase()))];
}

/** One after the other: of one account only one policy is being compiled at a time. */
async function policiesOf(
  { entity, groups, policies: texts }: StoredPrincipal,
  { cache, session, accountId }: { cache: PolicyCache; session: Session | undefined; accountId: string },
): Promise<CallerPolicies> {
  const own = new Map(texts.map(({ arn, text }) => [arn, text]));
  const named = (name: string, text: string, type: 'identity' | 'boundary' | 'session') =>
    cache.named({ name, text, type, accountId });
  const textOf = (arn: string) => own.get(arn) ?? findReadyMadePolicy(arn)?.text;
  const identity: NamedPolicy[] = [];
  for (const holder of [entity, ...groups]) {
    for (const { name, text } of holder.inlinePolicies) identity.push(await named(name, text, 'identity'));
    for (const arn of holder.attachedPolicies) {
      const text = textOf(arn);
      if (text !== undefined) identity.push(await named(arn, text, 'identity'));
    }
  }
  // A boundary whose policy is gone allows nothing.
  const boundary =
    entity.boundary === undefined
      ? undefined
      : await named(entity.boundary, textOf(entity.boundary) ?? '', 'boundary');
  if (session?.policies === undefined) return { identity, boundary };
  const limits: NamedPolicy[] = [];
  for (const { name, text } of session.policies) limits.push(await named(name, text, 'session'));
  return { identity, boundary, session: limits };
}

interface Facts {
  principalArn: string;
  type: 'Account' | 'User' | 'AssumedRole';
  tags: readonly Tag[];
}

function withValues({ facts, ...principal }: Omit<Principal, 'valuesAt'> & { facts: Facts }): Principal {
  const { caller, session, userName } = principal;
  const { accountId } = caller;
  const fixed = new Map<string, ContextValue>([
    ['aws:principalarn', facts.principalArn],
    ['aws:principalaccount', accountId],
    ['aws:accountid', accountId],
    ['aws:principaltype', facts.type],
    ['aws:userid', userIdOf({ ...principal, valuesAt: () => () => undefined }, accountId)],
  ]);
  if (userName !== undefined) fixed.set('aws:username', userName);
  // Keys of tags are the same in any case.
  for (const { key, value } of facts.tags) fixed.set(`aws:principaltag/${key.toLowerCase()}`, value);
  if (session !== undefined) {
    fixed.set('aws:multifactorauthpresent', String(session.mfaAtMs !== undefined));
    fixed.set('aws:tokenissuetime', new Date(session.issuedAtMs).toISOString());
    if (session.sourceIdentity !== undefined) fixed.set('aws:sourceidentity', session.sourceIdentity);
  }
  return {
    ...principal,
    valuesAt: (nowMs) => (key) => {
      if (key.startsWith('aws:principaltag/')) return fixed.get(key.toLowerCase());
      if (key === 'aws:multifactorauthage' && session?.mfaAtMs !== undefined)
        return String(Math.max(0, Math.floor((nowMs - session.mfaAtMs) / 1000)));
      return fixed.get(key);
    },
  };
}
