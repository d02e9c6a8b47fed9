import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { placesOf, plant } from './plant.ts';
import { PLANTED_BUGS } from './planted-bugs.ts';

describe('every planted bug has its place', () => {
  test.each(PLANTED_BUGS.map((bug) => [bug.name, bug] as const))('%s', (_name, bug) => {
    for (const place of placesOf(bug)) {
      const text = readFileSync(new URL(`../../${place.file}`, import.meta.url), 'utf8');
      expect(plant(text, place)).not.toBe(text);
    }
  });
});

test('a missing or ambiguous place is an error', () => {
  const bug = { from: 'a', to: 'b' };
  expect(plant('cad', bug)).toBe('cbd');
  expect(() => plant('cd', bug)).toThrow('0 times');
  expect(() => plant('aa', bug)).toThrow('2 times');
});
