// The document of lifecycle rules, LifecycleConfiguration: read as its schema has it, and written for answers. Every departure
// from the schema is an XmlError. What else rules have to be, buckets/check-lifecycle.ts decides.
import type { Steps } from '../../../base/async/steps.ts';
import { childOf, childrenOf, textOf, type XmlElement, XmlError } from '../../../base/xml/parse-xml.ts';
import { xmlElement, xmlText } from '../../../base/xml/write-xml.ts';
import type { BucketLifecycle, LifecycleFilter, LifecycleRule } from '../../../types/lifecycle.ts';
import type { Tag } from '../../../types/tags.ts';
import type { OperationContext } from '../context.ts';
import { s3Document } from '../request/vendor.ts';
import { writeInTurns } from './list-xml.ts';
import { readEach, requiredText } from './xml-body.ts';

export const LIFECYCLE_ROOT = 'LifecycleConfiguration';

/** A rule as a document gives it; numbers may be out of their bounds. */
export interface GivenRule {
  /** Absent: it is to be made up. */
  id?: string;
  isEnabled: boolean;
  /** Of the rule itself, the old form. A rule has one of the two. */
  prefix?: string;
  filter?: LifecycleFilter;
  expiration?: GivenExpiration;
  noncurrentExpiration?: { days: number; newerVersions?: number };
  abortUploadsAfterDays?: number;
  /** It moves versions to other storage classes. */
  hasTransition: boolean;
}

export type GivenExpiration =
  | { days: number }
  | { atMs: number; text: string }
  | { expiredObjectDeleteMarker: boolean };

/** The children of a rule that move versions to other storage classes. */
const TRANSITIONS = ['Transition', 'NoncurrentVersionTransition'];
const RULE_ELEMENTS = [
  'ID',
  'Status',
  'Prefix',
  'Filter',
  'Expiration',
  'NoncurrentVersionExpiration',
  'AbortIncompleteMultipartUpload',
  ...TRANSITIONS,
];
const SIZES = ['ObjectSizeGreaterThan', 'ObjectSizeLessThan'];
const FILTER_ELEMENTS = ['Prefix', 'Tag', ...SIZES, 'And'];
const AND_ELEMENTS = ['Prefix', 'Tag', ...SIZES];
/** A rule may have ten tags, and more that are refused. */
const RULES_PER_STEP = 50;
/** Of small elements, written in one turn. */
const TURN_CHARACTERS = 64 * 1024;
/** Days, and counts of versions. */
const INT_MAX = 2 ** 31 - 1;
const INTEGER = /^[+-]?\d{1,19}$/;
/** ISO 8601: a date, or a moment. */
const DATE = /^(\d{4}-\d{2}-\d{2})(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{2})?)?$/;

// ---- reading ----

/** The rules of a document whose root has been looked at. Throws XmlError. */
export function readRules(root: XmlElement): Steps<GivenRule[]> {
  requireOnly(root, ['Rule']);
  return readEach(childrenOf(root, 'Rule'), readRule, RULES_PER_STEP);
}

function readRule(element: XmlElement): GivenRule {
  requireOnly(element, RULE_ELEMENTS);
  const id = textOf(element, 'ID');
  const prefix = textOf(element, 'Prefix');
  const filter = childOf(element, 'Filter');
  if ((prefix === undefined) === (filter === undefined)) throw new XmlError('one of Filter and Prefix');
  const rule: GivenRule = {
    ...(id && { id }),
    isEnabled: readStatus(requiredText(element, 'Status')),
    hasTransition: element.children.some(({ name }) => TRANSITIONS.includes(name)),
  };
  if (prefix !== undefined) rule.prefix = prefix;
  if (filter !== undefined) rule.filter = readFilter(filter);
  const expiration = childOf(element, 'Expiration');
  if (expiration !== undefined) rule.expiration = readExpiration(expiration);
  const noncurrent = childOf(element, 'NoncurrentVersionExpiration');
  if (noncurrent !== undefined) rule.noncurrentExpiration = readNoncurrent(noncurrent);
  const abort = childOf(element, 'AbortIncompleteMultipartUpload');
  if (abort !== undefined) {
    requireOnly(abort, ['DaysAfterInitiation']);
    rule.abortUploadsAfterDays = readInt(requiredText(abort, 'DaysAfterInitiation'));
  }
  return rule;
}

function readStatus(text: string): boolean {
  if (text === 'Enabled' || text === 'Disabled') return text === 'Enabled';
  throw new XmlError(`a Status of ${text}`);
}

/** Nothing, one condition, or two and more in And. */
function readFilter(element: XmlElement): LifecycleFilter {
  requireOnly(element, FILTER_ELEMENTS);
  if (element.children.length > 1) throw new XmlError('more than one condition outside of And');
  const and = childOf(element, 'And');
  if (and === undefined) return readConditions(element);
  requireOnly(and, AND_ELEMENTS);
  if (and.children.length < 2) throw new XmlError('And with less than two conditions');
  return readConditions(and);
}

function readConditions(element: XmlElement): LifecycleFilter {
  const filter: LifecycleFilter = {};
  const prefix = textOf(element, 'Prefix');
  if (prefix !== undefined) filter.prefix = prefix;
  const tags = childrenOf(element, 'Tag').map(readTag);
  if (tags.length > 0) filter.tags = tags;
  const greater = textOf(element, 'ObjectSizeGreaterThan');
  if (greater !== undefined) filter.sizeGreaterThan = readInteger(greater);
  const less = textOf(element, 'ObjectSizeLessThan');
  if (less !== undefined) filter.sizeLessThan = readInteger(less);
  return filter;
}

