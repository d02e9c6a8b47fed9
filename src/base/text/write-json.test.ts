import { expect, test } from 'vitest';
import { finishAtOnce } from '../async/steps.ts';
import { writeJson } from './write-json.ts';

test.each([
  [null],
  ['text'],
  [[]],
  [{}],
  [{ a: undefined, b: [undefined, 1, { c: undefined }], d: { e: [], f: null, g: new Date(0) } }],
  [Object.assign(Object.create(null), { a: [1] })],
])('the text of %j is what JSON.stringify makes of it', (value) => {
  expect(String(finishAtOnce(writeJson(value)))).toBe(JSON.stringify(value));
});

test('a long list is written in steps, none of which has much more than 64 KiB', () => {
  const page = { data: { items: Array.from({ length: 1000 }, () => ({ text: 'ü"\u0001'.repeat(500) })) } };
  const steps = writeJson(page);
  let count = 1;
  let step = steps.next();
  for (; step.done !== true; step = steps.next()) count++;
  expect(String(step.value)).toBe(JSON.stringify(page));
  expect(count).toBeGreaterThan(JSON.stringify(page).length / (80 * 1024));
});

test('entries that are made when they are written are a list', () => {
  function* make(count: number) {
    for (let id = 1; id <= count; id++) yield { id };
  }
  expect(finishAtOnce(writeJson({ made: make(2), none: make(0) }))).toBe(
    '{"made":[{"id":1},{"id":2}],"none":[]}',
  );
});
