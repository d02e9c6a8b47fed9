// The condition operators (AWS "IAM JSON policy elements: Condition operators"): what each compares, and how values of
// policies are understood before the first request comes.

import { must } from '../../base/assert.ts';
import { isSameText } from '../globs.ts';
import { PARSE_STEPS, PARSE_UNIT_STEPS, spend } from '../match-work.ts';
import {
  type ContextOf,
  type Match,
  matchPattern,
  parsePattern,
  parsePatternParts,
  textOf,
} from '../patterns.ts';
import { isInRange, parseAddressRange } from './addresses.ts';
import {
  compareDecimals,
  parseBinary,
  parseBool,
  parseDate,
  parseDecimal,
  parseWantedDecimal,
} from './scalars.ts';

/** A value of a policy, understood: whether a value of a request fits it. `unknown`: nobody can tell. */
export type ValueTest = (text: string, contextOf: ContextOf) => Match | 'unknown';

interface OperatorRow {
  readonly name: string;
  /** The condition holds where the request's value fits none of the policy's. */
  readonly isNegated: boolean;
  /** undefined: the policy's value is none of this operator's. */
  understand(value: string, options: { hasVariables: boolean }): UnderstoodValue | undefined;
}

export interface UnderstoodValue {
  readonly test: ValueTest;
  /** Condition keys that its variables name. */
  readonly keys: readonly string[];
}

type Understand = OperatorRow['understand'];

/** Thousands of values share it. */
const NO_KEYS: readonly never[] = [];

function equals(fold: (text: string) => string): Understand {
  // Statements of one request ask about the same value: it is folded once.
  let last = { text: '', folded: fold('') };
  const folded = (text: string) => {
    if (text === last.text) return last.folded;
    spend(text.length);
    last = { text, folded: fold(text) };
    return last.folded;
  };
  return (value, { hasVariables }) => {
    const pattern = parsePattern(value, { hasVariables, hasWildcards: false });
    if (pattern.keys.length === 0) {
      return { keys: NO_KEYS, test: isTextOf(fold(textOf(pattern, () => undefined) ?? ''), folded) };
    }
    return {
      keys: pattern.keys,
      test(text, contextOf) {
        const wanted = textOf(pattern, contextOf);
        return wanted === undefined ? 'no-value' : isSameText(folded(text), fold(wanted));
      },
    };
  };
}

/** It keeps the text alone, and not what it was made of. */
function isTextOf(wanted: string, folded: (text: string) => string): ValueTest {
  return (text) => isSameText(folded(text), wanted);
}

/**
 * Code units of a request's value that a pattern is held against. Of a longer one, which only a header can be, nobody knows
 * whether it fits: no Allow is widened by it, and no Deny is passed by (condition.ts). What all patterns take is bounded besides
 * (match-work.ts).
 */
export const COMPARED_UNITS_MAX = 8192;

const like: Understand = (value, { hasVariables }) => {
  const pattern = parsePattern(value, { hasVariables, hasWildcards: true });
  return {
    keys: pattern.keys,
    test: (text, contextOf) =>
      text.length > COMPARED_UNITS_MAX ? 'unknown' : matchPattern(pattern, text, contextOf),
  };
};

const ARN_PARTS = 6;
/** To go to parts that lie apart in memory. */
const ARN_STEPS = 100;

/** Each of an ARN's six parts by itself: a wildcard goes beyond no colon but in the last one. A lone `*` is any ARN. */
const arn: Understand = (value, { hasVariables }) => {
  const parts = parsePatternParts(value, { hasVariables, hasWildcards: true, count: ARN_PARTS });
  const isAny = value === '*';
  return {
    keys: parts.flatMap(({ keys }) => keys),
    test(text, contextOf) {
      if (text.length > COMPARED_UNITS_MAX) return 'unknown';
      const texts = partsOfArn(text);
      if (texts === undefined) return false;
      if (isAny) return true;
      if (parts.length < ARN_PARTS) return false;
      spend(ARN_STEPS);
      for (let at = 0; at < ARN_PARTS; at++) {
        const match = matchPattern(must(parts[at], 'as many as an ARN has'), texts[at] ?? '', contextOf);
        if (match !== true) return match;
      }
      return true;
    },
  };
};

/** Of the text that was asked about last: statements of one request ask about the same one. */
let lastArn: { text: string; parts: string[] | undefined } = { text: '', parts: undefined };

function partsOfArn(text: string): string[] | undefined {
  if (text === lastArn.text) return lastArn.parts;
  spend(text.length);
  lastArn = { text, parts: splitArn(text) };
  return lastArn.parts;
}

function splitArn(text: string): string[] | undefined {
  const parts: string[] = [];
  let from = 0;
  while (parts.length < ARN_PARTS - 1) {
    const at = text.indexOf(':', from);
    if (at < 0) return undefined;
    parts.push(text.slice(from, at));
    from = at + 1;
  }
  parts.push(text.slice(from));
  return parts[0] === 'arn' ? parts : undefined;
}

