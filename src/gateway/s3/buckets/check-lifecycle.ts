// What lifecycle rules have to be beyond their schema, with the answers of AWS to what they are not: counts and ids, then each
// rule, then rules beside one another. Storage classes come last: what AWS would refuse is refused as AWS does.
import { toBase64, utf8 } from '../../../base/bytes/bytes.ts';
import type { RandomPort } from '../../../ports/clock.ts';
import { AppError } from '../../../types/errors.ts';
import type { LifecycleFilter, LifecycleRule } from '../../../types/lifecycle.ts';
import { LIMITS } from '../../../types/limits.ts';
import { findTagFault } from '../../../types/tags.ts';
import { invalidArgument } from '../request/arguments.ts';
import { invalidTag } from '../request/tagging.ts';
import type { GivenExpiration, GivenRule } from '../xml/lifecycle-xml.ts';

/** Characters of an id. */
const ID_UNITS_MAX = 255;
const NEWER_VERSIONS_MAX = 100;
/** AWS's bound of sizes in filters. */
const SIZE_BYTES_MAX = 1_099_511_627_776_000;
const DAY_MS = 24 * 3600 * 1000;

/** The rules to store; `makeId` gives ids that are absent. InvalidArgument, InvalidRequest, InvalidTag, NotImplemented. */
export function checkRules(
  given: readonly GivenRule[],
  makeId: (position: number) => string,
): LifecycleRule[] {
  if (given.length === 0) throw refused('At least one lifecycle rule must be specified.');
  if (given.length > LIMITS.lifecycleRulesMax) {
    const message = `The number of lifecycle rules must not exceed the allowed limit of ${LIMITS.lifecycleRulesMax} rules.`;
    throw refused(message);
  }
  requireIds(given);
  const isOldForm = given[0]?.prefix !== undefined;
  const rules = given.map((rule, at) => ({ id: rule.id ?? makeId(at), ...checkRule(rule, isOldForm) }));
  if (isOldForm) refuseOverlaps(given);
  if (given.some(({ hasTransition }) => hasTransition)) {
    const message = 'There is one storage class: rules cannot move objects to another one.';
    throw new AppError('NotImplemented', { message });
  }
  return rules;
}

function requireIds(given: readonly GivenRule[]): void {
  const ids = new Set<string>();
  for (const { id } of given) {
    if (id === undefined) continue;
    if (id.length > ID_UNITS_MAX)
      throw outOf('ID', id, `ID length should not exceed allowed limit of ${ID_UNITS_MAX}`);
    if (ids.has(id)) throw outOf('ID', id, 'Rule ID must be unique. Found same ID for more than one rule');
    ids.add(id);
  }
}

/**
 * `isOldForm`: the first rule has a Prefix of its own. Then all have, and none has what came with Filter; AWS calls the new
 * form "Lifecycle V2".
 */
function checkRule(given: GivenRule, isOldForm: boolean): Omit<LifecycleRule, 'id'> {
  const { isEnabled, expiration, noncurrentExpiration, abortUploadsAfterDays } = given;
  if (isOldForm && given.filter !== undefined)
    throw refused('Filter element can only be used in Lifecycle V2.');
  if (!isOldForm && given.prefix !== undefined) {
    const message =
      'Base level prefix cannot be used in Lifecycle V2, prefixes are only supported in the Filter.';
    throw refused(message);
  }
  const filter = given.filter ?? { prefix: given.prefix ?? '' };
  checkFilter(filter);
  if (!ACTIONS.some(([, isIn]) => isIn(given)))
    throw refused('At least one action needs to be specified in a rule');
  if (expiration !== undefined) checkExpiration(expiration, filter);
  if (noncurrentExpiration !== undefined) checkNoncurrent(noncurrentExpiration, isOldForm);
  if (abortUploadsAfterDays !== undefined) {
    const place = { name: 'DaysAfterInitiation', action: 'AbortIncompleteMultipartUpload' };
    requirePositive(abortUploadsAfterDays, place);
    requirePlainFilter(filter, place.action);
  }
  return {
    isEnabled,
    filter,
    ...(isOldForm && { hasOldPrefix: true as const }),
    ...(expiration && { expiration: storedExpiration(expiration) }),
    ...(noncurrentExpiration && { noncurrentExpiration }),
    ...(abortUploadsAfterDays !== undefined && { abortUploadsAfterDays }),
  };
}

function checkFilter({ prefix, tags, sizeGreaterThan, sizeLessThan }: LifecycleFilter): void {
  if (prefix !== undefined && Buffer.byteLength(prefix) > LIMITS.keyBytesMax) {
    const message = `Rule prefix cannot be longer than maximum allowed key length of ${LIMITS.keyBytesMax}`;
    throw outOf('Prefix', prefix, message);
  }
  const fault = findTagFault(tags ?? []);
  if (fault?.kind === 'repeated-key') throw refused('Duplicate Tag Keys are not allowed.');
  if (fault !== undefined) throw invalidTag(fault);
  requireSize(sizeGreaterThan, { name: 'ObjectSizeGreaterThan', least: 0 });
  requireSize(sizeLessThan, { name: 'ObjectSizeLessThan', least: 1 });
  if (sizeGreaterThan !== undefined && sizeLessThan !== undefined && sizeGreaterThan >= sizeLessThan)
    throw refused("'ObjectSizeLessThan' has to be a value greater than 'ObjectSizeGreaterThan'.");
}

