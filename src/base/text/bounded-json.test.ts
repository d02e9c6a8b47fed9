import { expect, test } from 'vitest';
import { parseBoundedJson, TooManyValues } from './bounded-json.ts';

test.each<[name: string, text: string]>([
  ['items', `[${Array(101).fill('0').join(',')}]`],
  ['fields', `{${Array.from({ length: 101 }, (_, at) => `"${at}":0`).join(',')}}`],
  ['lists in lists', '['.repeat(101) + ']'.repeat(101)],
  ['objects in objects', `${'{"a":'.repeat(101)}0${'}'.repeat(101)}`],
  ['lists that are empty', `[${Array(60).fill('[]').join(',')}]`],
  ['items behind a string with quotes', `["\\"[","\\\\",${Array(101).fill('0').join(', ')}]`],
  // JSON.parse would go through all before it refuses it.
  ['lists that do not end', '['.repeat(1_000_000)],
])('too many %s are refused before they are parsed', (_name, text) => {
  expect(() => parseBoundedJson(text, 100)).toThrow(TooManyValues);
});

test('what stands in strings is no value', () => {
  const value = { text: '[{,'.repeat(1000), other: `"${',"[\\'.repeat(1000)}`, list: Array(90).fill(0) };
  expect(parseBoundedJson(JSON.stringify(value), 100)).toEqual(value);
  expect(() => parseBoundedJson(`"${','.repeat(200)}`, 100)).toThrow(SyntaxError);
});
