import { expect, test } from 'vitest';
import { editDistance, nearestWord } from './nearest-word.ts';

test('the distance counts insertions, removals and replacements', () => {
  expect(editDistance('', 'abc')).toBe(3);
  expect(editDistance('listen', 'listen')).toBe(0);
  expect(editDistance('lisen', 'listen')).toBe(1);
  expect(editDistance('kitten', 'sitting')).toBe(3);
});

test('a misspelt word finds its word, an unrelated one finds none', () => {
  const words = ['dataDir', 'listen', 'domain'];
  expect(nearestWord('datadir', words)).toBe('dataDir');
  expect(nearestWord('lisen', words)).toBe('listen');
  expect(nearestWord('replication', words)).toBeUndefined();
});
