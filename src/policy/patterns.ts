// Patterns of policies: text with wildcards (`*`: any characters, `?`: one character) and policy variables
// (`${aws:username}`, `${key, 'default'}`; AWS "IAM policy elements: Variables and tags"). A match takes time in proportion
// to the text's length times a thirty-second of the pattern's, whatever they are: no regular expressions, no going back.
import { normalizeKey } from './condition-keys.ts';

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

type Token =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'any' | 'one' }
  | { readonly kind: 'variable'; readonly variable: Variable };

/** A pattern that is ready to be matched. */
export interface Pattern {
  /** As the policy has it. */
  readonly source: string;
  readonly tokens: readonly Token[];
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

function makePattern(source: string, tokens: readonly Token[]): Pattern {
  const keys = tokens.flatMap((token) => (token.kind === 'variable' ? [token.variable.key] : []));
  return { source, tokens, keys, glob: keys.length === 0 ? makeGlob(tokens) : undefined };
}

export function matchPattern(pattern: Pattern, text: string, contextOf: ContextOf): Match {
  if (pattern.glob !== undefined) return matchGlob(pattern.glob, text);
  const values = valuesOf(pattern, contextOf);
  if (values === undefined) return 'no-value';
  const [first] = pattern.tokens;
  if (first?.kind === 'text' && !text.startsWith(first.text)) return false;
  return matchGlob(makeGlob(putIn(pattern.tokens, values)), text);
}

/** The text of a pattern without wildcards, or undefined where a variable of it has no value. */
export function textOf(pattern: Pattern, contextOf: ContextOf): string | undefined {
  const values = valuesOf(pattern, contextOf);
  if (values === undefined) return undefined;
  return putIn(pattern.tokens, values)
    .map((token) => (token.kind === 'text' ? token.text : ''))
    .join('');
}

const ANY_CODE = -2;

/**
 * What the pattern may match, whatever values its variables have: the text itself, and longer ones that begin with it.
 * For short texts: takes time in proportion to the square of the text's length.
 */
export function mayMatch(pattern: Pattern, text: string): { itself: boolean; longer: boolean } {
  const codes = codesOf(text);
  // Between two wildcards of any length stands a character at least: further units are not reached.
  const units = firstUnits(pattern.tokens, 2 * codes.length + 2);
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
    places = next;
  }
  return { itself: places.includes(units.length), longer: places.some((place) => place < units.length) };
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

/** Of its variables, in their order; undefined: one of them has none. */
function valuesOf({ tokens }: Pattern, contextOf: ContextOf): string[] | undefined {
  const values: string[] = [];
  for (const token of tokens) {
    if (token.kind !== 'variable') continue;
    const value = contextOf(token.variable.key);
    // Keys with many values are no variables.
    const text = typeof value === 'string' ? value : token.variable.fallback;
    if (text === undefined) return undefined;
    values.push(text);
  }
  return values;
}

/** Values are text: wildcards in them stand for themselves. */
function putIn(tokens: readonly Token[], values: readonly string[]): Token[] {
  let at = 0;
  return tokens.map((token) =>
    token.kind === 'variable' ? { kind: 'text', text: values[at++] ?? '' } : token,
  );
}

/** The stretches between `*`, in their order. */
type Glob =
  | { readonly kind: 'all' }
  | { readonly kind: 'exact'; readonly text: string }
  | { readonly kind: 'prefix'; readonly text: string }
  | {
      readonly kind: 'texts';
      readonly parts: readonly string[];
      readonly unitsMin: number;
    }
  /** With `?`: of code points, so that it stands for one character of any plane. */
  | {
      readonly kind: 'codes';
      /** As they begin, before the first wildcard. */
      readonly start: string;
      readonly parts: readonly Int32Array[];
      readonly codesMin: number;
    };

const ONE_CODE = -1;

function makeGlob(tokens: readonly Token[]): Glob {
  if (tokens.some(({ kind }) => kind === 'one')) return makeCodes(tokens);
  const parts: string[] = [''];
  for (const token of tokens) {
    if (token.kind === 'text') parts[parts.length - 1] += token.text;
    else parts.push('');
  }
  const [first = '', second] = parts;
  if (second === undefined) return { kind: 'exact', text: first };
  if (parts.every((part, at) => at === 0 || part === '')) {
    return first === '' ? { kind: 'all' } : { kind: 'prefix', text: first };
  }
  return { kind: 'texts', parts, unitsMin: parts.reduce((sum, part) => sum + part.length, 0) };
}

function makeCodes(tokens: readonly Token[]): Glob {
  const parts: number[][] = [[]];
  for (const token of tokens) {
    const part = parts[parts.length - 1] ?? [];
    if (token.kind === 'any') parts.push([]);
    else if (token.kind === 'one') part.push(ONE_CODE);
    else if (token.kind === 'text') for (const code of codesOf(token.text)) part.push(code);
  }
  const codesMin = parts.reduce((sum, part) => sum + part.length, 0);
  const [first] = tokens;
  const start = first?.kind === 'text' ? first.text : '';
  return { kind: 'codes', start, parts: parts.map((part) => Int32Array.from(part)), codesMin };
}

function codesOf(text: string): Int32Array {
  const codes = new Int32Array(text.length);
  let count = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.codePointAt(at) ?? 0;
    codes[count++] = code;
    if (code > 0xffff) at++;
  }
  return codes.subarray(0, count);
}

