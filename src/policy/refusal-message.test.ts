import { expect, test } from 'vitest';
import type { PolicyKind } from './evaluate.ts';
import { type Refused, refusalMessage } from './refusal-message.ts';

const ACCOUNT = '111111111111';
const ANN = `arn:aws:iam::${ACCOUNT}:user/ann`;
const refused: Refused = {
  caller: { kind: 'user', accountId: ACCOUNT, canonicalId: 'a'.repeat(64), arn: ANN },
  action: 's3:GetObject',
  resource: 'arn:aws:s3:::b/k',
  resourceAccount: ACCOUNT,
  decision: { isAllowed: false, reason: 'no-allow', lacking: 'identity' },
  isOfS3: true,
};
const denied = (kind: PolicyKind): Refused => ({
  ...refused,
  decision: { isAllowed: false, reason: 'explicit-deny', by: { kind, name: 'n', statement: 0, sid: 's' } },
});
const S3_WHAT = `User: ${ANN} is not authorized to perform: s3:GetObject on resource: "arn:aws:s3:::b/k"`;

test('a refusal names who, what and the kind of policy that does not allow it, as AWS does', () => {
  expect(refusalMessage(refused)).toBe(
    `${S3_WHAT} because no identity-based policy allows the s3:GetObject action`,
  );
  const role: Refused = {
    ...refused,
    action: 'sts:AssumeRole',
    resource: `arn:aws:iam::${ACCOUNT}:role/r`,
    isOfS3: false,
    decision: { isAllowed: false, reason: 'no-allow', lacking: 'trust' },
  };
  expect(refusalMessage(role)).toBe(
    `User: ${ANN} is not authorized to perform: sts:AssumeRole on resource: arn:aws:iam::${ACCOUNT}:role/r ` +
      'because no role trust policy allows the sts:AssumeRole action',
  );
});

test.each<[PolicyKind, string]>([
  ['identity', 'an identity-based policy'],
  ['resource', 'a resource-based policy'],
  ['boundary', 'a permissions boundary'],
  ['session', 'a session policy'],
  ['trust', 'the role trust policy'],
])('an explicit deny of %s is told, and no name of a policy', (kind, words) => {
  expect(refusalMessage(denied(kind))).toBe(`${S3_WHAT} with an explicit deny in ${words}`);
});

test('across accounts no reason is told, and by S3 nothing at all', () => {
  const there = { ...denied('resource'), resourceAccount: '222222222222' };
  expect(refusalMessage(there)).toBeUndefined();
  expect(refusalMessage({ ...there, isOfS3: false })).toBe(
    `User: ${ANN} is not authorized to perform: s3:GetObject on resource: arn:aws:s3:::b/k`,
  );
});

test('anonymous callers are told nothing', () => {
  expect(refusalMessage({ ...refused, caller: { kind: 'anonymous' } })).toBeUndefined();
});
