// The conditions that a write or a delete carries, as headers or elements say them. They are only read here; the shard
// decides them in its commit (s3-behaviour 25-28). Conditions on what is read are in read-conditions.ts.
import { parseHttpDate } from '../../lib/http-dates.ts';
import { AppError } from '../../model/errors.ts';
import type { WriteConditions } from '../../model/preconditions.ts';
import { invalidArgument } from './arguments.ts';

type Headers = Readonly<Record<string, string>>;
type Condition = keyof WriteConditions;

const HEADERS = {
  ifMatch: 'if-match',
  ifNoneMatch: 'if-none-match',
  ifMatchLastModifiedMs: 'x-amz-if-match-last-modified-time',
  ifMatchSizeBytes: 'x-amz-if-match-size',
} as const satisfies Record<Condition, string>;

const OF_WRITES = ['ifMatch', 'ifNoneMatch'] as const;
const OF_DELETES = ['ifMatch', 'ifMatchLastModifiedMs', 'ifMatchSizeBytes'] as const;

/** The headers that parseWriteConditions reads. */
export const WRITE_CONDITION_HEADERS: readonly string[] = OF_WRITES.map((condition) => HEADERS[condition]);
/** The headers that parseDeleteConditions reads. */
export const DELETE_CONDITION_HEADERS: readonly string[] = OF_DELETES.map((condition) => HEADERS[condition]);

const ENTITY_TAG = /^(W\/)?(?:"([^"]*)"|([^\s",]+))$/;
const ISO_DATE = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z$/;
const SIZE = /^\d{1,15}$/;

/**
 * Of PUT, copy and Complete; undefined where there are none. InvalidArgument for what is no condition, NotImplemented
 * for a list of ETags.
 */
export function parseWriteConditions(headers: Headers): WriteConditions | undefined {
  return parseHeaders(headers, OF_WRITES);
}

/** Of DeleteObject; undefined where there are none. Errors as parseWriteConditions. */
export function parseDeleteConditions(headers: Headers): WriteConditions | undefined {
  return parseHeaders(headers, OF_DELETES);
}

function parseHeaders(headers: Headers, conditions: readonly Condition[]): WriteConditions | undefined {
  const given = conditions.map((condition) => [condition, headers[HEADERS[condition]]] as const);
  return readConditions(Object.fromEntries(given), (condition, value) => {
    const name = HEADERS[condition];
    if (value.includes(',') && condition.endsWith('Match')) {
      return new AppError('NotImplemented', { fields: { Header: name } });
    }
    return invalidArgument({ name, value, message: `The value of ${name} is not valid.` });
  });
}

/** Conditions by their texts; throws what `refuse` makes of one that cannot be read. Undefined where none is given. */
export function readConditions(
  given: Partial<Record<Condition, string | undefined>>,
  refuse: (condition: Condition, text: string) => Error,
): WriteConditions | undefined {
  const read = <Value>(condition: Condition, parse: (text: string) => Value | undefined) => {
    const text = given[condition];
    if (text === undefined) return undefined;
    const value = parse(text.trim());
    if (value === undefined) throw refuse(condition, text);
    return value;
  };
  const ifMatch = read('ifMatch', parseStrongTag);
  const ifNoneMatch = read('ifNoneMatch', parseWeakTag);
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

/** RFC 9110 13.1.1: a weak tag matches no version, so it stays as it is written. */
function parseStrongTag(text: string): string | undefined {
  const match = ENTITY_TAG.exec(text);
  if (match === null) return undefined;
  const [whole, weak, quoted, bare] = match;
  return weak === undefined ? (quoted ?? bare) : whole;
}

/** RFC 9110 13.1.2: weak or not, the tag counts. */
function parseWeakTag(text: string): string | undefined {
  const match = ENTITY_TAG.exec(text);
  return match === null ? undefined : (match[2] ?? match[3]);
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
