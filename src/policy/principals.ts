// Who asks, and whom the Principal and NotPrincipal elements of policies name (AWS "AWS JSON policy elements: Principal").
import { ownValue } from '../base/own-value.ts';

/** Who asks, as policies name callers. All but the anonymous one belong to an account, which also has a canonical id. */
export type Caller =
  | { readonly kind: 'anonymous' }
  | ({ readonly kind: 'root' } & Identified)
  /** Also a session that GetSessionToken gave a user. */
  | ({ readonly kind: 'user' } & Identified)
  /** `arn`: of the session, `arn:aws:sts::ACCOUNT:assumed-role/ROLE/SESSION`. */
  | ({ readonly kind: 'role-session'; readonly roleArn: string } & Identified);

interface Identified {
  readonly accountId: string;
  /** Of the account, as ACLs name it. */
  readonly canonicalId: string;
  readonly arn: string;
  /** The unique id of the user, or of the session's role; absent of roots, and of callers that are made up. */
  readonly id?: string;
}

/** The unique ids that users and roles had when a policy was put, by the ARN that it names them by (of sessions: the role's). */
export type PrincipalIds = Readonly<Record<string, string>>;

/** One name in a Principal element. */
export type PrincipalName =
  | { readonly kind: 'everyone' }
  | { readonly kind: 'account'; readonly accountId: string }
  | { readonly kind: 'user' | 'role' | 'session'; readonly accountId: string; readonly arn: string }
  | { readonly kind: 'canonical-user'; readonly canonicalId: string }
  /** Services and federated identities of AWS: as names they are valid, here nobody is one. */
  | { readonly kind: 'nobody' };

/**
 * How a policy names a caller. `direct`: a user or session by its own ARN. `role`: a session by its role's. `everyone`: by `*`.
 * `account`: its account, which may then say itself who of its users may.
 */
export type PrincipalMatch = 'direct' | 'role' | 'everyone' | 'account';

/** The names of one element, ready to be asked. */
export interface PrincipalSet {
  readonly names: readonly PrincipalName[];
  readonly hasEveryone: boolean;
  readonly accounts: ReadonlySet<string>;
  readonly canonicalIds: ReadonlySet<string>;
  /** Of users, roles and sessions. */
  readonly arns: ReadonlySet<string>;
}

const ACCOUNT_ID = /^[0-9]{12}$/;
const CANONICAL_ID = /^[0-9a-f]{64}$/;
const ARN = /^arn:aws:(iam|sts)::([0-9]{12}):([^/:]+)(?:\/([\x21-\x7e]*))?$/;
/** Path and name; no wildcards. */
const PATH_AND_NAME = /^(?:[\x21-\x29\x2b-\x2e\x30-\x3e\x40-\x7e]*\/)*[\w+=,.@-]{1,128}$/;
const ROLE_AND_SESSION = /^[\w+=,.@-]{1,64}\/[\w+=,.@-]{2,64}$/;
const FEDERATED_USER = /^[\w+=,.@-]{2,32}$/;
const SERVICE = /^[a-z0-9][a-z0-9.-]{0,100}\.amazonaws\.com(?:\.cn)?$/;
const PROVIDER =
  /^(?:arn:aws:iam::[0-9]{12}:(?:saml|oidc)-provider\/[\x21-\x29\x2b-\x3e\x40-\x7e]+|[a-z0-9.-]+\.[a-z]+)$/;
const NAME_CHARACTERS_MAX = 2048;

/** A name under `AWS`, `CanonicalUser`, `Service` or `Federated`; undefined where it is no name of that type. */
export function parsePrincipal(type: string, name: string): PrincipalName | undefined {
  if (name.length > NAME_CHARACTERS_MAX) return undefined;
  if (type === 'AWS') return parseAwsPrincipal(name);
  if (type === 'CanonicalUser')
    return CANONICAL_ID.test(name) ? { kind: 'canonical-user', canonicalId: name } : undefined;
  const form = type === 'Service' ? SERVICE : type === 'Federated' ? PROVIDER : undefined;
  return form?.test(name) ? { kind: 'nobody' } : undefined;
}

