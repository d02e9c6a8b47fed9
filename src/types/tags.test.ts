import { expect, test } from 'vitest';
import { findTagFault, type Tag } from './tags.ts';

const faultOf = (...tags: [key: string, value: string][]) =>
  findTagFault(tags.map(([key, value]): Tag => ({ key, value })))?.kind;
const many = (count: number) =>
  Array.from({ length: count }, (_, index): [string, string] => [`k${index}`, '']);

test.each([
  ['none', []],
  ['ten', many(10)],
  ['the longest', [['k'.repeat(128), 'v'.repeat(256)]]],
  ['an empty value', [['k', '']]],
  ['all marks', [['+-=._:/@ ', '+-=._:/@ ']]],
  ['letters, digits and spaces of any language', [['ключ\u3000鍵٣', '\u00a0é½']]],
  ['letters outside of the basic plane', [['𠀀'.repeat(64), '𠀀'.repeat(128)]]],
  [
    'keys that differ in case',
    [
      ['k', '1'],
      ['K', '2'],
    ],
  ],
  ['a value like the reserved prefix', [['k', 'aws:x']]],
  [
    'a key like the reserved prefix',
    [
      ['aws', ''],
      ['awsx:y', ''],
    ],
  ],
] as [string, [string, string][]][])('%s', (_name, tags) => {
  expect(faultOf(...tags)).toBeUndefined();
});

test.each([
  ['too-many', many(11)],
  ['key', [['', 'v']]],
  ['key', [['k'.repeat(129), '']]],
  ['key', [[`${'𠀀'.repeat(64)}k`, '']]],
  ['value', [['k', 'v'.repeat(257)]]],
  ['value', [['k', `${'𠀀'.repeat(128)}v`]]],
  ['reserved-key', [['aws:cost', '']]],
  ['reserved-key', [['AWS:cost', '']]],
  [
    'repeated-key',
    [
      ['k', '1'],
      ['k', '1'],
    ],
  ],
  ...[
    'a,b',
    'a;b',
    'a?b',
    'a!b',
    'a*b',
    'a#b',
    'a%b',
    'a&b',
    '(',
    '\t',
    '\n',
    '\u0000',
    '😀',
    '\ud800',
  ].flatMap((text) => [
    ['key', [[text, 'v']]],
    ['value', [['k', text]]],
  ]),
] as [string, [string, string][]][])('%s: %j', (kind, tags) => {
  expect(faultOf(...tags)).toBe(kind);
});
