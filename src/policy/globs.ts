// Texts with wildcards, ready to be matched: `*` for any characters, `?` for one. A match takes time in proportion to the text's
// length times a thirty-second of the pattern's, whatever they are: no regular expressions, no going back. What searches take is
// counted (match-work.ts).
import { findText, NATIVE_UNITS_MAX } from '../base/text/find-text.ts';
import { spend } from './match-work.ts';

/** A piece of a pattern: text that stands for itself, or a wildcard. */
export type GlobToken =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'any' }
  | { readonly kind: 'one' };

/** Of a part of a pattern. A typed array would take 200 bytes beside its codes, and patterns have thousands of short parts. */
type Codes = readonly number[];

/** The stretches between `*`, in their order. */
export type Glob =
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
      readonly parts: readonly Codes[];
      readonly codesMin: number;
    };

/** Of `?`. */
export const ONE_CODE = -1;

export function makeGlob(tokens: readonly GlobToken[]): Glob {
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

function makeCodes(tokens: readonly GlobToken[]): Glob {
  const parts: number[][] = [[]];
  for (const token of tokens) {
    const part = parts[parts.length - 1] ?? [];
    if (token.kind === 'any') parts.push([]);
    else if (token.kind === 'one') part.push(ONE_CODE);
    else for (const code of codesOf(token.text)) part.push(code);
  }
  const codesMin = parts.reduce((sum, part) => sum + part.length, 0);
  const [first] = tokens;
  const start = first?.kind === 'text' ? first.text : '';
  return { kind: 'codes', start, parts: parts.map((part) => part.slice()), codesMin };
}

/** The pieces that it was made of. */
export function tokensOfGlob(glob: Glob): GlobToken[] {
  switch (glob.kind) {
    case 'all':
      return [{ kind: 'any' }];
    case 'exact':
      return textTokens(glob.text);
    case 'prefix':
      return [...textTokens(glob.text), { kind: 'any' }];
    case 'texts':
      return glob.parts.flatMap((part, at) => [...anyBefore(at), ...textTokens(part)]);
    case 'codes':
      return glob.parts.flatMap((part, at) => [...anyBefore(at), ...part.flatMap(codeTokens)]);
  }
}

function anyBefore(at: number): GlobToken[] {
  return at === 0 ? [] : [{ kind: 'any' }];
}

function textTokens(text: string): GlobToken[] {
  return text === '' ? [] : [{ kind: 'text', text }];
}

function codeTokens(code: number): GlobToken[] {
  return code === ONE_CODE ? [{ kind: 'one' }] : [{ kind: 'text', text: String.fromCodePoint(code) }];
}

/** The code points of a text. */
export function codesOf(text: string): Int32Array {
  const codes = new Int32Array(text.length);
  let count = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.codePointAt(at) ?? 0;
    codes[count++] = code;
    if (code > 0xffff) at++;
  }
  return codes.subarray(0, count);
}

/** To have memory for the codes of a text. */
const CODES_STEPS = 100;

/** Of the text that was asked about last: the statements of a policy ask about the same one. */
let asked: { text: string; codes: Int32Array } = { text: '', codes: new Int32Array(0) };

function codesOfAsked(text: string): Int32Array {
  if (text !== asked.text) {
    spend(CODES_STEPS + text.length);
    asked = { text, codes: codesOf(text) };
  }
  return asked.codes;
}

export function matchGlob(glob: Glob, text: string): boolean {
  switch (glob.kind) {
    case 'all':
      return true;
    case 'exact':
      return isSameText(text, glob.text);
    case 'prefix':
      return beginsWith(text, glob.text);
    case 'texts':
      return glob.unitsMin <= text.length && matchTexts(glob.parts, text);
    case 'codes':
      if (glob.codesMin > text.length || !beginsWith(text, glob.start)) return false;
      return matchCodes(glob, codesOfAsked(text));
  }
}

/** So many characters are looked at one by one; those of longer texts together, so many in a step. */
const SINGLE_UNITS_MAX = 32;
const UNITS_OF_STEP = 16;

/** To hold all of a text against another that is nearly the same. */
function stepsOf(text: string): number {
  return Math.floor(text.length / (text.length > SINGLE_UNITS_MAX ? UNITS_OF_STEP : 2));
}

/** `===`, counted. */
export function isSameText(text: string, other: string): boolean {
  if (text.length !== other.length) return false;
  spend(stepsOf(other));
  return text === other;
}

