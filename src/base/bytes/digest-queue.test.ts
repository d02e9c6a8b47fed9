import { expect, test } from 'vitest';
import { DigestQueue } from './digest-queue.ts';

const digestOf = (number: number) => number.toString(16).padStart(64, 'a');

test('digests come out in their order, however many wait, and each takes and moves few bytes', () => {
  const queue = new DigestQueue();
  const count = 100_000;
  let taken = 0;
  for (let pushed = 0; pushed < count; pushed++) {
    queue.push(digestOf(pushed));
    // Every third one goes out again meanwhile.
    if (pushed % 3 === 0) expect(queue.shift()).toBe(digestOf(taken++));
  }
  expect(queue.length).toBe(count - taken);
  expect(queue.heldBytes).toBeLessThanOrEqual(4 * 32 * queue.length);
  while (taken < count) if (queue.shift() !== digestOf(taken++)) throw new Error(`not ${taken - 1}`);
  expect(queue.shift()).toBeUndefined();
  expect(queue.length).toBe(0);
  expect(queue.movedBytes).toBeLessThanOrEqual(2 * 32 * count);
  expect(queue.heldBytes).toBe(256);
});

test('a queue through which many go, few at a time, does not grow', () => {
  const queue = new DigestQueue();
  queue.push(digestOf(0));
  for (let pushed = 1; pushed < 1000; pushed++) {
    queue.push(digestOf(pushed));
    expect(queue.shift()).toBe(digestOf(pushed - 1));
  }
  expect(queue.heldBytes).toBe(256);
});
