import { expect, test } from 'vitest';
import { createSequence } from './sequence.ts';

test('each piece of work begins when the one before has ended, with or without success', async () => {
  const inSequence = createSequence();
  const seen: string[] = [];
  const first = Promise.withResolvers<void>();
  const failed = inSequence(async () => {
    seen.push('first begins');
    await first.promise;
    seen.push('first ends');
    throw new Error('of the first alone');
  });
  const second = inSequence(async () => {
    seen.push('second');
    return 2;
  });
  await Promise.resolve();
  await Promise.resolve();
  expect(seen).toEqual(['first begins']);
  first.resolve();
  await expect(failed).rejects.toThrow('of the first alone');
  expect(await second).toBe(2);
  expect(seen).toEqual(['first begins', 'first ends', 'second']);
});
