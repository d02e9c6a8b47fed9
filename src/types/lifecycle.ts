// Lifecycle of a bucket's objects: the rules as they are stored, one document for each bucket (service 2.3; AWS
// PutBucketLifecycleConfiguration). Which version a rule applies to, and when, is decided here and nowhere else.
//
// Times are ms since epoch. `dayMs` is the length of a lifecycle day: 24 hours, but in tests (setting `lifecycle.day`).
import type { Tag } from './tags.ts';

/** All of what is given has to hold; an empty filter takes every object of the bucket. */
export interface LifecycleFilter {
  prefix?: string;
  tags?: Tag[];
  /** Exclusive bounds, bytes. */
  sizeGreaterThan?: number;
  sizeLessThan?: number;
}

/** A rule that is on or off, with one action at least. Days are counted from midnight to midnight, UTC. */
export interface LifecycleRule {
  id: string;
  isEnabled: boolean;
  filter: LifecycleFilter;
  /** The rule was put with a Prefix of its own instead of a Filter: it is given back so. */
  hasOldPrefix?: true;
  /** Of current versions; exactly one of the three. */
  expiration?: { days: number } | { atMs: number } | { expiredObjectDeleteMarker: boolean };
  /** Of versions that a later one has replaced. */
  noncurrentExpiration?: { days: number; newerVersions?: number };
  /** Days from its start after which an upload that was not completed is aborted. */
  abortUploadsAfterDays?: number;
}

export interface BucketLifecycle {
  rules: LifecycleRule[];
  /** As it was put (AWS x-amz-transition-default-minimum-object-size). It changes nothing: there is one storage class. */
  transitionMinimum?: 'varies_by_storage_class';
}

/** What the filter of a rule looks at, of a version, a delete marker or an upload. */
export interface LifecycleSubject {
  key: string;
  /** Absent of delete markers and uploads, which a rule with bounds of size does not take. */
  sizeBytes?: number;
  /** Asked last, and by rules with tags only: a stored version is decoded for them. */
  tags(): readonly Tag[];
}

/** When the first of the rules that apply is due, and which one it is. */
export interface LifecycleDue {
  atMs: number;
  ruleId: string;
}

/** Of what has no tags: delete markers and uploads. */
export function noTags(): readonly Tag[] {
  return [];
}

export function isInFilter(filter: LifecycleFilter, subject: LifecycleSubject): boolean {
  const { prefix = '', tags, sizeGreaterThan, sizeLessThan } = filter;
  if (!subject.key.startsWith(prefix)) return false;
  if (sizeGreaterThan !== undefined || sizeLessThan !== undefined) {
    const { sizeBytes } = subject;
    if (sizeBytes === undefined) return false;
    if (sizeGreaterThan !== undefined && sizeBytes <= sizeGreaterThan) return false;
    if (sizeLessThan !== undefined && sizeBytes >= sizeLessThan) return false;
  }
  if (tags === undefined || tags.length === 0) return true;
  const has = subject.tags();
  for (const tag of tags) if (!isAmong(has, tag)) return false;
  return true;
}

/** A loop: a thousand rules with ten tags ask a hundred thousand times for one version. */
function isAmong(tags: readonly Tag[], { key, value }: Tag): boolean {
  for (let at = 0; at < tags.length; at++) {
    const tag = tags[at] as Tag;
    if (tag.key === key && tag.value === value) return true;
  }
  return false;
}

/** The first midnight, UTC, behind `atMs`. */
export function nextMidnight(atMs: number, dayMs: number): number {
  return daysAfter(atMs, 0, dayMs);
}

/** The midnight, UTC, of the day behind the moment that is `days` after `fromMs` (AWS "Lifecycle rules: based on an object's age"). */
export function daysAfter(fromMs: number, days: number, dayMs: number): number {
  return (Math.floor(fromMs / dayMs) + days + 1) * dayMs;
}

