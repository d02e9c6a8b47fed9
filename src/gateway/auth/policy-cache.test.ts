// Compiled policies are kept by their text, and bounded by it; long ones are compiled in turns.
import { expect, test } from 'vitest';
import { createFairTurns } from '../../base/async/fair-turns.ts';
import { createPolicyCache } from './policy-cache.ts';

const TEXT = '{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"s3:*","Resource":"*"}}';
const BASE = { name: 'p', type: 'identity', accountId: '000000000011' } as const;

test('a text is compiled once, until texts that are longer than all that is kept come', async () => {
  const cache = createPolicyCache();
  const compiled = async (text: string) => (await cache.named({ ...BASE, text })).policy;
  const first = await compiled(TEXT);
  expect(await compiled(TEXT)).toBe(first);
  for (let count = 1; count <= 40; count++) await compiled(TEXT + ' '.repeat(128 * 1024 - count));
  expect(await compiled(TEXT)).not.toBe(first);
  expect(await compiled(TEXT)).toEqual({ ...first, about: expect.any(Function) });
});

test('a long one is compiled in several steps, once for all who wait, and another account comes between them', async () => {
  const done: string[] = [];
  const turns = createFairTurns({ pause: async () => void done.push('step') });
  const cache = createPolicyCache(turns);
  const longest = (name: string) => {
    const Resource = Array.from({ length: 900 }, (_, at) => `arn:aws:s3:::${name}/${at}`);
    return JSON.stringify({
      Version: '2012-10-17',
      Statement: { Effect: 'Allow', Action: 's3:*', Resource },
    });
  };
  const ask = async (accountId: string) => {
    const { policy } = await cache.named({ ...BASE, text: longest(accountId), accountId });
    done.push(accountId);
    return policy;
  };
  const asked = [ask('greedy'), ask('greedy'), ask('other')];
  const [first, second, third] = await Promise.all(asked);
  expect(second).toBe(first);
  expect(third?.statements[0]?.resources?.patterns).toHaveLength(900);
  const steps = done.filter((each) => each === 'step');
  expect(steps.length).toBeGreaterThanOrEqual(10);
  expect(steps.length).toBeLessThanOrEqual(14);
  // Neither waits for all of the other's.
  expect(done.slice(0, 8)).not.toContain('greedy');
});
