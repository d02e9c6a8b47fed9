// Signatures of forms without a socket: what a signer is, and sessions. Refusals of fields are in tests/api/post-object.test.ts.
import { expect, test } from 'vitest';
import { ACCOUNT, AWS, openSigningWorld } from '../../../tests/support/objects/signing-world.ts';
import { type Fields, signPolicyV2, signPolicyV4 } from '../../../tests/support/servers/forms.ts';
import { AppError } from '../../types/errors.ts';
import type { FormField } from '../s3/forms/form-fields.ts';
import { authenticateForm } from './form-signature.ts';

const NOW_MS = Date.parse('2015-12-29T00:00:00Z');
const { identities, clock } = await openSigningWorld(NOW_MS);

async function outcome(fields: Fields, takesSigV2 = true): Promise<string> {
  const entries = fields.map(([name, value]): [string, FormField] => [name.toLowerCase(), { name, value }]);
  try {
    const rules = { service: 's3', takesSigV2 };
    const { caller, signedAtMs } = await authenticateForm({ identities, clock, rules }, new Map(entries));
    if (caller.kind === 'anonymous') return caller.kind;
    return `${caller.authType} ${caller.signatureVersion} ${caller.accessKey} ${signedAtMs}`;
  } catch (error) {
    if (error instanceof AppError) return `${error.status} ${error.code}`;
    throw error;
  }
}

const access = { ...AWS, endpoint: '' };
const signer = (accessKey = AWS.accessKey): Fields => [
  ['x-amz-algorithm', 'AWS4-HMAC-SHA256'],
  ['x-amz-credential', `${accessKey}/20151229/us-east-1/s3/aws4_request`],
  ['x-amz-date', '20151229T000000Z'],
];
const V4 = `Form SigV4 ${AWS.accessKey} ${NOW_MS}`;

test('a form that boto3 has made for a bucket of AWS’s examples', async () => {
  const policy = Buffer.from(
    '{"expiration": "2015-12-29T01:00:00Z", "conditions": [{"bucket": "sigv4examplebucket"}, {"key": "user/user1/photo.jpg"}, {"x-amz-algorithm": "AWS4-HMAC-SHA256"}, {"x-amz-credential": "AKIAIOSFODNN7EXAMPLE/20151229/us-east-1/s3/aws4_request"}, {"x-amz-date": "20151229T000000Z"}]}',
  ).toString('base64');
  const signature = '3364624b39010d9b06f5d9b8c9a18a6e478d261c048159c92f2fd6fa885f14e6';
  const signed = (end: string): Fields => [
    ...signer(),
    ['policy', policy],
    ['x-amz-signature', signature + end],
  ];
  expect(await outcome(signed(''))).toBe(V4);
  expect(await outcome(signed('0'))).toBe('403 SignatureDoesNotMatch');
});

test('a policy is signed as it was sent, whatever it is', async () => {
  for (const policy of ['', 'no base64', '\xe9', 'x'.repeat(20_000)]) {
    const bytes = Buffer.from(policy, 'latin1').toString();
    const isAscii = bytes === policy;
    expect(await outcome(signPolicyV4(access, policy, signer()))).toBe(
      isAscii ? V4 : '403 SignatureDoesNotMatch',
    );
  }
});

test('version 2 can be switched off', async () => {
  const signed = signPolicyV2(access, 'e30=');
  expect(await outcome(signed)).toBe(`Form SigV2 ${AWS.accessKey} undefined`);
  expect(await outcome(signed, false)).toBe('400 InvalidRequest');
  expect(await outcome(signPolicyV4(access, 'e30=', signer()), false)).toBe(V4);
});

test('an unsigned form is nobody’s, with a policy or without', async () => {
  expect(await outcome([['key', 'x']])).toBe('anonymous');
  expect(await outcome([['policy', 'e30=']])).toBe('anonymous');
});

test('the use of a key is noted, with the region of its signature', async () => {
  const noted: unknown[] = [];
  const keyUses = { note: (...use: unknown[]) => void noted.push(use), noteRole: () => undefined };
  const rules = { service: 's3', takesSigV2: true };
  for (const signed of [signPolicyV4(access, 'e30=', signer()), signPolicyV2(access, 'e30=')]) {
    const fields = new Map(
      signed.map(([name, value]): [string, FormField] => [name.toLowerCase(), { name, value }]),
    );
    await authenticateForm({ identities, clock, rules, keyUses }, fields);
  }
  expect(noted).toEqual([
    [AWS.accessKey, { region: 'us-east-1', service: 's3' }],
    [AWS.accessKey, { region: 'us-east', service: 's3' }],
  ]);
});

test('sessions sign by their own secret, with their token, until they expire', async () => {
  const session = {
    kind: 'root' as const,
    accountId: ACCOUNT,
    accessKey: 'ASIAEXAMPLE',
    secretKey: 'a secret of the session',
    id: 'root',
    issuer: AWS.accessKey,
    issuedAtMs: NOW_MS,
    expiresAtMs: NOW_MS + 60_000,
  };
  const token = identities.sessions.seal(session);
  const own = { ...session, endpoint: '' };
  const forms = [signPolicyV2(own, 'e30='), signPolicyV4(own, 'e30=', signer(session.accessKey))];
  for (const signed of forms) {
    expect(await outcome([...signed, ['X-Amz-Security-Token', token]])).toContain(session.accessKey);
    expect(await outcome([...signed, ['x-amz-security-token', token.slice(8)]])).toBe('400 InvalidToken');
    expect(await outcome(signed)).toBe('403 InvalidAccessKeyId');
  }
  expect(await outcome([...signPolicyV2(access, 'e30='), ['x-amz-security-token', token]])).toBe(
    '400 InvalidToken',
  );
  const expired = identities.sessions.seal({ ...session, accessKey: 'ASIAOTHER', expiresAtMs: NOW_MS });
  const late = signPolicyV2({ ...own, accessKey: 'ASIAOTHER' }, 'e30=');
  expect(await outcome([...late, ['x-amz-security-token', expired]])).toBe('400 ExpiredToken');
});