function readTag(element: XmlElement): Tag {
  requireOnly(element, ['Key', 'Value']);
  return { key: requiredText(element, 'Key'), value: requiredText(element, 'Value') };
}

function readExpiration(element: XmlElement): GivenExpiration {
  requireOnly(element, ['Days', 'Date', 'ExpiredObjectDeleteMarker']);
  if (element.children.length !== 1) throw new XmlError('an Expiration of one kind');
  const days = textOf(element, 'Days');
  if (days !== undefined) return { days: readInt(days) };
  const date = textOf(element, 'Date');
  if (date !== undefined) return { atMs: readDate(date.trim()), text: date };
  return { expiredObjectDeleteMarker: readBoolean(requiredText(element, 'ExpiredObjectDeleteMarker')) };
}

function readNoncurrent(element: XmlElement): NonNullable<GivenRule['noncurrentExpiration']> {
  requireOnly(element, ['NoncurrentDays', 'NewerNoncurrentVersions']);
  const days = readInt(requiredText(element, 'NoncurrentDays'));
  const newer = textOf(element, 'NewerNoncurrentVersions');
  return newer === undefined ? { days } : { days, newerVersions: readInt(newer) };
}

function readInt(text: string): number {
  const value = readInteger(text);
  if (Math.abs(value) > INT_MAX) throw new XmlError(`a number of ${text}`);
  return value;
}

function readInteger(text: string): number {
  const digits = text.trim();
  if (!INTEGER.test(digits)) throw new XmlError(`a number of ${text}`);
  return Number(digits);
}

function readBoolean(text: string): boolean {
  const word = text.trim();
  if (word === 'true' || word === '1') return true;
  if (word === 'false' || word === '0') return false;
  throw new XmlError(`a truth of ${text}`);
}

/** ms since epoch. Without a time it is midnight, without a zone UTC. */
function readDate(text: string): number {
  const day = DATE.exec(text)?.[1];
  if (day === undefined) throw new XmlError('a date of another form');
  const hasZone = text.length > day.length && /(?:Z|[+-]\d{2}:?\d{2})$/.test(text.slice(day.length));
  const atMs = Date.parse(text.length === day.length || hasZone ? text : `${text}Z`);
  const dayMs = Date.parse(day);
  // Date.parse takes the 30th of February for the 2nd of March.
  const isThere = !Number.isNaN(dayMs) && new Date(dayMs).toISOString().startsWith(day);
  if (Number.isNaN(atMs) || !isThere) throw new XmlError('no such date');
  return atMs;
}

/** What is passed over here would be a condition or an action that is lost. */
function requireOnly(parent: XmlElement, names: readonly string[]): void {
  const other = parent.children.find(({ name }) => !names.includes(name));
  if (other !== undefined) throw new XmlError(`${other.name} in ${parent.name}`);
}

// ---- writing ----

/** As GetBucketLifecycleConfiguration answers it, in turns: a thousand rules with their tags take some 20 ms. */
export async function lifecycleDocument(
  context: Pick<OperationContext, 'turn'>,
  { rules }: BucketLifecycle,
): Promise<string> {
  return s3Document(LIFECYCLE_ROOT, await writeInTurns(context, rules, ruleXml, TURN_CHARACTERS));
}

function ruleXml(rule: LifecycleRule): string {
  const { id, isEnabled, filter, noncurrentExpiration: noncurrent, abortUploadsAfterDays: abortDays } = rule;
  return xmlElement(
    'Rule',
    xmlText('ID', id),
    rule.hasOldPrefix ? xmlText('Prefix', filter.prefix ?? '') : xmlElement('Filter', filterXml(filter)),
    xmlText('Status', isEnabled ? 'Enabled' : 'Disabled'),
    rule.expiration === undefined ? '' : xmlElement('Expiration', expirationXml(rule.expiration)),
    noncurrent === undefined
      ? ''
      : xmlElement(
          'NoncurrentVersionExpiration',
          xmlText('NoncurrentDays', noncurrent.days),
          xmlText('NewerNoncurrentVersions', noncurrent.newerVersions),
        ),
    abortDays === undefined
      ? ''
      : xmlElement('AbortIncompleteMultipartUpload', xmlText('DaysAfterInitiation', abortDays)),
  );
}

/** Where it is read back from, it has the same form: And from two conditions on. */
function filterXml({ prefix, tags = [], sizeGreaterThan, sizeLessThan }: LifecycleFilter): string {
  const conditions = [
    xmlText('Prefix', prefix),
    ...tags.map(({ key, value }) => xmlElement('Tag', xmlText('Key', key), xmlText('Value', value))),
    xmlText('ObjectSizeGreaterThan', sizeGreaterThan),
    xmlText('ObjectSizeLessThan', sizeLessThan),
  ].filter((condition) => condition !== '');
  return conditions.length > 1 ? xmlElement('And', ...conditions) : conditions.join('');
}

function expirationXml(expiration: NonNullable<LifecycleRule['expiration']>): string {
  if ('days' in expiration) return xmlText('Days', expiration.days);
  if ('atMs' in expiration) return xmlText('Date', new Date(expiration.atMs).toISOString());
  return xmlText('ExpiredObjectDeleteMarker', expiration.expiredObjectDeleteMarker);
}
