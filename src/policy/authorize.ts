// What a caller may do. A question is one pair of an action and a resource. A rule that denies refuses the pair, whatever the
// others say. Otherwise one rule must allow it: default deny. The answer names the rule that decided.
//
// Two rules are all: an account may do everything with its own buckets, and it may make and list buckets. They judge by the
// bucket's owner and read no policy documents. evaluate.ts judges by documents, and nothing in the product calls it so far. It
// is going to take the place of `bucketOwner` for identities that have policies. As one more rule beside it, it could only
// deny: `bucketOwner` allows everything to the whole account, so a policy that allows little would limit nobody.
import { assert } from '../base/assert.ts';
import type { AccountId } from '../types/names.ts';
import type { PolicyAction } from '../types/policy/actions.ts';
import type { BucketRecord } from '../types/records/rows.ts';
import type { Tag } from '../types/tags.ts';

/**
 * How a pair is judged where the usual way does not fit: that a rule allows the action on a resource of the request's bucket.
 * - `unless-denied`: every account may, unless a rule denies it (extensions 2.1). Anonymous callers may not.
 * - `owner-only`: the account that owns the request's bucket may, unless a rule denies it (extensions 2.2).
 * - `new-bucket`: a rule must allow it. Rules are asked without a bucket, because the one that the pair names does not exist.
 */
export type AccessRule = 'unless-denied' | 'owner-only' | 'new-bucket';

export type AccessPair = readonly [action: string, resource: string, rule?: AccessRule];

/** The caller as rules judge it: its account. Undefined: anonymous. */
export type Principal = { accountId: AccountId } | undefined;

/** What is known of the request. Each fact is worked out when a rule asks for it first. */
export interface RequestFacts {
  /** Of the client, as far as proxies can be believed. */
  readonly remoteAddress: string;
  readonly isTls: boolean;
  /** Wall clock, ms since epoch. */
  readonly nowMs: number;
  /** By its name in lower case. */
  header(name: string): string | undefined;
  parameter(name: string): string | undefined;
}

/** One pair, with all that a rule may look at. */
export interface Question {
  readonly principal: Principal;
  readonly action: string;
  readonly resource: string;
  /** The bucket that the resource is in or is; undefined where there is none yet. */
  readonly bucket: BucketRecord | undefined;
  readonly facts: RequestFacts;
  /** Of the object that the resource names, as it is stored; empty where there is none. Reads metadata. */
  objectTags(): Promise<readonly Tag[]>;
}

type Verdict = 'allow' | 'deny' | undefined;

export interface Rule {
  /** As logs and explanations name it. */
  readonly name: string;
  /** undefined: the rule says nothing of this question. A promise only where it had to read metadata. */
  judge(question: Question): Verdict | Promise<Verdict>;
  /**
   * Whether it may allow the action on some key of the bucket, before the key is known. Never false where `judge` would allow
   * one.
   */
  mayAllow(question: Pick<Question, 'principal' | 'action' | 'bucket'>): boolean;
}

/** `rule`: who denied or allowed; absent where no rule allowed. */
export type Decision =
  | { readonly isAllowed: true; readonly rule: string }
  | { readonly isAllowed: false; readonly isExplicit: boolean; readonly rule?: string };

export interface AccessRequest {
  readonly principal: Principal;
  readonly pairs: readonly AccessPair[];
  readonly bucket: BucketRecord | undefined;
  readonly facts: RequestFacts;
  /** The tags of the object that a resource names. */
  tagsOf(resource: string): Promise<readonly Tag[]>;
  /** Called with the first pair that is refused, and the reason. */
  onRefused?(pair: AccessPair, decision: Decision): void;
}

export interface Authorizer {
  /** The answer for one pair. */
  decide(question: Question): Promise<Decision>;
  /** True only if every pair is allowed, by its rule. A request of no pair needs no right, and asks for none here. */
  isAllowed(request: AccessRequest): Promise<boolean>;
  /** False only if no rule may allow one of the actions on any key of the bucket. */
  isSomeAllowed(request: {
    principal: Principal;
    actions: readonly PolicyAction[];
    bucket: BucketRecord;
  }): boolean;
}

const OWN_ACCOUNT_ACTIONS: ReadonlySet<string> = new Set<PolicyAction>([
  's3:CreateBucket',
  's3:ListAllMyBuckets',
]);

/** An account may do everything with its buckets and all that is in them. */
const bucketOwner: Rule = {
  name: 'bucket-owner',
  judge: ({ principal, bucket }) => (isOwn(principal, bucket) ? 'allow' : undefined),
  mayAllow: ({ principal, bucket }) => isOwn(principal, bucket),
};

/** An account may make buckets, and list those that it has. */
const ownAccount: Rule = {
  name: 'own-account',
  judge: ({ principal, action, bucket }) =>
    principal !== undefined && bucket === undefined && OWN_ACCOUNT_ACTIONS.has(action) ? 'allow' : undefined,
  mayAllow: () => false,
};

export const RULES: readonly Rule[] = [bucketOwner, ownAccount];

export function createAuthorizer(rules: readonly Rule[] = RULES): Authorizer {
  async function decide(question: Question): Promise<Decision> {
    let allowedBy: string | undefined;
    for (const { name, judge } of rules) {
      const judged = judge(question);
      const verdict = judged instanceof Promise ? await judged : judged;
      if (verdict === 'deny') return { isAllowed: false, isExplicit: true, rule: name };
      if (verdict === 'allow') allowedBy ??= name;
    }
    return allowedBy === undefined
      ? { isAllowed: false, isExplicit: false }
      : { isAllowed: true, rule: allowedBy };
  }

  return {
    decide,
    async isAllowed({ principal, pairs, bucket, facts, tagsOf, onRefused }) {
      for (const pair of pairs) {
        const [action, resource, rule] = pair;
        const of = rule === 'new-bucket' ? undefined : bucket;
        assert(
          of === undefined || isWithin(resource, of),
          `${action} is asked of the bucket that it acts on`,
        );
        const objectTags = () => tagsOf(resource);
        const decision = await decide({ principal, action, resource, bucket: of, facts, objectTags });
        if (isMet(rule, decision, { principal, bucket })) continue;
        onRefused?.(pair, decision);
        return false;
      }
      return true;
    },
    isSomeAllowed: ({ principal, actions, bucket }) =>
      actions.some((action) => rules.some(({ mayAllow }) => mayAllow({ principal, action, bucket }))),
  };
}

function isMet(
  rule: AccessRule | undefined,
  decision: Decision,
  { principal, bucket }: Pick<Question, 'principal' | 'bucket'>,
): boolean {
  const isDenied = !decision.isAllowed && decision.isExplicit;
  if (rule === 'unless-denied') return principal !== undefined && !isDenied;
  if (rule === 'owner-only') return isOwn(principal, bucket) && !isDenied;
  return decision.isAllowed;
}

function isOwn(principal: Principal, bucket: BucketRecord | undefined): boolean {
  return principal !== undefined && bucket?.owner === principal.accountId;
}

function isWithin(resource: string, bucket: BucketRecord): boolean {
  const arn = `arn:aws:s3:::${bucket.name}`;
  return resource === arn || resource.startsWith(`${arn}/`);
}