function parseAwsPrincipal(name: string): PrincipalName | undefined {
  if (name === '*') return { kind: 'everyone' };
  if (ACCOUNT_ID.test(name)) return { kind: 'account', accountId: name };
  const [arn, service, accountId = '', type, rest] = ARN.exec(name) ?? [];
  if (arn === undefined) return undefined;
  if (service === 'sts') {
    if (type === 'federated-user') return rest && FEDERATED_USER.test(rest) ? { kind: 'nobody' } : undefined;
    const isSession = type === 'assumed-role' && rest !== undefined && ROLE_AND_SESSION.test(rest);
    return isSession ? { kind: 'session', accountId, arn } : undefined;
  }
  if (type === 'root') return rest === undefined ? { kind: 'account', accountId } : undefined;
  if (rest === undefined || !PATH_AND_NAME.test(rest)) return undefined;
  return type === 'user' || type === 'role' ? { kind: type, accountId, arn } : undefined;
}

export function makePrincipalSet(names: readonly PrincipalName[]): PrincipalSet {
  return {
    names,
    hasEveryone: names.some(({ kind }) => kind === 'everyone'),
    accounts: new Set(names.flatMap((name) => (name.kind === 'account' ? [name.accountId] : []))),
    canonicalIds: new Set(
      names.flatMap((name) => (name.kind === 'canonical-user' ? [name.canonicalId] : [])),
    ),
    arns: new Set(names.flatMap((name) => ('arn' in name ? [name.arn] : []))),
  };
}

/**
 * How the set names the caller, the most direct way; undefined: it does not. `ids`: an ARN means who had it when the policy was put,
 * and nobody who has it by now; absent, or without the ARN: whoever has it.
 */
export function matchPrincipal(
  set: PrincipalSet,
  caller: Caller,
  ids?: PrincipalIds,
): PrincipalMatch | undefined {
  if (caller.kind === 'anonymous') return set.hasEveryone ? 'everyone' : undefined;
  if (isNamed(set, caller.arn, { caller, ids })) return 'direct';
  if (caller.kind === 'role-session' && isNamed(set, caller.roleArn, { caller, ids })) return 'role';
  if (set.hasEveryone) return 'everyone';
  return namesAccount(set, caller) ? 'account' : undefined;
}

/**
 * Whether the set names a user that was renamed since the policy was put. AWS changes the name in the policy then ("Rename an IAM
 * user"); here it is known by its unique id.
 */
export function namesRenamedUser(set: PrincipalSet, caller: Caller, ids: PrincipalIds = {}): boolean {
  if (caller.kind !== 'user' || caller.id === undefined) return false;
  const { id } = caller;
  return set.names.some((name) => name.kind === 'user' && ownValue(ids, name.arn) === id);
}

/**
 * Whether a NotPrincipal element spares the caller. As AWS validates it: the account must be named, and of sessions the
 * role, and then the caller itself. A caller with a permissions boundary is never spared (AWS "NotPrincipal").
 */
export function isSpared(
  set: PrincipalSet,
  caller: Caller,
  { hasBoundary, ids }: { hasBoundary: boolean; ids?: PrincipalIds | undefined },
): boolean {
  if (set.hasEveryone) return true;
  if (caller.kind === 'anonymous' || hasBoundary || !namesAccount(set, caller)) return false;
  if (caller.kind === 'root') return true;
  if (caller.kind === 'role-session' && !isNamed(set, caller.roleArn, { caller, ids })) return false;
  return isNamed(set, caller.arn, { caller, ids });
}

function isNamed(
  { arns }: PrincipalSet,
  arn: string,
  { caller, ids }: { caller: Identified; ids: PrincipalIds | undefined },
): boolean {
  if (!arns.has(arn)) return false;
  const id = ids?.[arn];
  return id === undefined || caller.id === undefined || caller.id === id;
}

function namesAccount(set: PrincipalSet, caller: Identified): boolean {
  return set.accounts.has(caller.accountId) || set.canonicalIds.has(caller.canonicalId);
}
