import { expect, test } from 'vitest';
import { type ContextOf, type ContextValue, matchPattern, mayMatch, parsePattern } from './patterns.ts';

const BOTH = { hasVariables: true, hasWildcards: true };
const nothing: ContextOf = () => undefined;
const from =
  (values: Record<string, ContextValue>): ContextOf =>
  (key) =>
    values[key];
const match = (pattern: string, text: string, contextOf = nothing) =>
  matchPattern(parsePattern(pattern, BOTH), text, contextOf);

test.each<[pattern: string, fits: string[], others: string[]]>([
  ['', [''], ['a']],
  ['*', ['', 'a', 'a/b\n😀'], []],
  ['abc', ['abc'], ['ABC', 'ab', 'abcd']],
  ['a*', ['a', 'abc'], ['ba', '']],
  ['*c', ['c', 'abc', 'cc'], ['ca']],
  ['a*c', ['ac', 'abc', 'acc'], ['a', 'aca']],
  ['aba*aba', ['abaaba', 'abaXaba'], ['aba', 'ababa']],
  ['a*b*c', ['abc', 'aXbXc', 'abbcc'], ['acb', 'ac']],
  ['**a**', ['a', 'XaX'], ['b']],
  ['?', ['a', '😀', '\n', '*'], ['', 'ab', '😀😀']],
  ['a?c', ['abc', 'a😀c', 'a?c'], ['ac', 'abbc']],
  ['?*', ['a', 'ab', '😀'], ['']],
  ['*?b?*', ['abc', 'XXabcXX', 'bbb'], ['ab', 'bc', '']],
  ['*ab?d*yz', ['abcdyz', 'XabXabcdXyz'], ['abcd', 'abdyz']],
  ['a.c[x]', ['a.c[x]'], ['abcx']],
])('%s matches as AWS has it', (pattern, fits, others) => {
  for (const text of fits) expect(match(pattern, text), text).toBe(true);
  for (const text of others) expect(match(pattern, text), text).toBe(false);
});

test('long stretches with ? are found where they are, and nowhere else', () => {
  for (const length of [31, 32, 33, 64, 65, 200]) {
    const part = 'ab'.repeat(length).slice(0, length);
    for (const place of [0, 1, 7, length]) {
      const text = `${'ab'.repeat(50).slice(0, place)}${part}tail`;
      expect(match(`*${part.slice(0, -1)}?t*`, text)).toBe(true);
      expect(match(`*${part.slice(0, -1)}?x*`, text)).toBe(false);
      expect(match(`*?${part}t*`, text)).toBe(place > 0);
    }
  }
});

test('AWS "Policy variables": a value is text, wildcards in it stand for themselves', () => {
  const contextOf = from({ 'aws:username': 'a*n' });
  expect(match('home/${aws:username}/*', 'home/a*n/x', contextOf)).toBe(true);
  expect(match('home/${aws:username}/*', 'home/ann/x', contextOf)).toBe(false);
  expect(match('${aws:username}?', 'a*n😀', contextOf)).toBe(true);
});

test('AWS "Policy variables": names are the same in any case, tags behind the slash are not', () => {
  const contextOf = from({ 'aws:username': 'ann', 'aws:principaltag/Team': 'red' });
  expect(match('${AWS:UserName}', 'ann', contextOf)).toBe(true);
  expect(match('${aws:PrincipalTag/Team}', 'red', contextOf)).toBe(true);
  expect(match('${aws:PrincipalTag/team}', 'red', contextOf)).toBe('no-value');
});

test('AWS "Policy variables": a default stands in for a key that the request lacks', () => {
  const pattern = "${ aws:PrincipalTag/Team , 'all, of us' }/*";
  expect(match(pattern, 'all, of us/x')).toBe(true);
  expect(match(pattern, 'red/x', from({ 'aws:principaltag/Team': 'red' }))).toBe(true);
  expect(match('${aws:username, }', 'x')).toBe('no-value');
  expect(match("${aws:username, ''}", '')).toBe(true);
});

test('AWS "Policy variables": ${*}, ${?} and ${$} are the characters themselves', () => {
  expect(match('a${*}b${?}c${$}', 'a*b?c$')).toBe(true);
  expect(match('a${*}b${?}c${$}', 'aXbXc$')).toBe(false);
});

test('a key with many values is no variable, and what nothing closes is text', () => {
  expect(match('${aws:tagkeys}', 'a', from({ 'aws:tagkeys': ['a'] }))).toBe('no-value');
  expect(match('a${b*', 'a${bc')).toBe(true);
  expect(match('$', '$')).toBe(true);
});

test('policies of 2008 have no variables', () => {
  const pattern = parsePattern('${aws:username}*', { hasVariables: false, hasWildcards: true });
  expect(matchPattern(pattern, '${aws:username}x', from({ 'aws:username': 'ann' }))).toBe(true);
});

test.each<[pattern: string, itself: boolean, longer: boolean]>([
  ['*', true, true],
  ['arn:b', true, false],
  ['arn:b*', true, true],
  ['arn:?', true, false],
  ['arn:b/x', false, true],
  ['arn:${x:y}', true, true],
  ['*b', true, true],
  ['arn:c*', false, false],
  ['arn:', false, false],
  ['a*:b?', false, true],
])('what %s may match', (pattern, itself, longer) => {
  expect(mayMatch(parsePattern(pattern, BOTH), 'arn:b')).toEqual({ itself, longer });
});
