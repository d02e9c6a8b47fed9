import { expect, test } from 'vitest';
import { cutOut, keptBytesOf } from '../../tests/support/run/kept-memory.ts';
import { BoundedMap } from './bounded-map.ts';

const MiB = 1024 * 1024;

test('beyond the bound the least recently used entry is removed', () => {
  const map = new BoundedMap<string, number>(3);
  map.set('a', 1);
  map.set('b', 2);
  map.set('c', 3);
  expect(map.get('a')).toBe(1);
  map.set('d', 4);
  expect([map.get('a'), map.get('b'), map.get('c'), map.get('d')]).toEqual([1, undefined, 3, 4]);
  map.set('c', 5);
  map.delete('a');
  expect([map.get('a'), map.get('c')]).toEqual([undefined, 5]);
  map.set('e', 4);
  map.deleteWhere((value) => value === 4);
  expect([map.get('c'), map.get('d'), map.get('e')]).toEqual([5, undefined, undefined]);
  map.clear();
  expect(map.get('c')).toBeUndefined();
});

test('beyond the weight as many go as it takes, the least recently used first', () => {
  const map = new BoundedMap<string, string>(100, { weightMax: 10, weightOf: ({ length }) => length });
  map.set('a', '333');
  map.set('b', '333');
  map.set('c', '333');
  expect(map.get('a')).toBe('333');
  map.set('d', '55555');
  expect(['a', 'b', 'c', 'd'].map((key) => map.get(key)?.length)).toEqual([3, undefined, undefined, 5]);
  // What is replaced or taken out weighs no more.
  map.set('d', '1');
  map.set('e', '666666');
  expect(['a', 'd', 'e'].map((key) => map.get(key)?.length)).toEqual([3, 1, 6]);
  map.deleteWhere((value) => value.length === 6);
  map.delete('a');
  map.set('f', '999999999');
  expect(['d', 'f'].map((key) => map.get(key)?.length)).toEqual([1, 9]);
  map.clear();
  map.set('g', '0000000000');
  expect(map.get('g')).toHaveLength(10);
  map.set('h', 'heavier than all');
  expect([map.get('g'), map.get('h')]).toEqual([undefined, undefined]);
});

test.each(['a-name-of-20-letters', 'ein-Name-für-morgen'])(
  'a key, %s, keeps nothing of the request that it was cut out of',
  async (name) => {
    const map = new BoundedMap<string, number>(1);
    const keptBytes = await keptBytesOf(() => {
      map.set(cutOut(name, 32 * MiB), 1);
      expect(map.get(cutOut(name, 32 * MiB))).toBe(1);
    });
    expect(keptBytes).toBeLessThan(16 * MiB);
    expect(map.get(name)).toBe(1);
  },
);

test('a key beyond Latin-1 is found again', () => {
  const map = new BoundedMap<string, number>(1);
  for (const name of ['ключ к этой записи', 'half of a pair: \ud800']) {
    map.set(name, 1);
    expect(map.get(name), name).toBe(1);
  }
});
