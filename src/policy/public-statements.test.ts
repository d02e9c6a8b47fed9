import { expect, test } from 'vitest';
import { compileStoredPolicy } from './documents/compile-policy.ts';
import { publicStatements, withoutPublicStatements } from './public-statements.ts';

const OPEN = { Effect: 'Allow', Principal: '*', Action: 's3:GetObject', Resource: 'arn:aws:s3:::b/*' };

function isPublic(change: object): boolean {
  const text = JSON.stringify({ Version: '2012-10-17', Statement: [{ ...OPEN, ...change }] });
  const outcome = compileStoredPolicy(text, 'resource');
  if (outcome.kind !== 'compiled') throw new Error(outcome.message);
  return publicStatements(outcome.policy).length > 0;
}

test('what allows everybody is public, however it names everybody', () => {
  expect(isPublic({})).toBe(true);
  expect(isPublic({ Principal: { AWS: ['111111111111', '*'] } })).toBe(true);
  expect(isPublic({ Principal: { AWS: '111111111111' } })).toBe(false);
  expect(isPublic({ Effect: 'Deny' })).toBe(false);
});

test.each([
  ['IpAddress', 'aws:SourceIp', '192.0.2.0/24', false],
  ['IpAddress', 'aws:SourceIp', ['192.0.2.0/24', '0.0.0.0/1'], true],
  ['IpAddress', 'aws:SourceIp', '2001:db8::/32', false],
  ['IpAddress', 'aws:SourceIp', '2000::/8', true],
  ['IpAddress', 'aws:SourceIp', [], true],
  ['NotIpAddress', 'aws:SourceIp', '192.0.2.0/24', true],
  ['IpAddressIfExists', 'aws:SourceIp', '192.0.2.0/24', true],
  ['StringEquals', 'aws:PrincipalAccount', '111111111111', false],
  ['StringLike', 'aws:PrincipalAccount', '1111*', true],
  ['ForAllValues:StringEquals', 'aws:PrincipalAccount', '111111111111', true],
  ['ArnEquals', 'aws:PrincipalArn', 'arn:aws:iam::111111111111:user/ann', false],
  ['ArnLike', 'aws:PrincipalArn', 'arn:aws:iam::*:user/ann', true],
  ['StringEquals', 'aws:userid', 'AIDAEXAMPLE', false],
  ['StringEquals', 'aws:userid', '${aws:userid}', true],
  // Of callers who are not known.
  ['StringEquals', 'aws:userid', 'anonymous', true],
  ['StringLike', 'aws:userid', ['AIDAEXAMPLE', 'anonymous'], true],
  ['StringEquals', 'aws:Referer', 'https://example.com', true],
] as const)('%s of %s %j: public is %s', (operator, key, value, expected) => {
  expect(isPublic({ Condition: { [operator]: { [key]: value } } })).toBe(expected);
});

test('many narrow ranges that are most of all addresses together are public, also in statements of their own', () => {
  const ranges = Array.from({ length: 256 }, (_, at) => `${at}.0.0.0/8`);
  const from = (values: readonly string[]) => ({
    ...OPEN,
    Condition: { IpAddress: { 'aws:SourceIp': values } },
  });
  const publicOnes = (statements: object[]) => {
    const text = JSON.stringify({ Version: '2012-10-17', Statement: statements });
    const outcome = compileStoredPolicy(text, 'resource');
    if (outcome.kind !== 'compiled') throw new Error(outcome.message);
    return publicStatements(outcome.policy);
  };
  expect(publicOnes([from(ranges)])).toEqual([0]);
  expect(publicOnes([from(ranges.slice(0, 16))])).toEqual([]);
  const split = Array.from({ length: 16 }, (_, at) => from(ranges.slice(at * 16, at * 16 + 16)));
  expect(publicOnes(split)).toHaveLength(16);
  // What is held to a user is so wherever it comes from.
  const held = { ...from(ranges), Principal: { AWS: '111111111111' } };
  expect(publicOnes([held, from(['192.0.2.0/24', '2001:db8::/32'])])).toEqual([]);
});

test('without them a policy still denies, and allows whom it names', () => {
  const named = { ...OPEN, Sid: 'named', Principal: { AWS: '111111111111' } };
  const deny = { ...OPEN, Sid: 'deny', Effect: 'Deny' };
  const text = JSON.stringify({ Version: '2012-10-17', Statement: [OPEN, named, deny] });
  const outcome = compileStoredPolicy(text, 'resource');
  if (outcome.kind !== 'compiled') throw new Error(outcome.message);
  const whole = { name: 'b', policy: outcome.policy };
  const rest = withoutPublicStatements(whole);
  // Places stay those of the document.
  expect(rest.policy.statements.map(({ index, sid }) => [index, sid])).toEqual([
    [1, 'named'],
    [2, 'deny'],
  ]);
  expect(withoutPublicStatements(whole).policy).toBe(rest.policy);
});
