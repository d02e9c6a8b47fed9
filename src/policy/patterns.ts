// Patterns of policies: text with wildcards (globs.ts) and policy variables (`${aws:username}`, `${key, 'default'}`; AWS "IAM
// policy elements: Variables and tags").
import { normalizeKey } from './condition-keys.ts';
import {
  beginsWith,
  codesOf,
  type Glob,
  type GlobToken,
  makeGlob,
  matchGlob,
  ONE_CODE,
  tokensOfGlob,
} from './globs.ts';
import { COMPARISON_STEPS, spend } from './match-work.ts';

/** The value of a condition key in a request; undefined: the request has none. A list: of a key with many values. */
export type ContextValue = string | readonly string[];

/** Looks a key up: its name in lower case, a tag's key behind the `/` as the policy has it. Called when it is needed. */
export type ContextOf = (key: string) => ContextValue | undefined;

/** `no-value`: a variable of it has none in this request, so that it matches nothing. */
export type Match = boolean | 'no-value';

const ANY = '*';
const ONE = '?';

interface Variable {
  readonly key: string;
  readonly fallback: string | undefined;
}

type Token = GlobToken | { readonly kind: 'variable'; readonly variable: Variable };

/** A pattern that is ready to be matched. */
export interface Pattern {
  /** As the policy has it. */
  readonly source: string;
  /** Of one with variables; tokens of others are in their glob. */
  readonly tokens: readonly Token[];
  /** What every text that it matches begins with, whatever its variables are. */
  readonly start: string;
  /** Condition keys that its variables name. */
  readonly keys: readonly string[];
  /** Absent where variables must be put in first. */
  readonly glob: Glob | undefined;
}

export interface PatternOptions {
  readonly hasVariables: boolean;
  readonly hasWildcards: boolean;
}

export function parsePattern(source: string, options: PatternOptions): Pattern {
  return makePattern(source, parseTokens(source, options));
}

/**
 * The parts of a pattern between its first colons, `count` of them at most; the last one has the rest. Colons in the names of
 * variables part nothing.
 */
export function parsePatternParts(source: string, options: PatternOptions & { count: number }): Pattern[] {
  const parts: Token[][] = [[]];
  for (const token of parseTokens(source, options)) {
    if (token.kind !== 'text') {
      parts.at(-1)?.push(token);
      continue;
    }
    let from = 0;
    for (let at = token.text.indexOf(':'); at >= 0 && parts.length < options.count; ) {
      parts.at(-1)?.push({ kind: 'text', text: token.text.slice(from, at) });
      parts.push([]);
      from = at + 1;
      at = token.text.indexOf(':', from);
    }
    parts.at(-1)?.push({ kind: 'text', text: token.text.slice(from) });
  }
  return parts.map((tokens) => makePattern(source, tokens));
}

/** Thousands of patterns share it. */
const NONE: readonly never[] = [];

function makePattern(source: string, tokens: readonly Token[]): Pattern {
  const [first] = tokens;
  const start = first?.kind === 'text' ? first.text : '';
  const keys = tokens.flatMap((token) => (token.kind === 'variable' ? [token.variable.key] : []));
  if (keys.length > 0) return { source, tokens, start, keys, glob: undefined };
  return { source, tokens: NONE, start, keys: NONE, glob: makeGlob(putIn(tokens, NONE)) };
}

function tokensOf({ tokens, glob }: Pattern): readonly Token[] {
  return glob === undefined ? tokens : tokensOfGlob(glob);
}

/** Of a part of a pattern that is made anew for its variables. */
const TOKEN_STEPS = 64;

export function matchPattern(pattern: Pattern, text: string, contextOf: ContextOf): Match {
  spend(COMPARISON_STEPS);
  if (pattern.glob !== undefined) return matchGlob(pattern.glob, text);
  const values = valuesOf(pattern, contextOf);
  if (values === undefined) return 'no-value';
  if (!beginsWith(text, pattern.start)) return false;
  const filled = putIn(pattern.tokens, values);
  // To make it costs more than to search by it, where it has many parts.
  spend(TOKEN_STEPS * filled.length);
  return matchGlob(makeGlob(filled), text);
}

/** The text of a pattern without wildcards, or undefined where a variable of it has no value. */
export function textOf(pattern: Pattern, contextOf: ContextOf): string | undefined {
  const values = valuesOf(pattern, contextOf);
  if (values === undefined) return undefined;
  return putIn(tokensOf(pattern), values)
    .map((token) => (token.kind === 'text' ? token.text : ''))
    .join('');
}

/**
 * A pattern as it is written with the values of its variables in their places. undefined where one has no value, or where that or
 * other text of the pattern has characters that stand for others in patterns.
 */
export function sourceWithValues(pattern: Pattern, contextOf: ContextOf): string | undefined {
  if (pattern.keys.length === 0) return pattern.source;
  const values = valuesOf(pattern, contextOf);
  const tokens = values && putIn(pattern.tokens, values);
  if (tokens === undefined || tokens.some((token) => token.kind === 'text' && /[*?$]/.test(token.text)))
    return undefined;
  return tokens
    .map((token) => (token.kind === 'text' ? token.text : token.kind === 'any' ? ANY : ONE))
    .join('');
}

const ANY_CODE = -2;
/** Of a place that a text is held against. */
const PLACE_STEPS = 8;