/** When a current version expires. From its date on a rule with a date takes what was made later, too. */
export function expirationOf(
  rules: readonly LifecycleRule[],
  version: LifecycleSubject & { modifiedAtMs: number },
  dayMs: number,
): LifecycleDue | undefined {
  return earliest(rules, version, ({ expiration }) => {
    if (expiration === undefined || 'expiredObjectDeleteMarker' in expiration) return undefined;
    return 'atMs' in expiration ? expiration.atMs : daysAfter(version.modifiedAtMs, expiration.days, dayMs);
  });
}

/**
 * When a delete marker goes that is the only version of its key. Rules with days or a date take it as they take a current
 * version (AWS "Expiring objects"); rules that name expired delete markers take it at once.
 */
export function markerExpirationOf(
  rules: readonly LifecycleRule[],
  { key, modifiedAtMs }: { key: string; modifiedAtMs: number },
  dayMs: number,
): LifecycleDue | undefined {
  return earliest(rules, { key, tags: noTags }, ({ expiration }) => {
    if (expiration === undefined) return undefined;
    if ('expiredObjectDeleteMarker' in expiration)
      return expiration.expiredObjectDeleteMarker ? 0 : undefined;
    return 'atMs' in expiration ? expiration.atMs : daysAfter(modifiedAtMs, expiration.days, dayMs);
  });
}

/**
 * When a noncurrent version goes. `sinceMs`: when the version was made that has replaced it. `newerCount`: of the
 * noncurrent versions of its key that are newer.
 */
export function noncurrentExpirationOf(
  rules: readonly LifecycleRule[],
  version: LifecycleSubject & { sinceMs: number; newerCount: number },
  dayMs: number,
): LifecycleDue | undefined {
  const { sinceMs, newerCount } = version;
  return earliest(rules, version, ({ noncurrentExpiration }) => {
    if (noncurrentExpiration === undefined) return undefined;
    const { days, newerVersions = 0 } = noncurrentExpiration;
    return newerCount < newerVersions ? undefined : daysAfter(sinceMs, days, dayMs);
  });
}

/** When an upload is aborted that is not completed by then. */
export function abortOf(
  rules: readonly LifecycleRule[],
  { key, initiatedAtMs }: { key: string; initiatedAtMs: number },
  dayMs: number,
): LifecycleDue | undefined {
  return earliest(rules, { key, tags: noTags }, ({ abortUploadsAfterDays: days }) =>
    days === undefined ? undefined : daysAfter(initiatedAtMs, days, dayMs),
  );
}

/** The first moment at which anything may be due that comes to be, or becomes noncurrent, at `fromMs` or later. */
export function earliestOfNew(rules: readonly LifecycleRule[], fromMs: number, dayMs: number): number {
  let least = Number.POSITIVE_INFINITY;
  const afterDays = (days: number) => daysAfter(fromMs, days, dayMs);
  for (const { isEnabled, expiration, noncurrentExpiration, abortUploadsAfterDays } of rules) {
    if (!isEnabled) continue;
    if (noncurrentExpiration !== undefined) least = Math.min(least, afterDays(noncurrentExpiration.days));
    if (abortUploadsAfterDays !== undefined) least = Math.min(least, afterDays(abortUploadsAfterDays));
    if (expiration === undefined) continue;
    if ('days' in expiration) least = Math.min(least, afterDays(expiration.days));
    else if ('atMs' in expiration) least = Math.min(least, Math.max(expiration.atMs, afterDays(0)));
    else if (expiration.expiredObjectDeleteMarker) least = Math.min(least, afterDays(0));
  }
  return least;
}

/** Of enabled rules whose filter takes `subject`; `dueOf` gives the time by one of them. */
function earliest(
  rules: readonly LifecycleRule[],
  subject: LifecycleSubject,
  dueOf: (rule: LifecycleRule) => number | undefined,
): LifecycleDue | undefined {
  let first: LifecycleDue | undefined;
  for (const rule of rules) {
    if (!rule.isEnabled) continue;
    const atMs = dueOf(rule);
    // Its filter is asked only where it would be the first: tags cost.
    if (atMs === undefined || (first !== undefined && first.atMs <= atMs)) continue;
    if (isInFilter(rule.filter, subject)) first = { atMs, ruleId: rule.id };
  }
  return first;
}
