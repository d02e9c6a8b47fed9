// What a caller may do with a bucket and what is in it: the one place where S3 requests are decided. A question is one pair of
// an action and a resource. It is judged by policies and ACLs (evaluate.ts): a denial refuses it, otherwise something must allow
// it. The root of the bucket's account may do everything that nothing denies.
//
// What has to be read for an answer is read only where it can matter: stored tags where a policy mentions them, an object's owner
// and ACL where policies alone do not decide.
import { assert } from '../base/assert.ts';
import { parseIsoDate } from '../base/text/iso-dates.ts';
import { type Acl, type AclNeed, aclGrantFor, aclNeedOf, withoutPublicGrants } from '../types/acl.ts';
import type { AccountId, VersionId } from '../types/names.ts';
import type { BucketRecord } from '../types/records/rows.ts';
import type { Tag } from '../types/tags.ts';
import { hasKey } from './actions.ts';
import {
  type AccessQuestion,
  type AclGrant,
  type CallerPolicies,
  evaluate,
  findAbout,
  mayAllowSomewhere,
  mentionsKey,
  type NamedPolicy,
  type PolicyDecision,
} from './evaluate.ts';
import type { ContextOf, ContextValue } from './patterns.ts';
import type { Caller } from './principals.ts';
import { withoutPublicStatements } from './public-statements.ts';
import { findLostLimit } from './renamed-bucket.ts';

/**
 * How a pair is judged where the usual way does not fit: that the action must be allowed on a resource of the request's bucket.
 * - `unless-denied`: callers of the bucket's account may, unless a policy denies it (extensions 2.1). Others must be allowed.
 * - `component`: as `unless-denied`, where the caller may read the object or write it: who may write it could rename it to where
 *   it may be read, and who may do neither gets nothing of it by composing. What another account owns must be readable.
 * - `owner-only`: callers of the account that owns the request's bucket may, unless a policy denies it, and nobody else, whatever a
 *   policy or an ACL allows (extensions 2.2).
 * - `new-bucket`: it must be allowed to the caller by its own account. The bucket that the pair names does not exist.
 * - `new-name`: likewise, and callers of the account that owns the request's bucket may, unless a policy of their own denies it.
 */
export type AccessRule = 'unless-denied' | 'component' | 'owner-only' | 'new-bucket' | 'new-name';

export interface PairOptions {
  /** The resource stands for all keys that begin as it does. */
  readonly isPrefix?: boolean;
  /** It stands for all versions of the key, of which none need be current. */
  readonly isOfVersions?: boolean;
  /**
   * The bucket gets this name, and the policies of users do not follow it: what they keep their user from under the old name they
   * must keep it from under the new one (renamed-bucket.ts).
   */
  readonly renamedTo?: string;
  /**
   * What the request's document says may decide, too, and is not read yet: only who can be allowed nothing at all is refused. The
   * pair must be judged again with the document.
   */
  readonly isBeforeDocument?: boolean;
  /**
   * A version goes for good, now or by what the request has the service do: where the bucket asks for a second factor, the request
   * must have one (extensions 3.1).
   */
  readonly removesVersion?: boolean;
  /** The request makes the object that the action is about, and brings its ACL or tags along. */
  readonly isOfNewObject?: boolean;
  /** It is about an upload that somebody else has begun: the bucket's list says nothing about it. */
  readonly isOfOthersUpload?: boolean;
  /** Tags that nobody knows come along with what is stored: conditions on given tags deny, and do not allow. */
  readonly bringsTags?: boolean;
  /** Likewise an access control list, and conditions on given ones. */
  readonly bringsAcl?: boolean;
  /** The version that the action is about: its tags and ACL are looked at. Absent: the current one. */
  readonly versionId?: VersionId | undefined;
  /** The tags that the request gives the object, by a header or a document. */
  readonly givenTags?: readonly Tag[] | undefined;
  /** Values of condition keys for this pair alone, by names in lower case. */
  readonly values?: Readonly<Record<string, ContextValue>>;
}

export type AccessPair = readonly [
  action: string,
  resource: string,
  rule?: AccessRule | undefined,
  options?: PairOptions,
];

/** Who asks, with what limits and allows it. */
export interface Asker {
  readonly caller: Caller;
  readonly policies: CallerPolicies;
}

