// The policies that every account has: valid documents, which allow what their names say.
import { expect, test } from 'vitest';
import { evaluate } from '../evaluate.ts';
import { compilePolicy, countCharacters, POLICY_SIZES } from './compile-policy.ts';
import { findReadyMadePolicy, READY_MADE_POLICIES } from './ready-made-policies.ts';

const ACCOUNT = '123456789012';
const USER = {
  kind: 'user',
  accountId: ACCOUNT,
  canonicalId: 'c',
  arn: `arn:aws:iam::${ACCOUNT}:user/ann`,
} as const;

function isAllowed(name: string, { action, resource }: { action: string; resource: string }): boolean {
  const text = findReadyMadePolicy(`arn:aws:iam::aws:policy/${name}`)?.text ?? '';
  const compiled = compilePolicy(text, { type: 'identity' });
  if (compiled.kind !== 'compiled') throw new Error(`${name}: ${compiled.message}`);
  return evaluate({
    caller: USER,
    policies: { identity: [{ name, policy: compiled.policy }] },
    action,
    resource,
    resourceAccount: ACCOUNT,
    contextOf: (key) => (key === 'aws:username' ? 'ann' : undefined),
  }).isAllowed;
}

test('each one is a valid document within the size of a managed policy, with an id and an ARN of its own', () => {
  for (const { text } of READY_MADE_POLICIES) {
    expect(compilePolicy(text, { type: 'identity' })).toMatchObject({ kind: 'compiled' });
    expect(countCharacters(text)).toBeLessThanOrEqual(POLICY_SIZES.managedCharactersMax);
  }
  expect(new Set(READY_MADE_POLICIES.map(({ id }) => id)).size).toBe(READY_MADE_POLICIES.length);
  for (const { id } of READY_MADE_POLICIES) expect(id).toMatch(/^ANPA[A-Z0-9]{17}$/);
  expect(findReadyMadePolicy('arn:aws:iam::aws:policy/Nothing')).toBeUndefined();
});

test.each([
  ['AdministratorAccess', 's3:DeleteBucket', 'arn:aws:s3:::b', true],
  ['AdministratorAccess', 'holdfast:GetStatus', '*', true],
  ['AmazonS3FullAccess', 's3:DeleteObjectVersion', 'arn:aws:s3:::b/k', true],
  ['AmazonS3FullAccess', 'iam:CreateUser', `arn:aws:iam::${ACCOUNT}:user/bob`, false],
  ['AmazonS3ReadOnlyAccess', 's3:GetObject', 'arn:aws:s3:::b/k', true],
  ['AmazonS3ReadOnlyAccess', 's3:PutObject', 'arn:aws:s3:::b/k', false],
  ['IAMFullAccess', 'iam:DeleteRole', `arn:aws:iam::${ACCOUNT}:role/r`, true],
  ['IAMFullAccess', 's3:GetObject', 'arn:aws:s3:::b/k', false],
  ['IAMReadOnlyAccess', 'iam:GetUser', `arn:aws:iam::${ACCOUNT}:user/bob`, true],
  ['IAMReadOnlyAccess', 'iam:CreateAccessKey', `arn:aws:iam::${ACCOUNT}:user/bob`, false],
  ['IAMUserChangePassword', 'iam:ChangePassword', `arn:aws:iam::${ACCOUNT}:user/ann`, true],
  ['IAMUserChangePassword', 'iam:ChangePassword', `arn:aws:iam::${ACCOUNT}:user/bob`, false],
  ['ReadOnlyAccess', 'iam:ListUsers', '*', true],
  ['ReadOnlyAccess', 's3:ListBucket', 'arn:aws:s3:::b', true],
  ['ReadOnlyAccess', 's3:PutBucketPolicy', 'arn:aws:s3:::b', false],
])('%s and %s of %s: %s', (name, action, resource, expected) => {
  expect(isAllowed(name, { action, resource })).toBe(expected);
});
