// What policy documents decide about one action on one resource (AWS "Policy evaluation logic"): a statement that denies
// refuses it, and otherwise a statement must allow it. S3 asks through authorize.ts, IAM and STS through
// src/gateway/identity-api/authorize-action.ts.
//
// Pure and synchronous: a condition looks up its values when it is asked. Stored tags have to be read before. They are in the
// context only where `mentionsKey` says that a condition needs them.
import { nextTurn } from '../base/async/next-turn.ts';
import { REPAIR_ACTIONS } from './actions.ts';
import type { CompiledPolicy, Statement } from './documents/compile-policy.ts';
import { beginsWith } from './globs.ts';
import { boundWork, COMPARISON_STEPS, isTooMuch, matchWork, spend, TooMuchWork } from './match-work.ts';
import { type ContextOf, matchPattern, reachOf } from './patterns.ts';
import {
  type Caller,
  isSpared,
  matchPrincipal,
  namesRenamedUser,
  type PrincipalIds,
  type PrincipalMatch,
} from './principals.ts';

/** A policy with what explanations call it. */
export interface NamedPolicy {
  readonly policy: CompiledPolicy;
  /** The name of an inline policy, the ARN of a managed one, the ARN of the bucket or role that a policy is of. */
  readonly name: string;
  /** Of a resource's policy: whom its ARNs meant when it was put. */
  readonly ids?: PrincipalIds | undefined;
}

/** What limits and allows a caller on its own side. Anonymous ones and roots have none. */
export interface CallerPolicies {
  /** Of the user and all groups of it, or of the role. */
  readonly identity: readonly NamedPolicy[];
  readonly boundary?: NamedPolicy | undefined;
  /** Of the session; undefined: it has no session policies, and is not limited by any. */
  readonly session?: readonly NamedPolicy[] | undefined;
}

export const NO_POLICIES: CallerPolicies = { identity: [] };

/** What an ACL grants the caller: nothing, something to the caller's account alone, or something to a group of everybody. */
export type AclGrant = 'none' | 'account' | 'everyone';

export interface AccessQuestion {
  readonly caller: Caller;
  readonly policies: CallerPolicies;
  readonly action: string;
  readonly resource: string;
  /** It stands for all resources that begin as it does: all of them must be allowed, and none denied. */
  readonly isPrefix?: boolean | undefined;
  /** It is about many objects or versions: what differs from one to the other may deny, and does not allow. */
  readonly isOfMany?: boolean | undefined;
  /** Tags that are not known come along with what is stored. */
  readonly bringsTags?: boolean | undefined;
  /** An access control list that is not known comes along. */
  readonly bringsAcl?: boolean | undefined;
  /** Who owns the bucket, the role or the like; of what is not there yet, and of no resource, the caller's account. */
  readonly resourceAccount: string;
  /** Of the bucket; of the role where the action is sts:AssumeRole. */
  readonly resourcePolicy?: NamedPolicy | undefined;
  /** Identities are not enough, even of the same account: the resource's policy must allow, as those of roles must. */
  readonly mustBeAllowedByResource?: boolean | undefined;
  /**
   * Of actions on an object's data, tags and ACL: the account that wrote it, where that is not the bucket's. Then the bucket's
   * policy can deny only, and the object's ACL must allow.
   */
  readonly objectAccount?: string | undefined;
  readonly contextOf: ContextOf;
  /** Asked only where policies have not decided yet. */
  aclGrant?(): AclGrant;
}

export type PolicyKind = 'identity' | 'boundary' | 'session' | 'resource' | 'trust';

/** The statement that decided. */
export interface DecidedBy {
  readonly kind: PolicyKind;
  readonly name: string;
  /** From 0. */
  readonly statement: number;
  readonly sid: string | undefined;
}

