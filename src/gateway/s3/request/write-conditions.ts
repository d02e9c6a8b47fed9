// The conditions that a write or a delete carries, as headers or elements say them. They are only read here; the shard
// decides them in its commit (s3-behaviour 25-28). Conditions on what is read are in read-conditions.ts.
import { parseHttpDate } from '../../../base/text/http-dates.ts';
import type { AccessPair } from '../../../policy/authorize.ts';
import type { ContextValue } from '../../../policy/patterns.ts';
import { LIMITS } from '../../../types/limits.ts';
import type { VersionId } from '../../../types/names.ts';
import type { ETagChoice, WriteConditions } from '../../../types/preconditions.ts';
import { invalidArgument } from './arguments.ts';

type Headers = Readonly<Record<string, string>>;
type Condition = keyof WriteConditions;

const HEADERS = {
  ifMatch: 'if-match',
  ifNoneMatch: 'if-none-match',
  ifMatchLastModifiedMs: 'x-amz-if-match-last-modified-time',
  ifMatchSizeBytes: 'x-amz-if-match-size',
} as const satisfies Record<Condition, string>;

/** To conditions a list without values is a key that the request does not have. */
const NO_VALUE: readonly string[] = [];

const TARGET_PREFIX = 'x-svc-destination-';
const OF_WRITES = ['ifMatch', 'ifNoneMatch'] as const;
const OF_DELETES = ['ifMatch', 'ifMatchLastModifiedMs', 'ifMatchSizeBytes'] as const;

/** The headers that parseWriteConditions reads. */
export const WRITE_CONDITION_HEADERS: readonly string[] = OF_WRITES.map((condition) => HEADERS[condition]);
/** The headers that parseTargetConditions reads. */
export const TARGET_CONDITION_HEADERS: readonly string[] = WRITE_CONDITION_HEADERS.map(
  (name) => TARGET_PREFIX + name,
);
/** The headers that parseDeleteConditions reads. */
export const DELETE_CONDITION_HEADERS: readonly string[] = OF_DELETES.map((condition) => HEADERS[condition]);

const ENTITY_TAG = /(W\/)?"([^"]*)"|[^\s",]+/g;
const ISO_DATE = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z$/;
const SIZE = /^\d{1,15}$/;

/** Of PUT, copy and Complete; undefined where there are none. InvalidArgument for what is no condition. */
export function parseWriteConditions(headers: Headers): WriteConditions | undefined {
  return parseHeaders(headers, OF_WRITES);
}

/** Of DeleteObject; undefined where there are none. Errors as parseWriteConditions. */
export function parseDeleteConditions(headers: Headers): WriteConditions | undefined {
  return parseHeaders(headers, OF_DELETES);
}

/** On the destination of a MOVE (extensions 2.1): the same under names of their own. */
export function parseTargetConditions(headers: Headers): WriteConditions | undefined {
  return parseHeaders(headers, OF_WRITES, TARGET_PREFIX);
}

/** Values of condition keys for what is asked about the destination of a MOVE: the usual headers are about its source. */
export function targetConditionValues(headers: Headers): Readonly<Record<string, ContextValue>> {
  return Object.fromEntries(
    WRITE_CONDITION_HEADERS.map((name) => [`s3:${name}`, headers[TARGET_PREFIX + name] ?? NO_VALUE]),
  );
}

/** Of a deletion that has no condition of its own: what the request's header says is about nothing that goes. */
export const NO_CONDITION_VALUES: Readonly<Record<string, ContextValue>> = { 's3:if-match': NO_VALUE };

/**
 * What a condition needs besides: whether it holds says what is stored, to whoever tries one ETag or size after the other. Only
 * whether something is there may be asked by those who cannot read it (AWS "Conditional writes", "Conditional deletes").
 */