/** Of values without variables: both sides are parsed, then compared. */
function parsed<Value>(
  parse: (text: string) => Value | undefined,
  fits: (requested: Value, wanted: Value) => boolean,
  {
    parseWanted = parse,
    whenNone = false,
  }: {
    /** Of the policy's value, where it has other bounds. */
    parseWanted?: (text: string) => Value | undefined;
    /** What is said of a request's value that cannot be parsed. */
    whenNone?: false | 'unknown';
  } = {},
): Understand {
  // Statements of one request ask about the same value: it is parsed once.
  let last: { text: string; value: Value | undefined } = { text: '', value: parse('') };
  return (value) => {
    const wanted = parseWanted(value);
    if (wanted === undefined) return undefined;
    return {
      keys: NO_KEYS,
      test(text) {
        if (text !== last.text) {
          spend(PARSE_STEPS + PARSE_UNIT_STEPS * text.length);
          last = { text, value: parse(text) };
        }
        return last.value === undefined ? whenNone : fits(last.value, wanted);
      },
    };
  };
}

const address: Understand = (value) => {
  const range = parseAddressRange(value);
  return range && { keys: NO_KEYS, test: (text) => isInRange(text, range) };
};

type Order = (order: number) => boolean;
/** What is no number to us (1e9, 0x1F) may be one to whom it is for. Likewise dates. */
const numeric = (holds: Order) =>
  parsed(parseDecimal, (one, other) => holds(compareDecimals(one, other)), {
    parseWanted: parseWantedDecimal,
    whenNone: 'unknown',
  });
const date = (holds: Order) => parsed(parseDate, (one, other) => holds(one - other), { whenNone: 'unknown' });
const isSame = <Value>(one: Value, other: Value) => one === other;
const isEqual: Order = (order) => order === 0;
const isLess: Order = (order) => order < 0;
const isLessOrEqual: Order = (order) => order <= 0;
const isGreater: Order = (order) => order > 0;
const isGreaterOrEqual: Order = (order) => order >= 0;
const exact = equals((text) => text);
const folded = equals((text) => text.toLowerCase());

const ROWS: readonly (readonly [name: string, understand: Understand, negated?: 'negated'])[] = [
  ['StringEquals', exact],
  ['StringNotEquals', exact, 'negated'],
  ['StringEqualsIgnoreCase', folded],
  ['StringNotEqualsIgnoreCase', folded, 'negated'],
  ['StringLike', like],
  ['StringNotLike', like, 'negated'],
  ['NumericEquals', numeric(isEqual)],
  ['NumericNotEquals', numeric(isEqual), 'negated'],
  ['NumericLessThan', numeric(isLess)],
  ['NumericLessThanEquals', numeric(isLessOrEqual)],
  ['NumericGreaterThan', numeric(isGreater)],
  ['NumericGreaterThanEquals', numeric(isGreaterOrEqual)],
  ['DateEquals', date(isEqual)],
  ['DateNotEquals', date(isEqual), 'negated'],
  ['DateLessThan', date(isLess)],
  ['DateLessThanEquals', date(isLessOrEqual)],
  ['DateGreaterThan', date(isGreater)],
  ['DateGreaterThanEquals', date(isGreaterOrEqual)],
  ['Bool', parsed(parseBool, isSame)],
  ['BinaryEquals', parsed(parseBinary, isSame)],
  ['IpAddress', address],
  ['NotIpAddress', address, 'negated'],
  ['ArnEquals', arn],
  ['ArnLike', arn],
  ['ArnNotEquals', arn, 'negated'],
  ['ArnNotLike', arn, 'negated'],
];

const OPERATORS: ReadonlyMap<string, OperatorRow> = new Map(
  ROWS.map(([name, understand, negated]) => [name, { name, isNegated: negated !== undefined, understand }]),
);

export const NULL_OPERATOR = 'Null';
export const OPERATOR_NAMES: readonly string[] = [...OPERATORS.keys(), NULL_OPERATOR];

export type SetQualifier = 'ForAllValues' | 'ForAnyValue';

/** An operator as a policy names it: `ForAnyValue:StringLikeIfExists`. */
export interface NamedOperator {
  readonly qualifier: SetQualifier | undefined;
  readonly isIfExists: boolean;
  /** undefined: Null, which asks whether the key is there. */
  readonly row: OperatorRow | undefined;
}

const QUALIFIERS: readonly SetQualifier[] = ['ForAllValues', 'ForAnyValue'];
const IF_EXISTS = 'IfExists';

/** undefined: there is no such operator. Names are as AWS writes them, case and all; Null takes no IfExists. */
export function findOperator(text: string): NamedOperator | undefined {
  const qualifier = QUALIFIERS.find((name) => text.startsWith(`${name}:`));
  const rest = qualifier === undefined ? text : text.slice(qualifier.length + 1);
  if (rest === NULL_OPERATOR) return { qualifier, isIfExists: false, row: undefined };
  const isIfExists = rest.endsWith(IF_EXISTS);
  const row = OPERATORS.get(isIfExists ? rest.slice(0, -IF_EXISTS.length) : rest);
  return row && { qualifier, isIfExists, row };
}
