import { expect, test } from 'vitest';
import { withinOneTurn } from '../../tests/support/run/loop-watch.ts';
import { commonPrefixOf, markerBytes, pageAfter } from './listing.ts';

test.each([
  ['a/b/c', { prefix: '', delimiter: '/' }, 'a/'],
  ['a/b/c', { prefix: 'a/', delimiter: '/' }, 'a/b/'],
  ['a/b/c', { prefix: 'a', delimiter: '/' }, 'a/'],
  ['a/b/c', { prefix: 'a/b/c', delimiter: '/' }, undefined],
  ['a--b', { prefix: 'a-', delimiter: '--' }, undefined],
  ['a--b', { prefix: '', delimiter: '--' }, 'a--'],
  ['abc', { prefix: '', delimiter: '' }, undefined],
  ['abc', { prefix: '' }, undefined],
])('%s under %j', (key, grouping, expected) => {
  expect(commonPrefixOf(key, grouping)).toBe(expected);
});

test.each([
  ['a', { kind: 'key', after: 'a' }],
  ['a/', { kind: 'prefix', after: 'a/' }],
  ['a/b', { kind: 'prefix', after: 'a/' }],
])('a page after %s', (marker, expected) => {
  expect(pageAfter(marker, { prefix: '', delimiter: '/' })).toEqual(expected);
});

test('a marker outside of the prefix is a key', () => {
  expect(pageAfter('z/y', { prefix: 'a/', delimiter: '/' })).toEqual({ kind: 'key', after: 'z/y' });
});

test('markers are cut behind the longest key', () => {
  expect(markerBytes('é'.repeat(2000))).toHaveLength(1025);
  expect(markerBytes('ab')).toEqual(Uint8Array.of(97, 98));
});

test('whatever the delimiter, the keys of a page are soon grouped', () => {
  const keys = Array.from({ length: 1000 }, (_, at) => `${'a'.repeat(1020)}${at}`);
  const delimiter = `${'a'.repeat(250)}b${'a'.repeat(255)}`;
  withinOneTurn(() => {
    for (const key of keys) expect(commonPrefixOf(key, { prefix: '', delimiter })).toBe(undefined);
  });
});