export function conditionAccess(
  resource: string,
  conditions: WriteConditions | undefined,
  versionId?: VersionId,
): readonly AccessPair[] {
  const asked = Object.values(conditions ?? {});
  if (asked.every((value) => value === '*')) return [];
  const action = versionId === undefined ? 's3:GetObject' : 's3:GetObjectVersion';
  return [[action, resource, undefined, { versionId }]];
}

function parseHeaders(
  headers: Headers,
  conditions: readonly Condition[],
  prefix = '',
): WriteConditions | undefined {
  const nameOf = (condition: Condition) => prefix + HEADERS[condition];
  const given = conditions.map((condition) => [condition, headers[nameOf(condition)]] as const);
  return readConditions(Object.fromEntries(given), (condition, value) => {
    const name = nameOf(condition);
    return invalidArgument({ name, value, message: `The value of ${name} is not valid.` });
  });
}

/** Of a condition in a document, which may have thousands: one ETag is 40 characters. */
export const ELEMENT_CONDITION_CHARACTERS_MAX = 256;

/**
 * Conditions by their texts; throws what `refuse` makes of one that cannot be read, or is longer than `charactersMax`. Undefined
 * where none is given.
 */
export function readConditions(
  given: Partial<Record<Condition, string | undefined>>,
  refuse: (condition: Condition, text: string) => Error,
  charactersMax = LIMITS.headerBytesMax,
): WriteConditions | undefined {
  const read = <Value>(condition: Condition, parse: (text: string) => Value | undefined) => {
    const text = given[condition];
    if (text === undefined) return undefined;
    const value = text.length > charactersMax ? undefined : parse(text.trim());
    if (value === undefined) throw refuse(condition, text);
    return value;
  };
  const ifMatch = read('ifMatch', parseStrongTags);
  const ifNoneMatch = read('ifNoneMatch', parseWeakTags);
  const modifiedMs = read('ifMatchLastModifiedMs', parseDate);
  const sizeBytes = read('ifMatchSizeBytes', parseSize);
  const conditions: WriteConditions = {
    ...(ifMatch !== undefined && { ifMatch }),
    ...(ifNoneMatch !== undefined && { ifNoneMatch }),
    ...(modifiedMs !== undefined && { ifMatchLastModifiedMs: modifiedMs }),
    ...(sizeBytes !== undefined && { ifMatchSizeBytes: sizeBytes }),
  };
  return Object.keys(conditions).length === 0 ? undefined : conditions;
}

/** RFC 9110 13.1.1: a weak tag matches no version. */
function parseStrongTags(text: string): ETagChoice | undefined {
  const tags = parseTags(text);
  return tags === '*' ? tags : tags?.filter(({ isWeak }) => !isWeak).map(({ tag }) => tag);
}

/** RFC 9110 13.1.2: weak or not, a tag counts. */
function parseWeakTags(text: string): ETagChoice | undefined {
  const tags = parseTags(text);
  return tags === '*' ? tags : tags?.map(({ tag }) => tag);
}

/**
 * '*' alone, or entity tags with commas between them (RFC 9110 5.6.1: an empty member is none). The quotes may be missing,
 * as AWS takes them.
 */
function parseTags(text: string): '*' | { tag: string; isWeak: boolean }[] | undefined {
  if (text === '*') return text;
  const tags: { tag: string; isWeak: boolean }[] = [];
  const members = text.replace(ENTITY_TAG, (bare: string, weak?: string, quoted?: string) => {
    tags.push({ tag: quoted ?? bare, isWeak: weak !== undefined });
    return bare === '*' ? bare : 'x';
  });
  const isList = members.split(',').every((member) => ['x', ''].includes(member.trim()));
  return isList && tags.length > 0 ? tags : undefined;
}

/** HTTP's form in headers; SDKs write either in elements. */
function parseDate(text: string): number | undefined {
  if (!ISO_DATE.test(text)) return parseHttpDate(text);
  const timeMs = Date.parse(text);
  return Number.isNaN(timeMs) ? undefined : timeMs;
}

function parseSize(text: string): number | undefined {
  return SIZE.test(text) ? Number(text) : undefined;
}