/** `startsWith`, counted. V8 looks at one character after the other there, and compares stretches at once. */
export function beginsWith(text: string, beginning: string): boolean {
  spend(stepsOf(beginning));
  if (beginning.length <= SINGLE_UNITS_MAX) return text.startsWith(beginning);
  return text.slice(0, beginning.length) === beginning;
}

/** `endsWith`, likewise. */
function endsWith(text: string, ending: string): boolean {
  spend(stepsOf(ending));
  if (ending.length <= SINGLE_UNITS_MAX) return text.endsWith(ending);
  return text.slice(-ending.length) === ending;
}

/** Two parts at least: each is taken where it comes first, the last one at the end. */
function matchTexts(parts: readonly string[], text: string): boolean {
  const [first = ''] = parts;
  const last = parts[parts.length - 1] ?? '';
  const end = text.length - last.length;
  if (!beginsWith(text, first) || !endsWith(text, last)) return false;
  let at = first.length;
  for (let index = 1; index < parts.length - 1; index++) {
    const part = parts[index] ?? '';
    spend(1 + (part.length > NATIVE_UNITS_MAX ? TEXT_STEPS * part.length : stepsOf(part)));
    const found = findText(text, part, at);
    spend(TEXT_STEPS * ((found < 0 ? text.length : found) - at));
    if (found < 0) return false;
    at = found + part.length;
  }
  return at <= end;
}

/** Of a character, where each looks like the beginning of the part. */
const TEXT_STEPS = 2;

function matchCodes(
  { parts, codesMin }: { parts: readonly Codes[]; codesMin: number },
  text: Int32Array,
): boolean {
  if (codesMin > text.length) return false;
  const [first = []] = parts;
  spend(first.length);
  if (parts.length === 1) return text.length === first.length && isAt(first, text, 0);
  const last = parts[parts.length - 1] ?? first;
  const end = text.length - last.length;
  spend(last.length);
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

function isAt(part: Codes, text: Int32Array, from: number): boolean {
  for (let at = 0; at < part.length; at++) {
    if (part[at] !== ONE_CODE && part[at] !== text[from + at]) return false;
  }
  return true;
}

const WORD_BITS = 32;

/** Where the part comes first in the text, from an index on; below 0: nowhere. */
function find(part: Codes, text: Int32Array, from: number): number {
  const isLong = part.length > WORD_BITS;
  spend(1 + part.length * (isLong ? LONG_PART_STEPS : PART_STEPS));
  if (part.length > text.length - from) return -1;
  const found = isLong ? findLong(part, text, from) : findShort(part, text, from);
  const seen = Math.max(0, (found < 0 ? text.length : found + part.length) - from);
  spend(seen * (isLong ? LONG_STEPS + Math.ceil(part.length / WORD_BITS) : 1));
  return found;
}

/** Of a character, beside those for each word. */
const LONG_STEPS = 3;
/** Of a code of the part, to note where it stands, whether or not the text is looked at then. */
const PART_STEPS = 2;
const LONG_PART_STEPS = 25;

const ASCII_CODES = 128;
/** Of a short part, where each code of ASCII stands in it, as bits. Empty between two searches. */
const shortMasks = new Int32Array(ASCII_CODES);

/** By the bits of all beginnings of the part that the text ends in so far ("Shift-And"), in one number. */
function findShort(part: Codes, text: Int32Array, from: number): number {
  if (part.length === 0) return from <= text.length ? from : -1;
  let ones = 0;
  let others: Map<number, number> | undefined;
  for (let at = 0; at < part.length; at++) {
    const code = part[at] as number;
    const bit = 1 << at;
    if (code === ONE_CODE) ones |= bit;
    else if (code < ASCII_CODES) shortMasks[code] = (shortMasks[code] as number) | bit;
    else {
      others ??= new Map();
      others.set(code, (others.get(code) ?? 0) | bit);
    }
  }
  const last = 1 << (part.length - 1);
  let state = 0;
  let found = -1;
  for (let at = from; at < text.length; at++) {
    const code = text[at] as number;
    const mask = code < ASCII_CODES ? (shortMasks[code] as number) : (others?.get(code) ?? 0);
    state = ((state << 1) | 1) & (mask | ones);
    if ((state & last) === 0) continue;
    found = at - part.length + 1;
    break;
  }
  for (const code of part) if (code >= 0 && code < ASCII_CODES) shortMasks[code] = 0;
  return found;
}

/** By the bits of all beginnings of the part that the text ends in so far ("Shift-And"), 32 at a time. */
function findLong(part: Codes, text: Int32Array, from: number): number {
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
function bitsOf(part: Codes, words: number) {
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
