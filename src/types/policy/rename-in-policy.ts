// The text of a bucket policy after its bucket was renamed (service 4.5): the resources that named the bucket by its old name
// name it by the new one, so that each statement goes on to be about the same objects. Nothing else of the text changes:
// neither conditions nor white space. A pattern that fits both names alike stays as it is.
import { isDeepStrictEqual } from 'node:util';
import { LIMITS } from '../limits.ts';

const ARN = 'arn:aws:s3:::';
const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/gsu;
const RESOURCES: ReadonlySet<string> = new Set(['Resource', 'NotResource']);
const STATEMENT = 'Statement';

/** Places of patterns at which letters of names are looked at, some ten ns each: more are not looked at for one policy. */
const PLACES_MAX = 400_000;
/** To go on by one letter takes as long as so many places. */
const LETTER_PLACES = 2;

/** Thrown within `renameInPolicy`. */
class TooLong extends Error {
  override name = 'TooLong';
}

export interface Renaming {
  from: string;
  to: string;
}

/** An object or array of the document that is open. */
interface Open {
  isObject: boolean;
  /** Of an object: the name whose value comes next. */
  name: string | undefined;
}

/**
 * `text` was a valid bucket policy when it was put. undefined: it would become longer than one may be, or has more patterns with
 * wildcards in the place of the name than are looked at.
 */
export function renameInPolicy(text: string, renaming: Renaming): string | undefined {
  try {
    return rename(text, renaming);
  } catch (error) {
    if (error instanceof TooLong) return undefined;
    throw error;
  }
}

function rename(text: string, renaming: Renaming): string {
  const open: Open[] = [];
  let renamed = '';
  let from = 0;
  let sizeBytes = 0;
  let placeCount = 0;
  const onPlaces = (count: number) => {
    placeCount += LETTER_PLACES + count;
    if (placeCount > PLACES_MAX) throw new TooLong();
  };
  for (const { 0: token, index } of text.matchAll(TOKENS)) {
    const inside = open.at(-1);
    let put: string = token;
    if (token === '{' || token === '[') open.push({ isObject: token === '{', name: undefined });
    else if (token === '}' || token === ']') open.pop();
    else if (token === ',' && inside?.isObject) inside.name = undefined;
    else if (token.startsWith('"')) {
      if (inside?.isObject && inside.name === undefined) inside.name = textOf(token);
      else if (isResource(open)) {
        put = renamedToken(token, { renaming, isAlone: inside?.isObject === true, onPlaces });
        renamed += text.slice(from, index) + put;
        from = index + token.length;
      }
    }
    sizeBytes += Buffer.byteLength(put);
    if (sizeBytes > LIMITS.bucketPolicyBytesMax) throw new TooLong();
  }
  return renamed + text.slice(from);
}

/** Within Statement, or one of a list of them, within Resource or a list in it. */
function isResource(open: readonly Open[]): boolean {
  const names = open.filter(({ isObject }) => isObject).map(({ name }) => name ?? '');
  return names.length === 2 && names[0] === STATEMENT && RESOURCES.has(names[1] ?? '');
}

function textOf(token: string): string {
  return String(JSON.parse(token));
}

/** One pattern may become several: a list, unless it stands in one. */
function renamedToken(
  token: string,
  { renaming, isAlone, onPlaces }: { renaming: Renaming; isAlone: boolean; onPlaces: OnPlaces },
): string {
  const pattern = textOf(token);
  const patterns = renamePattern(pattern, renaming, onPlaces);
  if (patterns.length === 1 && patterns[0] === pattern) return token;
  const length = patterns.reduce((sum, each) => sum + each.length, 0);
  if (length > LIMITS.bucketPolicyBytesMax) throw new TooLong();
  const tokens = patterns.map((each) => JSON.stringify(each)).join(',');
  return isAlone && patterns.length > 1 ? `[${tokens}]` : tokens;
}

/** Hears, letter by letter, at how many places of a pattern a letter is looked at. */
type OnPlaces = (placeCount: number) => void;

/**
 * Of a pattern that fits the bucket or what is in it: what it still has to fit behind the bucket's name, in each way.
 */
export function restsBehindName(pattern: string, name: string, onPlaces?: OnPlaces): string[] {
  return restsBehind(pattern, ARN + name, onPlaces);
}

/** The patterns that fit, below the new name, what `pattern` fits below the old one. */
export function renamePattern(pattern: string, { from, to }: Renaming, onPlaces?: OnPlaces): string[] {
  const before = restsBehind(pattern, ARN + from, onPlaces);
  const after = restsBehind(pattern, ARN + to, onPlaces);
  if (before.length === 0 || isDeepStrictEqual(before, after)) return [pattern];
  return before.map((rest) => ARN + to + rest);
}

/**
 * What the pattern still has to fit when it has fitted `prefix`, the bucket or the beginning of its objects. None where it
 * names others, or where a variable decides what it names.
 */
function restsBehind(source: string, prefix: string, onPlaces?: OnPlaces): string[] {
  // Several asterisks fit what one fits; thousands would be thousands of places, each with all behind it.
  const pattern = source.replace(/\*{2,}/g, '*');
  // Letters that stand at its beginning have one way to fit.
  const lettersEnd = pattern.search(/[*?]|\$\{/);
  const literal = Math.min(lettersEnd < 0 ? pattern.length : lettersEnd, prefix.length);
  if (!pattern.startsWith(prefix.slice(0, literal))) return [];
  if (literal === prefix.length && pattern[literal] !== '*')
    return [pattern.slice(literal)].filter(isOfBucket);
  let places: number[] = [];
  reach(places, literal, pattern);
  for (const character of prefix.slice(literal)) {
    if (places.length === 0) return [];
    // An asterisk at its end fits all that comes.
    if (places.at(-2) === pattern.length - 1 && pattern.endsWith('*')) return ['*'];
    onPlaces?.(places.length);
    const next: number[] = [];
    for (const at of places) {
      const one = pattern[at];
      if (one === '$' && pattern[at + 1] === '{') return [];
      if (one === '*') reach(next, at, pattern);
      else if (one === '?' || one === character) reach(next, at + 1, pattern);
    }
    // What a later asterisk may still fit includes what earlier places may.
    const lastAsterisk = next.findLastIndex((at) => pattern[at] === '*');
    places = lastAsterisk > 0 ? next.slice(lastAsterisk) : next;
  }
  // And what stands directly behind it.
  const last = Math.max(-1, ...places.filter((at) => pattern[at] === '*'));
  return places
    .filter((at) => at === last || (at > last && (last === -1 || at > last + 1)))
    .map((at) => pattern.slice(at))
    .filter(isOfBucket);
}

const isOfBucket = (rest: string) => /^(?:$|[/*?])/.test(rest);

/** Adds the place, and the one behind an asterisk, which may fit nothing. Places come in order, the last two maybe once more. */
function reach(places: number[], place: number, pattern: string): void {
  for (let at = place; ; at++) {
    if (!places.includes(at, -2)) places.push(at);
    if (pattern[at] !== '*') return;
  }
}