/** A bucket with the documents that say who may do what with it. */
export interface JudgedBucket {
  readonly record: BucketRecord;
  readonly policy: NamedPolicy | undefined;
  readonly acl: Acl;
  /**
   * Whether its account may share with everybody. Otherwise what its policy and lists say for everybody says nothing, to nobody
   * known and to other accounts (service 1; AWS "Blocking public access").
   */
  readonly mayBePublic: boolean;
  /** Its account is suspended, or deleted but for its buckets: nothing of it is served to others, whatever it says of them. */
  readonly isClosed?: boolean;
}

/** An object that is stored, as far as decisions look at it. */
export interface StoredObject {
  readonly acl: Acl;
  /** As of buckets: the account that wrote it may not share with everybody. */
  readonly isPrivate?: boolean;
  readonly tags: readonly Tag[];
}

/** `by`: what decided, for the log. */
export type Decision = PolicyDecision;

export interface AccessRequest {
  readonly asker: Asker;
  readonly pairs: readonly AccessPair[];
  readonly bucket: JudgedBucket | undefined;
  /** Values of condition keys about the caller and the request. */
  readonly contextOf: ContextOf;
  /** The object that a resource names, or a version of it; undefined where there is none. Reads metadata. */
  storedObject(resource: string, versionId: VersionId | undefined): Promise<StoredObject | undefined>;
  /** Asked before each decision: a promise lets others have their turn. */
  turn?(): Promise<void> | undefined;
  /** Called with the first pair that is refused, and the reason. */
  onRefused?(pair: AccessPair, decision: Extract<Decision, { isAllowed: false }>): void;
}

const TAG_FAMILY = 's3:existingobjecttag/';

/** Actions that need the object's account, where that is not the bucket's: its ACL cannot allow them. */
const OF_OBJECT_OWNER: ReadonlySet<string> = new Set([
  's3:GetObjectTagging',
  's3:GetObjectVersionTagging',
  's3:PutObjectTagging',
  's3:PutObjectVersionTagging',
  's3:DeleteObjectTagging',
  's3:DeleteObjectVersionTagging',
]);

/** True only if every pair is allowed, by its rule. A request of no pair needs no right, and asks for none here. */
export async function isAllowed(request: AccessRequest): Promise<boolean> {
  for (const pair of request.pairs) {
    const turn = request.turn?.();
    if (turn !== undefined) await turn;
    const finding = findAbout(request.asker.policies, pair[0]);
    if (finding !== undefined) await finding;
    const decision = await decide(request, pair);
    if (decision.isAllowed) continue;
    request.onRefused?.(pair, decision);
    return false;
  }
  return true;
}

/** False only if nothing may allow one of the actions on any key of the bucket. */
export function isSomeAllowed(
  { asker, bucket }: Pick<AccessRequest, 'asker'> & { bucket: JudgedBucket },
  actions: readonly string[],
): boolean {
  const { caller, policies } = asker;
  if (isClosedTo(caller, bucket)) return false;
  const resourcePolicy = policyFor(bucket, caller);
  const question = { caller, policies, resourceAccount: bucket.record.owner, resourcePolicy };
  return actions.some((action) => {
    if (mayAllowSomewhere({ ...question, action })) return true;
    const need = aclNeedOf(action, { isOfNewObject: false });
    // Whether an object's list allows it is known only with the object.
    if (need === undefined || need.of === 'object') return need !== undefined;
    const grant = grantOf(bucket, need, caller);
    const isOther = caller.kind !== 'anonymous' && caller.accountId !== bucket.record.owner;
    return isOther ? grant !== 'none' : grant === 'everyone';
  });
}

function isClosedTo(caller: Caller, bucket: JudgedBucket): boolean {
  return bucket.isClosed === true && accountOf(caller) !== bucket.record.owner;
}

function accountOf(caller: Caller): AccountId | undefined {
  return caller.kind === 'anonymous' ? undefined : (caller.accountId as AccountId);
}