/**
 * What the pattern may match, whatever values its variables have: the text itself, and longer ones that begin with it.
 * For short texts: takes time in proportion to the square of the text's length.
 */
export function mayMatch(pattern: Pattern, text: string): { itself: boolean; longer: boolean } {
  spend(text.length);
  const codes = codesOf(text);
  // Between two wildcards of any length stands a character at least: further units are not reached.
  const units = firstUnits(tokensOf(pattern), 2 * codes.length + 2);
  /** In which step a place was reached last. */
  const reached = new Int32Array(units.length + 1).fill(-1);
  let places: number[] = [];
  const reach = (list: number[], step: number, from: number) => {
    for (let place = from; reached[place] !== step; place++) {
      reached[place] = step;
      list.push(place);
      if (units[place] !== ANY_CODE) break;
    }
  };
  reach(places, 0, 0);
  for (const [at, code] of codes.entries()) {
    const next: number[] = [];
    for (const place of places) {
      const unit = units[place];
      if (unit === ANY_CODE) reach(next, at + 1, place);
      else if (unit === ONE_CODE || unit === code) reach(next, at + 1, place + 1);
    }
    spend(PLACE_STEPS * places.length);
    places = next;
  }
  return { itself: places.includes(units.length), longer: places.some((place) => place < units.length) };
}

/** How many of the texts that begin with `prefix` the pattern matches. `some` also where only values of variables decide it. */
export function reachOf(pattern: Pattern, prefix: string, contextOf: ContextOf): 'none' | 'some' | 'all' {
  // What ends in a wildcard and matches the prefix matches all that begins with it.
  const isOpen = tokensOf(pattern).at(-1)?.kind === 'any';
  if (isOpen && matchPattern(pattern, prefix, contextOf) === true) return 'all';
  const { itself, longer } = mayMatch(pattern, prefix);
  return itself || longer ? 'some' : 'none';
}

/** Its characters and wildcards, so many of them; variables as wildcards. */
function firstUnits(tokens: readonly Token[], count: number): number[] {
  const units: number[] = [];
  for (const token of tokens) {
    if (units.length >= count) break;
    if (token.kind === 'text') units.push(...codesOf(token.text.slice(0, 2 * count)));
    else if (token.kind === 'one') units.push(ONE_CODE);
    else if (units.at(-1) !== ANY_CODE) units.push(ANY_CODE);
  }
  return units;
}

function parseTokens(source: string, { hasVariables, hasWildcards }: PatternOptions): Token[] {
  const tokens: Token[] = [];
  let mayOpen = hasVariables;
  let text = '';
  let from = 0;
  const flush = () => {
    if (text !== '') tokens.push({ kind: 'text', text });
    text = '';
  };
  for (let at = 0; at < source.length; at++) {
    const character = source[at];
    if (hasWildcards && (character === ANY || character === ONE)) {
      text += source.slice(from, at);
      from = at + 1;
      flush();
      if (character === ONE) tokens.push({ kind: 'one' });
      else if (tokens.at(-1)?.kind !== 'any') tokens.push({ kind: 'any' });
    } else if (mayOpen && character === '$' && source[at + 1] === '{') {
      const end = source.indexOf('}', at);
      // Nothing closes this one, nor any behind it: they are text.
      if (end < 0) {
        mayOpen = false;
        continue;
      }
      text += source.slice(from, at);
      from = end + 1;
      const body = source.slice(at + 2, end);
      if (body === ANY || body === ONE || body === '$') text += body;
      else {
        flush();
        tokens.push({ kind: 'variable', variable: parseVariable(body) });
      }
      at = end;
    }
  }
  text += source.slice(from);
  flush();
  return tokens;
}

function parseVariable(body: string): Variable {
  const comma = body.indexOf(',');
  if (comma < 0) return { key: normalizeKey(body.trim()), fallback: undefined };
  const quoted = body.slice(comma + 1).trim();
  const isQuoted = quoted.length >= 2 && quoted.startsWith("'") && quoted.endsWith("'");
  return {
    key: normalizeKey(body.slice(0, comma).trim()),
    fallback: isQuoted ? quoted.slice(1, -1) : undefined,
  };
}

/** Code units of all values in one pattern; longer ones count as none. */
const VALUES_UNITS_MAX = 32 * 1024;
/** To look a variable up, and of each code unit that is put in. */
const VARIABLE_STEPS = 100;
const VALUE_STEPS = 16;

/** Of its variables, in their order; undefined: one of them has none. */
function valuesOf({ tokens }: Pattern, contextOf: ContextOf): string[] | undefined {
  const values: string[] = [];
  let units = 0;
  for (const token of tokens) {
    if (token.kind !== 'variable') continue;
    spend(VARIABLE_STEPS);
    const value = contextOf(token.variable.key);
    // Keys with many values are no variables.
    const text = typeof value === 'string' ? value : token.variable.fallback;
    if (text === undefined) return undefined;
    units += text.length;
    if (units > VALUES_UNITS_MAX) return undefined;
    values.push(text);
  }
  spend(VALUE_STEPS * units);
  return values;
}

/** Values are text: wildcards in them stand for themselves. */
function putIn(tokens: readonly Token[], values: readonly string[]): GlobToken[] {
  let at = 0;
  return tokens.map((token) =>
    token.kind === 'variable' ? { kind: 'text', text: values[at++] ?? '' } : token,
  );
}
