// What a caller may do. Default deny: nothing is allowed that no rule here allows. Rules of this stage: an account owns
// its buckets wholly, and may make and list buckets of its own. ACLs and policies come as further rules.
import { assert } from '../base/assert.ts';
import type { AccountId } from '../types/names.ts';
import type { PolicyAction } from '../types/policy/actions.ts';
import type { BucketRecord } from '../types/records/rows.ts';

/**
 * How a pair is judged where it is not enough that the action is allowed on a resource of the request's bucket.
 * `not-denied`: it need not be allowed, but where it is denied the request is refused (extensions 2.1). `owner`: the
 * same, and the bucket is the caller's account's own (2.2). `new-bucket`: of a bucket that is not there yet.
 */
export type AccessRule = 'not-denied' | 'owner' | 'new-bucket';

export interface AccessRequest {
  /** Undefined: anonymous. */
  accountId: AccountId | undefined;
  /** An action and the ARN that it acts on. */
  pairs: readonly (readonly [action: string, resource: string, rule?: AccessRule])[];
  /** The bucket that the resources are in or are; undefined where there is none yet. */
  bucket: BucketRecord | undefined;
}

const OWN_ACCOUNT_ACTIONS: ReadonlySet<string> = new Set<PolicyAction>([
  's3:CreateBucket',
  's3:ListAllMyBuckets',
]);

/** True only if every pair is allowed. A request of no pair needs no right, and asks for none here. */
export function isAllowed(request: AccessRequest): boolean {
  const { accountId, pairs, bucket } = request;
  for (const [action, resource, rule] of pairs) {
    if (accountId === undefined) return false;
    // Nothing denies what is not asked to be allowed: no rule of this stage denies.
    if (rule === 'not-denied') continue;
    if (bucket === undefined || rule === 'new-bucket') {
      if (!OWN_ACCOUNT_ACTIONS.has(action)) return false;
      continue;
    }
    assert(isWithin(resource, bucket), `${action} is asked of the bucket that it acts on`);
    // The rule `owner`, and for now all there is: the owner may do everything.
    if (bucket.owner !== accountId) return false;
  }
  return true;
}

/**
 * False only if `isAllowed` would allow this caller none of the actions on any key of the bucket: what can be said
 * before the keys are known.
 */
export function isSomeAllowed(request: {
  /** Undefined: anonymous. */
  accountId: AccountId | undefined;
  actions: readonly PolicyAction[];
  bucket: BucketRecord;
}): boolean {
  const { accountId, actions, bucket } = request;
  // The owner may do everything, and nobody else anything.
  return accountId === bucket.owner && actions.length > 0;
}

function isWithin(resource: string, bucket: BucketRecord): boolean {
  const arn = `arn:aws:s3:::${bucket.name}`;
  return resource === arn || resource.startsWith(`${arn}/`);
}