export type PolicyDecision =
  /** `by`: a statement, the account's root, an ACL, or a rule of an extension (authorize.ts). */
  | { readonly isAllowed: true; readonly by: DecidedBy | 'root' | 'acl' | 'extension' }
  | { readonly isAllowed: false; readonly reason: 'explicit-deny'; readonly by: DecidedBy }
  /** `lacking`: the kind of policy that would have to allow it. */
  | { readonly isAllowed: false; readonly reason: 'no-allow'; readonly lacking: PolicyKind };

/** The longest policies that are asked about an action for the first time, each for some hundred microseconds, in one turn. */
const FIRST_ASKED_MAX = 16;
/** Steps of a search in one turn, which take a few milliseconds. */
const FOUND_OF_TURN = 60_000;

/**
 * A caller may have a hundred policies of the longest, and what of them is about an action is found at the first question about
 * it. So of many it is found before the question, in turns; undefined: there are few.
 */
export function findAbout({ identity }: CallerPolicies, action: string): Promise<void> | undefined {
  return identity.length <= FIRST_ASKED_MAX ? undefined : findInTurns(identity, action);
}

async function findInTurns(policies: readonly NamedPolicy[], action: string): Promise<void> {
  let begun = matchWork();
  for (const { policy } of policies) {
    policy.about(action);
    if (matchWork() - begun < FOUND_OF_TURN) continue;
    await nextTurn();
    begun = matchWork();
  }
}

/** Where there is more to compare than one request may take, what is left denies, and does not allow. */
export function evaluate(question: AccessQuestion): PolicyDecision {
  return boundWork(() => decide(question));
}

function decide(question: AccessQuestion): PolicyDecision {
  const denial = findDenial(question);
  if (denial !== undefined) {
    const isRepair = isOwnRoot(question) && REPAIR_ACTIONS.has(question.action);
    if (!isRepair || denial.kind !== 'resource') {
      return { isAllowed: false, reason: 'explicit-deny', by: denial };
    }
  }
  if (isForeignObject(question)) return decideByAcl(question);
  if (question.caller.kind === 'anonymous') return decideAnonymous(question);
  return question.caller.accountId === question.resourceAccount
    ? decideWithinAccount(question)
    : decideAcrossAccounts(question);
}

/** Whether any of the policies looks at the key, or the family (`s3:existingobjecttag/`), for the action. */
export function mentionsKey(
  question: Pick<AccessQuestion, 'policies' | 'resourcePolicy' | 'action'>,
  family: string,
): boolean {
  return policiesOf(question).some(({ policy }) => {
    if (!policy.families.has(family)) return false;
    const { allows, denies } = policy.about(question.action);
    const looks = ({ families }: Statement) => families.has(family);
    return denies.some(looks) || allows.some(looks);
  });
}

/**
 * Whether policies may allow the action on some resource of the account, before it is known which. Never false where `evaluate`
 * would allow it on one. ACLs are not asked: whoever calls this adds what they grant.
 */
export function mayAllowSomewhere(
  question: Omit<AccessQuestion, 'resource' | 'contextOf' | 'aclGrant'>,
): boolean {
  const { caller, policies, action, resourcePolicy, resourceAccount } = question;
  const allows = (named: NamedPolicy) => named.policy.about(action).allows.length > 0;
  const isByResource =
    resourcePolicy?.policy
      .about(action)
      .allows.some((statement) => names(statement, caller, resourcePolicy.ids) !== undefined) ?? false;
  if (caller.kind === 'anonymous') return isByResource;
  const isByIdentity = caller.kind === 'root' || policies.identity.some(allows);
  return caller.accountId === resourceAccount ? isByIdentity || isByResource : isByIdentity && isByResource;
}

/** All statements that apply to the question, and their policies: for explanations. */
export function matchingStatements(
  question: AccessQuestion,
): readonly (DecidedBy & { readonly effect: 'Allow' | 'Deny' })[] {
  const matching = ({ kind, named }: ReturnType<typeof kindsOf>[number]) => {
    const { allows, denies } = named.policy.about(question.action);
    return [...denies, ...allows]
      .filter((statement) => applies(statement, question))
      .map((statement) => ({ ...decidedBy(kind, named, statement), effect: statement.effect }));
  };
  return boundWork(() => kindsOf(question).flatMap(matching));
}

