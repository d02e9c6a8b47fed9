// What caches are told of a policy's memory is at least what it takes, and about that.
import { expect, test } from 'vitest';
import { keptBytesOf } from '../../../tests/support/run/kept-memory.ts';
import { type CompiledPolicy, compileStoredPolicy } from './compile-policy.ts';

const LENGTH = 6000;
const POLICIES = 40;

/** As many as the longest policy has. */
function many(textOf: (at: number) => string): string[] {
  const texts: string[] = [];
  for (let length = 0, at = 0; length < LENGTH; at++) {
    const text = textOf(at);
    texts.push(text);
    length += text.length + 3;
  }
  return texts;
}

const BASE = { Effect: 'Allow', Action: '*', Resource: '*' };
const when = (operator: string, values: string[]) => ({
  ...BASE,
  Condition: { [operator]: { 'aws:x': values } },
});

const KINDS: readonly (readonly [name: string, statement: object])[] = [
  ['patterns of two characters', { ...BASE, Action: many(() => ':?') }],
  ['patterns of many wildcards', { ...BASE, Action: many((at) => `:${at}*?*?*?*?`) }],
  ['long names of resources', { ...BASE, Resource: many((at) => `arn:aws:s3:::a-bucket/home/of-${at}/*`) }],
  ['variables', { ...BASE, Resource: many((at) => `arn:aws:s3:::\${a}\${b${at}}`) }],
  [
    'values that are patterns',
    when(
      'StringLike',
      many((at) => `${at}?`),
    ),
  ],
  [
    'values that are texts',
    when(
      'StringEquals',
      many((at) => `${at}`),
    ),
  ],
  [
    'ARNs of short parts',
    when(
      'ArnLike',
      many((at) => `arn:?:?:?:?:${at}?`),
    ),
  ],
  [
    'conditions',
    { ...BASE, Condition: { StringLike: Object.fromEntries(many(String).map((at) => [at, '?'])) } },
  ],
  ['statements', Array.from({ length: LENGTH / 48 }, () => BASE)],
];

test.each(KINDS)('%s', async (_, Statement) => {
  const policies: CompiledPolicy[] = [];
  const bytes = await keptBytesOf(() => {
    for (let at = 0; at < POLICIES; at++) {
      const outcome = compileStoredPolicy(JSON.stringify({ Version: '2012-10-17', Statement }), 'identity');
      if (outcome.kind === 'compiled') policies.push(outcome.policy);
    }
  });
  expect(policies).toHaveLength(POLICIES);
  const said = policies.reduce((sum, { memoryBytes }) => sum + memoryBytes, 0);
  expect(said).toBeGreaterThan(bytes);
  expect(said).toBeLessThan(4 * bytes);
});
