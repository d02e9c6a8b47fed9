import { expect, test } from 'vitest';
import { sortInSteps } from './sort-in-steps.ts';

test('a long list is put in order in short steps, and what is equal stays in its order', () => {
  const count = 100_003;
  const items = Array.from({ length: count }, (_, at) => ({ name: (at * 7919) % 20_011, at }));
  let comparedCount = 0;
  let comparedMost = 0;
  const steps = sortInSteps(items, (a, b) => {
    comparedCount++;
    return a.name - b.name;
  });
  let step = steps.next();
  for (; step.done !== true; step = steps.next()) {
    comparedMost = Math.max(comparedMost, comparedCount);
    comparedCount = 0;
  }
  expect(step.value).toEqual([...items].sort((a, b) => a.name - b.name));
  expect(comparedMost).toBeLessThan(80_000);
  expect([...sortInSteps([], () => 0)]).toEqual([]);
});