/** Of the text that was asked about last: the statements of a policy ask about the same one. */
let asked: { text: string; codes: Int32Array } = { text: '', codes: new Int32Array(0) };

function codesOfAsked(text: string): Int32Array {
  if (text !== asked.text) asked = { text, codes: codesOf(text) };
  return asked.codes;
}

function matchGlob(glob: Glob, text: string): boolean {
  switch (glob.kind) {
    case 'all':
      return true;
    case 'exact':
      return text === glob.text;
    case 'prefix':
      return text.startsWith(glob.text);
    case 'texts':
      return glob.unitsMin <= text.length && matchTexts(glob.parts, text);
    case 'codes':
      if (glob.codesMin > text.length || !text.startsWith(glob.start)) return false;
      return matchCodes(glob, codesOfAsked(text));
  }
}

/** Two parts at least: each is taken where it comes first, the last one at the end. */
function matchTexts(parts: readonly string[], text: string): boolean {
  const [first = ''] = parts;
  const last = parts[parts.length - 1] ?? '';
  const end = text.length - last.length;
  if (!text.startsWith(first) || !text.endsWith(last)) return false;
  let at = first.length;
  for (let index = 1; index < parts.length - 1; index++) {
    const part = parts[index] ?? '';
    const found = text.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return at <= end;
}

function matchCodes(
  { parts, codesMin }: { parts: readonly Int32Array[]; codesMin: number },
  text: Int32Array,
): boolean {
  if (codesMin > text.length) return false;
  const [first = new Int32Array(0)] = parts;
  if (parts.length === 1) return text.length === first.length && isAt(first, text, 0);
  const last = parts[parts.length - 1] ?? first;
  const end = text.length - last.length;
  if (!isAt(first, text, 0) || !isAt(last, text, end)) return false;
  let at = first.length;
  for (let index = 1; index < parts.length - 1; index++) {
    const part = parts[index] ?? first;
    const found = find(part, text.subarray(0, end), at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return at <= end;
}

function isAt(part: Int32Array, text: Int32Array, from: number): boolean {
  for (let at = 0; at < part.length; at++) {
    if (part[at] !== ONE_CODE && part[at] !== text[from + at]) return false;
  }
  return true;
}

const WORD_BITS = 32;

/** Where the part comes first in the text, from an index on; below 0: nowhere. */
function find(part: Int32Array, text: Int32Array, from: number): number {
  if (part.length > WORD_BITS) return findLong(part, text, from);
  for (let at = from; at + part.length <= text.length; at++) if (isAt(part, text, at)) return at;
  return -1;
}

/** By the bits of all beginnings of the part that the text ends in so far ("Shift-And"), 32 at a time. */
function findLong(part: Int32Array, text: Int32Array, from: number): number {
  const words = Math.ceil(part.length / WORD_BITS);
  const { ones, often, seldom } = bitsOf(part, words);
  const state = new Int32Array(words);
  const last = part.length - 1;
  for (let at = from; at < text.length; at++) {
    const code = text[at] ?? 0;
    const mask = often.get(code);
    // Of the others only these places are looked at: where they go on from the ones before them.
    const places =
      mask === undefined
        ? (seldom.get(code) ?? NO_PLACES).filter((place) => goesOn(state, place))
        : NO_PLACES;
    advance(state, mask ?? ones);
    for (const place of places) set(state, place);
    if (isSet(state, last)) return at - last;
  }
  return -1;
}

const NO_PLACES: readonly number[] = [];

/** Each beginning one character further, where the mask has that place. */
function advance(state: Int32Array, mask: Int32Array): void {
  let carry = 1;
  for (let word = 0; word < state.length; word++) {
    // Within bounds. To ask whether it is there would take as long again.
    const bits = state[word] as number;
    state[word] = ((bits << 1) | carry) & (mask[word] as number);
    carry = bits >>> 31;
  }
}

function goesOn(state: Int32Array, place: number): boolean {
  return place === 0 || isSet(state, place - 1);
}

/** Where each code stands in the part: as bits for those that are there often, else as a list. So both stay small. */
function bitsOf(part: Int32Array, words: number) {
  const seldom = new Map<number, number[]>();
  for (let at = 0; at < part.length; at++) {
    const code = part[at] ?? 0;
    const places = seldom.get(code);
    if (places === undefined) seldom.set(code, [at]);
    else places.push(at);
  }
  const ones = new Int32Array(words);
  for (const place of seldom.get(ONE_CODE) ?? []) set(ones, place);
  seldom.delete(ONE_CODE);
  const often = new Map<number, Int32Array>();
  for (const [code, places] of seldom) {
    if (places.length <= words) continue;
    const mask = ones.slice();
    for (const place of places) set(mask, place);
    often.set(code, mask);
  }
  return { ones, often, seldom };
}

function set(bits: Int32Array, place: number): void {
  bits[place >>> 5] = (bits[place >>> 5] ?? 0) | (1 << (place & 31));
}

function isSet(bits: Int32Array, place: number): boolean {
  return ((bits[place >>> 5] ?? 0) & (1 << (place & 31))) !== 0;
}