function kindsOf({
  policies: { identity, boundary, session },
  resourcePolicy,
}: Pick<AccessQuestion, 'policies' | 'resourcePolicy'>): { kind: PolicyKind; named: NamedPolicy }[] {
  return [
    ...identity.map((named) => ({ kind: 'identity' as const, named })),
    ...(boundary === undefined ? [] : [{ kind: 'boundary' as const, named: boundary }]),
    ...(session ?? []).map((named) => ({ kind: 'session' as const, named })),
    ...(resourcePolicy === undefined ? [] : [{ kind: kindOf(resourcePolicy), named: resourcePolicy }]),
  ];
}

function policiesOf(question: Pick<AccessQuestion, 'policies' | 'resourcePolicy'>): NamedPolicy[] {
  return kindsOf(question).map(({ named }) => named);
}

function kindOf({ policy: { type } }: NamedPolicy): 'trust' | 'resource' {
  return type === 'trust' ? 'trust' : 'resource';
}

function findDenial(question: AccessQuestion): DecidedBy | undefined {
  const { identity, boundary, session } = question.policies;
  const { resourcePolicy } = question;
  const byResource = resourcePolicy && denialOf(kindOf(resourcePolicy), resourcePolicy, question);
  if (byResource !== undefined) return byResource;
  for (const named of identity) {
    const by = denialOf('identity', named, question);
    if (by !== undefined) return by;
  }
  const byBoundary = boundary && denialOf('boundary', boundary, question);
  if (byBoundary !== undefined) return byBoundary;
  for (const named of session ?? []) {
    const by = denialOf('session', named, question);
    if (by !== undefined) return by;
  }
  return undefined;
}

function denialOf(kind: PolicyKind, named: NamedPolicy, question: AccessQuestion): DecidedBy | undefined {
  for (const statement of named.policy.about(question.action).denies) {
    if (applies(statement, question)) return decidedBy(kind, named, statement);
  }
  return undefined;
}

function isOwnRoot({ caller, resourceAccount }: AccessQuestion): boolean {
  return caller.kind === 'root' && caller.accountId === resourceAccount;
}

function isForeignObject({ objectAccount, resourceAccount }: AccessQuestion): boolean {
  return objectAccount !== undefined && objectAccount !== resourceAccount;
}

/** Of an object that another account wrote: its ACL must allow, and the caller's own side. */
function decideByAcl(question: AccessQuestion): PolicyDecision {
  const { caller, aclGrant } = question;
  if (caller.kind !== 'anonymous') {
    const own = decideOwnSide(question);
    if (!own.isAllowed) return own;
  }
  return aclGrant === undefined || aclGrant() === 'none'
    ? notAllowed('resource')
    : { isAllowed: true, by: 'acl' };
}

function decideAnonymous(question: AccessQuestion): PolicyDecision {
  const grant = findGrant(question);
  if (grant !== undefined) return { isAllowed: true, by: grant.by };
  return question.aclGrant?.() === 'everyone'
    ? { isAllowed: true, by: 'acl' }
    : notAllowed(resourceKind(question));
}

/**
 * Either side allows. What names the user or the session itself is limited by nothing but denials; what names the role, or
 * everybody, is limited by boundary and session policies (AWS "How AWS enforcement code logic evaluates requests"). What names
 * the account leaves it to the account's own policies.
 */
