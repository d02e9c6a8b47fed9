import { expect, test } from 'vitest';
import { BoundedMap } from './bounded-map.ts';

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