function requireSize(size: number | undefined, { name, least }: { name: string; least: number }): void {
  if (size === undefined || (size >= least && size <= SIZE_BYTES_MAX)) return;
  throw refused(`'${name}' should be between ${least} and ${SIZE_BYTES_MAX}.`);
}

function checkExpiration(expiration: GivenExpiration, filter: LifecycleFilter): void {
  if ('days' in expiration) requirePositive(expiration.days, { name: 'Days', action: 'Expiration' });
  else if ('expiredObjectDeleteMarker' in expiration) requirePlainFilter(filter, 'ExpiredObjectDeleteMarker');
  else if (expiration.atMs % DAY_MS !== 0)
    throw outOf('Date', expiration.text, "'Date' must be at midnight GMT");
}

function storedExpiration(expiration: GivenExpiration): NonNullable<LifecycleRule['expiration']> {
  return 'atMs' in expiration ? { atMs: expiration.atMs } : expiration;
}

function checkNoncurrent(
  { days, newerVersions }: NonNullable<GivenRule['noncurrentExpiration']>,
  isOldForm: boolean,
): void {
  const action = 'NoncurrentVersionExpiration';
  requirePositive(days, { name: 'NoncurrentDays', action });
  if (newerVersions === undefined) return;
  const name = 'NewerNoncurrentVersions';
  if (isOldForm) throw refused(`${name} element can only be used in Lifecycle V2.`);
  requirePositive(newerVersions, { name, action });
  if (newerVersions <= NEWER_VERSIONS_MAX) return;
  const message = `'${name}' for ${action} action must not exceed ${NEWER_VERSIONS_MAX}`;
  throw outOf(name, String(newerVersions), message);
}

function requirePositive(value: number, { name, action }: { name: string; action: string }): void {
  if (value > 0) return;
  throw outOf(name, String(value), `'${name}' for ${action} action must be a positive integer`);
}

/** What has neither tags nor a size: markers and uploads. */
function requirePlainFilter({ tags, sizeGreaterThan, sizeLessThan }: LifecycleFilter, action: string): void {
  if (tags !== undefined) throw refused(`${action} cannot be specified with Tags.`);
  if (sizeGreaterThan !== undefined || sizeLessThan !== undefined)
    throw refused(`${action} cannot be specified with Object Size.`);
}

/** The kinds of action, by AWS's names, and whether a rule has one. */
const ACTIONS: readonly (readonly [type: string, isIn: (rule: GivenRule) => boolean])[] = [
  ['Transition', ({ hasTransition }) => hasTransition],
  ['Expiration', ({ expiration }) => expiration !== undefined],
  ['NoncurrentVersionExpiration', ({ noncurrentExpiration }) => noncurrentExpiration !== undefined],
  ['AbortIncompleteMultipartUpload', ({ abortUploadsAfterDays }) => abortUploadsAfterDays !== undefined],
];

/** In the old form no prefix comes twice, and of one kind of action none begins another. */
function refuseOverlaps(given: readonly GivenRule[]): void {
  const all = given.map((rule, at) => ({ rule, at, prefix: rule.prefix ?? '' }));
  // In this order a prefix that begins any other begins the next one.
  all.sort((a, b) => (a.prefix === b.prefix ? a.at - b.at : a.prefix < b.prefix ? -1 : 1));
  for (const [index, { prefix }] of all.entries()) {
    if (all[index + 1]?.prefix === prefix) throw refused(`Found two rules with same prefix '${prefix}'`);
  }
  for (const [type, isIn] of ACTIONS) {
    const alike = all.filter(({ rule }) => isIn(rule));
    for (const [index, outer] of alike.entries()) {
      const inner = alike[index + 1];
      if (inner === undefined || !inner.prefix.startsWith(outer.prefix)) continue;
      const [first, second] = outer.at < inner.at ? [outer, inner] : [inner, outer];
      throw refused(
        `Found overlapping prefixes '${first.prefix}' and '${second.prefix}' for same action type '${type}'`,
      );
    }
  }
}

/** A random UUID in base64, as AWS makes them. */
export function makeRuleId(random: RandomPort): string {
  const bytes = random.bytes(16);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const uuid = Buffer.from(bytes)
    .toString('hex')
    .replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  return toBase64(utf8(uuid));
}

function refused(message: string): AppError {
  return new AppError('InvalidRequest', { message });
}

function outOf(name: string, value: string, message: string): AppError {
  return invalidArgument({ name, value, message });
}