function decideWithinAccount(question: AccessQuestion): PolicyDecision {
  const { caller, policies, mustBeAllowedByResource = false } = question;
  if (caller.kind === 'root' && !mustBeAllowedByResource) return { isAllowed: true, by: 'root' };
  const grant = findGrant(question);
  if (grant?.match === 'direct') return { isAllowed: true, by: grant.by };
  if (mustBeAllowedByResource && grant === undefined) return notAllowed(resourceKind(question));
  if (caller.kind === 'root') return { isAllowed: true, by: 'root' };
  const by =
    (grant?.match === 'account' ? undefined : grant?.by) ??
    findAllow('identity', policies.identity, question) ??
    (question.aclGrant?.() === 'everyone' ? 'acl' : undefined);
  if (by === undefined) return notAllowed('identity');
  return limitOf(question) ?? { isAllowed: true, by };
}

/** Both sides must allow. */
function decideAcrossAccounts(question: AccessQuestion): PolicyDecision {
  const own = decideOwnSide(question);
  if (!own.isAllowed) return own;
  const grant = findGrant(question);
  if (grant !== undefined) return { isAllowed: true, by: grant.by };
  const acl = question.mustBeAllowedByResource ? 'none' : (question.aclGrant?.() ?? 'none');
  return acl === 'none' ? notAllowed(resourceKind(question)) : { isAllowed: true, by: 'acl' };
}

/** What the caller's own account lets it do elsewhere. */
function decideOwnSide(question: AccessQuestion): PolicyDecision {
  if (question.caller.kind === 'root') return { isAllowed: true, by: 'root' };
  const by = findAllow('identity', question.policies.identity, question);
  if (by === undefined) return notAllowed('identity');
  return limitOf(question) ?? { isAllowed: true, by };
}

/** undefined: boundary and session policies, where there are any, allow it too. */
function limitOf(question: AccessQuestion): PolicyDecision | undefined {
  const { boundary, session } = question.policies;
  if (boundary !== undefined && findAllow('boundary', [boundary], question) === undefined)
    return notAllowed('boundary');
  if (session !== undefined && findAllow('session', session, question) === undefined)
    return notAllowed('session');
  return undefined;
}

function notAllowed(lacking: PolicyKind): PolicyDecision {
  return { isAllowed: false, reason: 'no-allow', lacking };
}

function resourceKind({ resourcePolicy, mustBeAllowedByResource }: AccessQuestion): PolicyKind {
  if (resourcePolicy !== undefined) return kindOf(resourcePolicy);
  return mustBeAllowedByResource ? 'trust' : 'resource';
}

function findAllow(
  kind: PolicyKind,
  policies: readonly NamedPolicy[],
  question: AccessQuestion,
): DecidedBy | undefined {
  for (const named of policies) {
    for (const statement of named.policy.about(question.action).allows) {
      if (applies(statement, question)) return decidedBy(kind, named, statement);
    }
  }
  return undefined;
}

const DIRECTNESS: Readonly<Record<PrincipalMatch, number>> = { direct: 3, role: 2, everyone: 1, account: 0 };

/** The most direct way in which the resource's policy allows it. */
function findGrant(question: AccessQuestion): { match: PrincipalMatch; by: DecidedBy } | undefined {
  const { resourcePolicy } = question;
  if (resourcePolicy === undefined) return undefined;
  let best: { match: PrincipalMatch; statement: Statement } | undefined;
  for (const statement of resourcePolicy.policy.about(question.action).allows) {
    const match = names(statement, question.caller, resourcePolicy.ids);
    if (match === undefined) continue;
    if (best !== undefined && DIRECTNESS[match] <= DIRECTNESS[best.match]) continue;
    if (!applies(statement, question)) continue;
    best = { match, statement };
    if (match === 'direct') break;
  }
  return best && { match: best.match, by: decidedBy(kindOf(resourcePolicy), resourcePolicy, best.statement) };
}

/** How a statement that allows names the caller. Documents do not allow by NotPrincipal: such a one names nobody. */
function names(
  { principals }: Statement,
  caller: Caller,
  ids: PrincipalIds | undefined,
): PrincipalMatch | undefined {
  if (principals === undefined || principals.isNot) return undefined;
  return matchPrincipal(principals.set, caller, ids);
}

