// What answers say of the lifecycle rules of the bucket: when an object expires and when an upload is aborted, and by which rule
// (AWS GetObject, CreateMultipartUpload). Where no rule does so, nothing is looked at.
import { httpDate } from '../../../base/text/http-dates.ts';
import {
  abortOf,
  type BucketLifecycle,
  expirationOf,
  type LifecycleDue,
  type LifecycleRule,
} from '../../../types/lifecycle.ts';
import type { ObjectKey } from '../../../types/names.ts';
import type { Tag } from '../../../types/tags.ts';
import type { OperationContext } from '../context.ts';
import type { AnswerHeaders } from './object-headers.ts';

interface SortedRules {
  /** Those that are on and let current versions expire. */
  expiring: readonly LifecycleRule[];
  /** Those that are on and abort uploads. */
  aborting: readonly LifecycleRule[];
}

/** By the document, which the bucket cache keeps. */
const sortedRules = new WeakMap<BucketLifecycle, SortedRules>();
/** The last day that an HTTP date names. */
const HTTP_DATE_MAX_MS = Date.UTC(9999, 11, 31);

/** Of a current version, as far as rules look at it. */
export interface ExpiringVersion {
  key: ObjectKey;
  sizeBytes: number;
  modifiedAtMs: number;
  tags?: readonly Tag[] | undefined;
}

/** Whether any current version of the bucket expires. */
export function hasExpiration(context: OperationContext): boolean {
  return rulesOf(context).expiring.length > 0;
}

/** The value of x-amz-expiration; undefined where no rule applies. Retention may keep the version longer. */
export function expirationHeader(context: OperationContext, version: ExpiringVersion): string | undefined {
  const { expiring } = rulesOf(context);
  if (expiring.length === 0) return undefined;
  const { tags = [] } = version;
  const due = shownDue(expirationOf(expiring, { ...version, tags: () => tags }, context.lifecycleDayMs));
  return due && `expiry-date="${httpDate(due.atMs)}", rule-id="${shownRuleId(due)}"`;
}

/** The two headers of an upload; none where no rule aborts it. */
export function abortHeaders(
  context: OperationContext,
  upload: { key: ObjectKey; initiatedAtMs: number },
): AnswerHeaders {
  const { aborting } = rulesOf(context);
  const due = aborting.length > 0 && shownDue(abortOf(aborting, upload, context.lifecycleDayMs));
  if (!due) return {};
  return { 'x-amz-abort-date': httpDate(due.atMs), 'x-amz-abort-rule-id': shownRuleId(due) };
}

function rulesOf(context: OperationContext): SortedRules {
  const { lifecycle } = context.bucket().configs;
  if (lifecycle === undefined) return { expiring: [], aborting: [] };
  const known = sortedRules.get(lifecycle);
  if (known !== undefined) return known;
  const enabled = lifecycle.rules.filter(({ isEnabled }) => isEnabled);
  const sorted = {
    expiring: enabled.filter(
      ({ expiration }) => expiration !== undefined && !('expiredObjectDeleteMarker' in expiration),
    ),
    aborting: enabled.filter(({ abortUploadsAfterDays }) => abortUploadsAfterDays !== undefined),
  };
  sortedRules.set(lifecycle, sorted);
  return sorted;
}

function shownDue(due: LifecycleDue | undefined): LifecycleDue | undefined {
  return due !== undefined && due.atMs <= HTTP_DATE_MAX_MS ? due : undefined;
}

/** As AWS shows ids: as they are, spaces too. What a header or its quotes could not hold is percent-encoded. */
function shownRuleId({ ruleId }: LifecycleDue): string {
  return ruleId.replace(/[^\x20-\x7e]|["%\\]/gu, (character) =>
    Buffer.from(character)
      .toString('hex')
      .toUpperCase()
      .replace(/../g, (byte) => `%${byte}`),
  );
}