/** The answer for one pair, by its rule. */
export async function decide(request: AccessRequest, pair: AccessPair): Promise<Decision> {
  const [action, resource, rule, { renamedTo } = {}] = pair;
  const bucket = rule === 'new-bucket' || rule === 'new-name' ? undefined : request.bucket;
  assert(
    bucket === undefined || isWithin(resource, bucket.record),
    `${action} is asked of the bucket that it acts on`,
  );
  if (bucket !== undefined && isClosedTo(request.asker.caller, bucket))
    return { isAllowed: false, reason: 'no-allow', lacking: 'resource' };
  const decision = await decidePair(request, pair, bucket);
  if (rule === undefined || (!decision.isAllowed && decision.reason === 'explicit-deny')) return decision;
  const { caller } = request.asker;
  const isOwn = caller.kind !== 'anonymous' && caller.accountId === request.bucket?.record.owner;
  if (rule === 'owner-only' && !isOwn) return { isAllowed: false, reason: 'no-allow', lacking: 'resource' };
  const names = renamedTo !== undefined && bucket && { from: bucket.record.name, to: renamedTo };
  const lost = names && findLostLimit(request.asker.policies, names, request.contextOf);
  if (lost) return lost;
  if (decision.isAllowed) return decision;
  if (!isOwn || rule === 'new-bucket') return decision;
  if (rule !== 'component') return { isAllowed: true, by: 'extension' };
  // What another account wrote stays its own where it is renamed; composed, it would be the caller's.
  if (await isForeign(request, pair)) return decision;
  return decidePair(request, ['s3:PutObject', resource], bucket);
}

/** Whether another account owns the object. */
async function isForeign(request: AccessRequest, pair: AccessPair): Promise<boolean> {
  const { bucket } = request;
  if (bucket?.record.mayHaveForeignObjects !== true) return false;
  const [, resource, , { versionId } = {}] = pair;
  const stored = await request.storedObject(resource, versionId);
  return stored !== undefined && stored.acl.owner !== bucket.record.owner;
}

async function decidePair(
  request: AccessRequest,
  [action, resource, rule, options = {}]: AccessPair,
  bucket: JudgedBucket | undefined,
): Promise<Decision> {
  const { asker, contextOf } = request;
  const {
    isPrefix = false,
    isOfVersions = false,
    isOfNewObject = false,
    bringsTags = false,
    bringsAcl = false,
    versionId,
    givenTags,
    values,
  } = options;
  const resourceAccount = bucket?.record.owner ?? accountOf(asker.caller) ?? NOBODY;
  const question: AccessQuestion = {
    ...asker,
    action,
    resource,
    isPrefix,
    isOfMany: isPrefix || isOfVersions,
    bringsTags,
    bringsAcl,
    resourceAccount,
    resourcePolicy: bucket && policyFor(bucket, asker.caller),
    contextOf(key) {
      if (RESOURCE_ACCOUNT.has(key)) return resourceAccount;
      // Of the pair alone: what the request says elsewhere would be the caller's to choose.
      if (key === VERSION_ID) return versionId;
      if (key === TAG_KEYS) return givenTags?.map((tag) => tag.key);
      if (key.startsWith(GIVEN_TAG))
        return givenTags?.find((tag) => tag.key === key.slice(GIVEN_TAG.length))?.value;
      // Under the names of keys that the action does not have a caller could send anything: `GET /bucket/key?prefix=...`.
      if (key.startsWith('s3:') && !hasKey(action, key)) return undefined;
      if (OF_COPIES.has(key)) return values?.[key];
      const given = (name: string) =>
        values !== undefined && Object.hasOwn(values, name) ? values[name] : contextOf(name);
      return key === REMAINING_DAYS ? remainingDays(given) : given(key);
    },
  };
  if (options.isBeforeDocument && mayAllowSomewhere(question)) return { isAllowed: true, by: 'extension' };
  if (bucket === undefined) return evaluate(question);
  const need = options.isOfOthersUpload ? undefined : aclNeedOf(action, { isOfNewObject });
  const seesTags = question.isOfMany !== true && mentionsKey(question, TAG_FAMILY);
  const read = seesTags ? await request.storedObject(resource, versionId) : undefined;
  const first = evaluate({
    ...withTags(question, read),
    ...(need?.of === 'bucket' && { aclGrant: () => grantOf(bucket, need, asker.caller) }),
  });
  if (need?.of !== 'object' && !OF_OBJECT_OWNER.has(action)) return first;
  const mayHaveForeign = bucket.record.mayHaveForeignObjects === true && !isOfNewObject;
  if (first.isAllowed ? !mayHaveForeign : first.reason === 'explicit-deny' || need === undefined)
    return first;
  // Of many none is the one whose list could open them all, or that could be missing.
  if (question.isOfMany) return first;
  const stored = seesTags ? read : await request.storedObject(resource, versionId);
  // What is renamed when it comes meanwhile has been allowed to nobody.
  if (stored === undefined && rule === 'unless-denied') return first;
  if (stored === undefined) return decideMissing(request, { first, action, resource, bucket });
  const listed = { acl: stored.acl, mayBePublic: bucket.mayBePublic && stored.isPrivate !== true };
  return evaluate({
    ...withTags(question, stored),
    objectAccount: stored.acl.owner,
    ...(need && { aclGrant: () => grantOf(listed, need, asker.caller) }),
  });
}