function applies(statement: Statement, question: AccessQuestion): boolean {
  if (isTooMuch()) return statement.effect === 'Deny';
  try {
    return isMet(statement, question);
  } catch (error) {
    if (error instanceof TooMuchWork) return statement.effect === 'Deny';
    throw error;
  }
}

/** To look at a statement, and to look up what a condition asks about. */
const STATEMENT_STEPS = 50;
const CONDITION_STEPS = 50;

function isMet(statement: Statement, question: AccessQuestion): boolean {
  const { resources, conditions } = statement;
  spend(STATEMENT_STEPS);
  if (resources !== undefined && !isOn(statement, resources, question)) return false;
  if (!isAboutCaller(statement, question)) return false;
  for (const condition of conditions) {
    spend(CONDITION_STEPS);
    const mayBeUnknown = question.isOfMany || question.bringsTags || question.bringsAcl;
    if (mayBeUnknown && condition.keys.some((key) => isUnknown(key, question))) {
      // Of some of the objects it holds, of others not: that denies, and does not allow.
      if (statement.effect === 'Allow') return false;
    } else if (!condition.holds(question.contextOf)) return false;
  }
  return true;
}

/** What differs from object to object, where a question is about many; tags, lists and names that come along with an object. */
function isUnknown(key: string, { isPrefix, isOfMany, bringsTags, bringsAcl }: AccessQuestion): boolean {
  // Of a prefix there are as many sources as keys.
  if (isPrefix && bringsTags && key === 's3:x-amz-copy-source') return true;
  if (bringsAcl && (key === 's3:x-amz-acl' || key.startsWith('s3:x-amz-grant-'))) return true;
  if (isOfMany && (key === 's3:versionid' || key.startsWith('s3:existingobjecttag/'))) return true;
  return bringsTags === true && (key === 's3:requestobjecttagkeys' || key.startsWith('s3:requestobjecttag/'));
}

/** A variable without a value: its pattern matches nothing, and a NotResource of it allows nothing. */
function isOn(
  { effect }: Statement,
  { isNot, patterns }: NonNullable<Statement['resources']>,
  { resource, isPrefix = false, contextOf }: AccessQuestion,
): boolean {
  if (isPrefix) {
    const reach = patterns.map((pattern) => reachOf(pattern, resource, contextOf));
    // A statement that denies counts where it may deny one of them, and one that allows where it allows all.
    if (effect === 'Deny') return isNot ? !reach.includes('all') : reach.some((each) => each !== 'none');
    return isNot ? reach.every((each) => each === 'none') : reach.includes('all');
  }
  let isWithoutValue = false;
  for (const pattern of patterns) {
    // Of most statements it is known by the first characters that they are about something else.
    if (!isNot && !beginsWith(resource, pattern.start)) {
      spend(COMPARISON_STEPS);
      continue;
    }
    const match = matchPattern(pattern, resource, contextOf);
    if (match === true) return !isNot;
    if (match === 'no-value') isWithoutValue = true;
  }
  return isNot && !(isWithoutValue && effect === 'Allow');
}

/** Who has a name anew inherits no right by it, and is still denied what it is denied; so is who had it, under any other. */
function isAboutCaller(
  { effect, principals }: Statement,
  { caller, policies, resourcePolicy }: AccessQuestion,
): boolean {
  if (principals === undefined) return true;
  const ids = resourcePolicy?.ids;
  if (!principals.isNot) {
    const { set } = principals;
    if (effect === 'Allow') return matchPrincipal(set, caller, ids) !== undefined;
    return matchPrincipal(set, caller) !== undefined || namesRenamedUser(set, caller, ids);
  }
  if (effect === 'Allow') return false;
  return !isSpared(principals.set, caller, { hasBoundary: policies.boundary !== undefined, ids });
}

function decidedBy(kind: PolicyKind, { name }: NamedPolicy, { index, sid }: Statement): DecidedBy {
  return { kind, name, statement: index, sid };
}
