// Compiled policies are kept by their text, and bounded by what they take; long ones are compiled in turns.
import { expect, test } from 'vitest';
import { keptBytesOf } from '../../../tests/support/run/kept-memory.ts';
import { createFairTurns } from '../../base/async/fair-turns.ts';
import { createPolicyCache } from './policy-cache.ts';

const MIB = 1024 * 1024;
const TEXT = '{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"s3:*","Resource":"*"}}';
const BASE = { name: 'p', type: 'identity', accountId: '000000000011' } as const;

/** Of short patterns, which take sixty times as much when they are compiled. */
function shortPatterns(count: number, name: string): string {
  const Action = Array.from({ length: count }, () => ':?');
  return JSON.stringify({
    Version: '2012-10-17',
    Statement: [{ Sid: name, Effect: 'Allow', Action, Resource: '*' }],
  });
}

test('a text is compiled once as long as anybody holds it, however many others come', async () => {
  const cache = createPolicyCache();
  const compiled = async (text: string) => (await cache.named({ ...BASE, text })).policy;
  const first = await compiled(TEXT);
  expect(await compiled(TEXT)).toBe(first);
  for (let count = 1; count <= 2100; count++) await compiled(TEXT + ' '.repeat(count));
  expect(await compiled(TEXT)).toBe(first);
});

test('what is kept is bounded by the memory that it takes, and not by its texts', async () => {
  const cache = createPolicyCache();
  const bytes = await keptBytesOf(async () => {
    for (let at = 0; at < 250; at++) await cache.named({ ...BASE, text: shortPatterns(1200, `x${at}`) });
  });
  expect(bytes).toBeGreaterThan(10 * MIB);
  expect(bytes).toBeLessThan(50 * MIB);
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