function grantOf(
  { acl, mayBePublic }: { acl: Acl; mayBePublic: boolean },
  { permission }: AclNeed,
  caller: Caller,
): AclGrant {
  return aclGrantFor(mayBePublic ? acl : withoutPublicGrants(acl), accountOf(caller), permission);
}

/** What the bucket's policy says to the caller. */
function policyFor({ policy, mayBePublic, record }: JudgedBucket, caller: Caller): NamedPolicy | undefined {
  if (mayBePublic || accountOf(caller) === record.owner) return policy;
  return policy && withoutPublicStatements(policy);
}

/**
 * Of an object that is not there, and that an ACL could have opened: whoever may list its key may learn that it is missing
 * (s3-behaviour 11).
 */
async function decideMissing(
  request: AccessRequest,
  {
    first,
    action,
    resource,
    bucket,
  }: { first: Decision; action: string; resource: string; bucket: JudgedBucket },
): Promise<Decision> {
  const { caller } = request.asker;
  const isOwn = caller.kind !== 'anonymous' && caller.accountId === bucket.record.owner;
  if (first.isAllowed || isOwn || !action.startsWith('s3:Get')) return first;
  const arn = `arn:aws:s3:::${bucket.record.name}`;
  const values = { 's3:prefix': resource.slice(arn.length + 1) };
  const listing = await decidePair(request, ['s3:ListBucket', arn, undefined, { values }], bucket);
  return listing.isAllowed ? listing : first;
}

/** No account has this number: account ids do not begin with 0. */
const NOBODY = '000000000000';
const VERSION_ID = 's3:versionid';
/** What copies alone heed: by a header that anything else passes over nobody does what only copies may. */
const OF_COPIES: ReadonlySet<string> = new Set(['s3:x-amz-copy-source', 's3:x-amz-metadata-directive']);
const TAG_KEYS = 's3:requestobjecttagkeys';
const GIVEN_TAG = 's3:requestobjecttag/';
const REMAINING_DAYS = 's3:object-lock-remaining-retention-days';
const DAY_MS = 86_400_000;
const RESOURCE_ACCOUNT: ReadonlySet<string> = new Set(['aws:resourceaccount', 's3:resourceaccount']);

function withTags(question: AccessQuestion, stored: StoredObject | undefined): AccessQuestion {
  if (stored === undefined || stored.tags.length === 0) return question;
  const { contextOf } = question;
  return {
    ...question,
    contextOf: (key) =>
      key.startsWith(TAG_FAMILY)
        ? stored.tags.find((tag) => tag.key === key.slice(TAG_FAMILY.length))?.value
        : contextOf(key),
  };
}

/** Whole days from the request to the date that it gives, rounded up as AWS does, so that no more than are allowed pass. */
function remainingDays(given: ContextOf): string | undefined {
  const [untilMs, nowMs] = ['s3:object-lock-retain-until-date', 'aws:currenttime'].map((key) =>
    parseIsoDate(String(given(key) ?? '')),
  );
  if (untilMs === undefined || nowMs === undefined) return undefined;
  return String(Math.ceil((untilMs - nowMs) / DAY_MS));
}

function isWithin(resource: string, bucket: BucketRecord): boolean {
  const arn = `arn:aws:s3:::${bucket.name}`;
  return resource === arn || resource.startsWith(`${arn}/`);
}

/** What decided, for logs. */
export function describeDecision(decision: Decision): string {
  if (decision.isAllowed) return typeof decision.by === 'string' ? decision.by : describePolicy(decision.by);
  if (decision.reason === 'explicit-deny') return describePolicy(decision.by);
  return `no ${decision.lacking} policy allows it`;
}

function describePolicy(by: Extract<Decision, { reason: 'explicit-deny' }>['by']): string {
  return `${by.kind} policy ${by.name}, statement ${by.statement}${by.sid === undefined ? '' : ` (${by.sid})`}`;
}
