import { expect, test } from 'vitest';
import { compileStoredPolicy } from '../../policy/documents/compile-policy.ts';
import { matchWork } from '../../policy/match-work.ts';
import { answerInSteps } from './simulation-answer.ts';
import type { SourcePolicy } from './simulation-policies.ts';

/** What an action of a simulation may be, and patterns that take long to be held against it. */
const PARTS = Array.from({ length: 3 }, (_, at) => `${at}`.padEnd(33, 'abcdefghij'));
const STATEMENT = { Effect: 'Allow', Action: new Array(60).fill(`*${PARTS.join('*')}*Z*?`), Resource: '*' };
const TEXT = JSON.stringify({ Version: '2012-10-17', Statement: [STATEMENT] });

function source(at: number): SourcePolicy {
  const outcome = compileStoredPolicy(TEXT, 'identity');
  if (outcome.kind !== 'compiled') throw new Error(outcome.message);
  return { name: `p${at}`, policy: outcome.policy, text: TEXT, sourceType: 'IAM Policy' };
}

test('what statements of a hundred policies are about an action is found in steps, also where it is not kept', () => {
  const scene = {
    identity: Array.from({ length: 100 }, (_, at) => source(at)),
    boundary: undefined,
    resourcePolicy: undefined,
    caller: { kind: 'user' as const, accountId: '1', canonicalId: 'c', arn: 'a' },
    resourceAccount: '1',
    context: new Map(),
  };
  for (const { policy } of scene.identity) for (let at = 0; at < 300; at++) policy.about(`s3:${at}`);
  const actions = [`x:${PARTS.join('')}`];
  const steps = answerInSteps(scene, { actions, resources: ['*'], Marker: undefined, MaxItems: 100 });
  let longest = 0;
  let all = 0;
  for (let isDone = false; !isDone; ) {
    const before = matchWork();
    isDone = steps.next().done === true;
    longest = Math.max(longest, matchWork() - before);
    all += matchWork() - before;
  }
  expect(all).toBeGreaterThan(10_000_000);
  expect(all).toBeLessThan(40_000_000);
  expect(longest).toBeLessThan(2_000_000);
});
