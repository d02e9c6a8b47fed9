// The text of a bucket policy after its bucket was renamed (service 4.5): the resources that named the bucket by its old name
// name it by the new one, so that each statement goes on to be about the same objects. Nothing else of the text changes:
// neither conditions nor white space. A pattern that fits both names alike stays as it is.
import { isDeepStrictEqual } from 'node:util';

const ARN = 'arn:aws:s3:::';
const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/gsu;
const RESOURCES: ReadonlySet<string> = new Set(['Resource', 'NotResource']);
const STATEMENT = 'Statement';

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

/** `text` was a valid bucket policy when it was put. */
export function renameInPolicy(text: string, renaming: Renaming): string {
  const open: Open[] = [];
  let renamed = '';
  let from = 0;
  for (const { 0: token, index } of text.matchAll(TOKENS)) {
    const inside = open.at(-1);
    if (token === '{' || token === '[') open.push({ isObject: token === '{', name: undefined });
    else if (token === '}' || token === ']') open.pop();
    else if (token === ',' && inside?.isObject) inside.name = undefined;
    else if (token.startsWith('"')) {
      if (inside?.isObject && inside.name === undefined) inside.name = textOf(token);
      else if (isResource(open)) {
        renamed += text.slice(from, index) + renamedToken(token, renaming, inside?.isObject === true);
        from = index + token.length;
      }
    }
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
function renamedToken(token: string, renaming: Renaming, isAlone: boolean): string {
  const pattern = textOf(token);
  const patterns = renamePattern(pattern, renaming);
  if (patterns.length === 1 && patterns[0] === pattern) return token;
  const tokens = patterns.map((each) => JSON.stringify(each)).join(',');
  return isAlone && patterns.length > 1 ? `[${tokens}]` : tokens;
}

/**
 * Of a pattern that fits the bucket or what is in it: what it still has to fit behind the bucket's name, in each way. `onPlaces`
 * hears, letter by letter, at how many places of the pattern a letter is looked at.
 */
export function restsBehindName(
  pattern: string,
  name: string,
  onPlaces?: (placeCount: number) => void,
): string[] {
  return restsBehind(pattern, ARN + name, onPlaces);
}

/** The patterns that fit, below the new name, what `pattern` fits below the old one. */
export function renamePattern(pattern: string, { from, to }: Renaming): string[] {
  const before = restsBehind(pattern, ARN + from);
  const after = restsBehind(pattern, ARN + to);
  if (before.length === 0 || isDeepStrictEqual(before, after)) return [pattern];
  return before.map((rest) => ARN + to + rest);
}

/**
 * What the pattern still has to fit when it has fitted `prefix`, the bucket or the beginning of its objects. None where it
 * names others, or where a variable decides what it names.
 */
function restsBehind(source: string, prefix: string, onPlaces?: (placeCount: number) => void): string[] {
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
    onPlaces?.(places.length);
    const next: number[] = [];
    for (const at of places) {
      const one = pattern[at];
      if (one === '$' && pattern[at + 1] === '{') return [];
      if (one === '*') reach(next, at, pattern);
      else if (one === '?' || one === character) reach(next, at + 1, pattern);
    }
    // What a later asterisk may still fit includes what earlier places may.
    places = next.slice(
      Math.max(
        0,
        next.findLastIndex((at) => pattern[at] === '*'),
      ),
    );
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
