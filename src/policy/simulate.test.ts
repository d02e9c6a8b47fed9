// Simulated requests: the decision, the statements behind it, and the keys that had no value.
import { expect, test } from 'vitest';
import { compilePolicy } from './documents/compile-policy.ts';
import { positionsOfStatements } from './documents/statement-positions.ts';
import type { NamedPolicy } from './evaluate.ts';
import { missingKeys, type Simulation, simulate } from './simulate.ts';

const ACCOUNT = '123456789012';
const OTHER = '210987654321';
const ARN = `arn:aws:iam::${ACCOUNT}:user/ann`;

function named(name: string, statements: unknown, type: 'identity' | 'resource' = 'identity'): NamedPolicy {
  const text = JSON.stringify({ Version: '2012-10-17', Statement: statements });
  const compiled =
    type === 'resource' ? compilePolicy(text, { type, bucket: 'b' }) : compilePolicy(text, { type });
  if (compiled.kind !== 'compiled') throw new Error(compiled.message);
  return { name, policy: compiled.policy };
}

const READ = named('read', { Effect: 'Allow', Action: 's3:Get*', Resource: '*' });
const DENY = named('deny', [{ Sid: 'No', Effect: 'Deny', Action: '*', Resource: 'arn:aws:s3:::b/secret/*' }]);

const simulation = (changes: Partial<Simulation> = {}): Simulation => ({
  caller: { kind: 'user', accountId: ACCOUNT, canonicalId: 'c', arn: ARN },
  policies: { identity: [READ, DENY] },
  action: 's3:GetObject',
  resource: 'arn:aws:s3:::b/k',
  resourceAccount: ACCOUNT,
  context: new Map(),
  ...changes,
});
const ask = (changes: Partial<Simulation> = {}) => simulate(simulation(changes));

test('what is allowed names the statements that allow it', () => {
  expect(ask()).toEqual({
    decision: 'allowed',
    statements: [expect.objectContaining({ kind: 'identity', name: 'read', statement: 0 })],
    isAllowedByBoundary: undefined,
    sides: undefined,
  });
});

test('what is denied names the statements that deny it, and no others', () => {
  const { decision, statements } = ask({ resource: 'arn:aws:s3:::b/secret/k' });
  expect(decision).toBe('explicitDeny');
  expect(statements).toEqual([expect.objectContaining({ name: 'deny', sid: 'No' })]);
});

test('what nothing allows names no statement', () => {
  expect(ask({ action: 's3:PutObject' })).toMatchObject({ decision: 'implicitDeny', statements: [] });
});

test('a boundary says by itself whether it allows', () => {
  const narrow = named('narrow', { Effect: 'Allow', Action: 's3:List*', Resource: '*' });
  const limited = ask({ policies: { identity: [READ], boundary: narrow } });
  expect(limited).toMatchObject({ decision: 'implicitDeny', isAllowedByBoundary: false });
  expect(ask({ policies: { identity: [READ], boundary: READ } }).isAllowedByBoundary).toBe(true);
});

test('keys without a value are named as AWS writes them, those of other actions not', () => {
  const conditions = named('conditions', [
    {
      Effect: 'Allow',
      Action: 's3:GetObject',
      Resource: 'arn:aws:s3:::b/${aws:username}/*',
      Condition: { IpAddress: { 'AWS:sourceip': '10.0.0.0/8' } },
    },
    {
      Effect: 'Allow',
      Action: 's3:PutObject',
      Resource: '*',
      Condition: { Null: { 'aws:Referer': 'true' } },
    },
  ]);
  const asked = { policies: { identity: [conditions] }, resource: 'arn:aws:s3:::b/ann/k' };
  expect(ask(asked).decision).toBe('implicitDeny');
  expect(missingKeys(simulation(asked), 2)).toEqual(['aws:SourceIp', 'aws:username']);
  expect(missingKeys(simulation(asked), 1)).toHaveLength(1);
  const context = new Map([
    ['aws:sourceip', '10.1.2.3'],
    ['aws:username', 'ann'],
  ]);
  expect(ask({ ...asked, context }).decision).toBe('allowed');
  expect(missingKeys(simulation({ ...asked, context }), 2)).toEqual([]);
});

test('across accounts both sides are told', () => {
  const policy = named(
    'bucket',
    { Effect: 'Allow', Principal: { AWS: ARN }, Action: 's3:PutObject', Resource: 'arn:aws:s3:::b/*' },
    'resource',
  );
  const across = { resourceAccount: OTHER, resourcePolicy: policy };
  expect(ask(across)).toMatchObject({
    decision: 'implicitDeny',
    sides: { identity: 'allowed', resource: 'implicitDeny' },
  });
});

test('statements have lines and columns from 1', () => {
  expect(positionsOfStatements('{"Version":"2012-10-17",\n "Statement":[{},\n  { "Sid": "}" }]}')).toEqual([
    { start: { line: 2, column: 15 }, end: { line: 2, column: 17 } },
    { start: { line: 3, column: 3 }, end: { line: 3, column: 17 } },
  ]);
  expect(positionsOfStatements('{"Statement":{}}')).toEqual([
    { start: { line: 1, column: 14 }, end: { line: 1, column: 16 } },
  ]);
});
