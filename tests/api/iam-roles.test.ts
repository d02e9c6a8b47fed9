// Roles of an account by the IAM API.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { callIam } from '../support/servers/iam-api.ts';
import { startServer, type TestServer } from '../support/servers/start-server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server.stop());

const call = (Action: string, parameters: Record<string, string | number | boolean> = {}) =>
  callIam(server, { Action, ...parameters });

const TRUST = JSON.stringify({
  Version: '2012-10-17',
  Statement: { Effect: 'Allow', Principal: { AWS: '*' }, Action: 'sts:AssumeRole', Resource: undefined },
});
const make = (RoleName: string, parameters: Record<string, string | number> = {}) =>
  call('CreateRole', { RoleName, AssumeRolePolicyDocument: TRUST, ...parameters });

test('a role is made with all that it may have, and shown as it was made', async () => {
  const made = await make('Backup', {
    Path: '/jobs/',
    Description: 'nightly',
    MaxSessionDuration: 7200,
    PermissionsBoundary: 'arn:aws:iam::aws:policy/AmazonS3FullAccess',
    'Tags.member.1.Key': 'team',
    'Tags.member.1.Value': 'ops',
  });
  expect([made.status, made.text('RoleId')]).toEqual([200, expect.stringMatching(/^AROA[A-Z2-7]{17}$/)]);
  const shown = await call('GetRole', { RoleName: 'backup' });
  expect(shown.xml.replace(/.*<Role>/s, '')).toContain(made.xml.replace(/.*<Role>|<\/Role>.*/gs, ''));
  expect(shown.text('Arn')).toMatch(/^arn:aws:iam::\d{12}:role\/jobs\/Backup$/);
  expect(decodeURIComponent(shown.text('AssumeRolePolicyDocument') ?? '')).toBe(TRUST);
  expect(shown.text('Description')).toBe('nightly');
  expect(shown.text('MaxSessionDuration')).toBe('7200');
  expect(shown.text('PermissionsBoundaryArn')).toBe('arn:aws:iam::aws:policy/AmazonS3FullAccess');
  expect([shown.text('Key'), shown.text('Value')]).toEqual(['team', 'ops']);
});

test.each([
  ['Backup', {}, 'EntityAlreadyExists', 'Role with name Backup already exists.'],
  ['r', { MaxSessionDuration: 3599 }, 'ValidationError', undefined],
  ['r', { MaxSessionDuration: 43_201 }, 'ValidationError', undefined],
  ['r', { Description: 'x'.repeat(1001) }, 'ValidationError', undefined],
  ['x'.repeat(65), {}, 'ValidationError', undefined],
  [
    'r',
    { AssumeRolePolicyDocument: '{"Version":"2012-10-17"}' },
    'MalformedPolicyDocument',
    'Syntax errors in policy. (document)',
  ],
  [
    'r',
    { AssumeRolePolicyDocument: `{"Version":"2012-10-17","Id":"${'x'.repeat(2048)}",${TRUST.slice(24)}` },
    'LimitExceeded',
    'Cannot exceed quota for ACLSizePerRole: 2048',
  ],
  [
    'r',
    { AssumeRolePolicyDocument: TRUST + ' '.repeat(10_240) },
    'LimitExceeded',
    'Cannot exceed quota for ACLSizePerRole: 2048',
  ],
  [
    'r',
    { AssumeRolePolicyDocument: 'Ā' },
    'ValidationError',
    'The specified value for assumeRolePolicyDocument is invalid. It must contain only printable ASCII characters.',
  ],
  [
    'r',
    { PermissionsBoundary: 'arn:aws:iam::aws:policy/Nothing' },
    'NoSuchEntity',
    'Policy arn:aws:iam::aws:policy/Nothing does not exist or is not attachable.',
  ],
  [
    'r',
    { PermissionsBoundary: 'arn:aws:s3:::not-a-policy' },
    'InvalidInput',
    'ARN arn:aws:s3:::not-a-policy is not valid.',
  ],
] as [string, Record<string, string | number>, string, string | undefined][])(
  'CreateRole of %s with %.100j: %s',
  async (name, parameters, code, message) => {
    const answer = await make(name, parameters);
    expect(answer.code).toBe(code);
    if (message !== undefined) expect(answer.message).toBe(message);
  },
);

test('roles are listed by name in pages, below a path', async () => {
  for (const name of ['l3', 'L1', 'l2']) await make(name, { Path: '/list/' });
  await make('elsewhere');
  const first = await call('ListRoles', { PathPrefix: '/list/', MaxItems: 2 });
  expect([first.texts('RoleName'), first.text('IsTruncated')]).toEqual([['L1', 'l2'], 'true']);
  const Marker = first.text('Marker') ?? '';
  const second = await call('ListRoles', { PathPrefix: '/list/', MaxItems: 2, Marker });
  expect([second.texts('RoleName'), second.text('IsTruncated')]).toEqual([['l3'], 'false']);
  expect(second.text('Marker')).toBeUndefined();
  expect((await call('ListRoles', { Marker: 'aGVsbG8' })).code).toBe('ValidationError');
  expect((await call('ListRoles', { MaxItems: 0 })).code).toBe('ValidationError');
});

test('description, duration and trust policy can be changed', async () => {
  await make('changing', { Description: 'before' });
  expect((await call('UpdateRole', { RoleName: 'changing', MaxSessionDuration: 43_200 })).status).toBe(200);
  const described = { RoleName: 'changing', Description: 'after' };
  expect((await call('UpdateRoleDescription', described)).text('Description')).toBe('after');
  const PolicyDocument = TRUST.replace('*', '123456789012');
  await call('UpdateAssumeRolePolicy', { RoleName: 'changing', PolicyDocument });
  const shown = await call('GetRole', { RoleName: 'changing' });
  expect([shown.text('MaxSessionDuration'), shown.text('Description')]).toEqual(['43200', 'after']);
  expect(decodeURIComponent(shown.text('AssumeRolePolicyDocument') ?? '')).toBe(PolicyDocument);
  await call('UpdateRole', { RoleName: 'changing', Description: '' });
  expect((await call('GetRole', { RoleName: 'changing' })).text('Description')).toBeUndefined();
  const wrong = await call('UpdateAssumeRolePolicy', { RoleName: 'changing', PolicyDocument: '{' });
  expect(wrong.code).toBe('MalformedPolicyDocument');
});

test('tags are added, replaced in any case of the key, and removed', async () => {
  await make('tagged');
  const tag = (pairs: [string, string][]) =>
    call(
      'TagRole',
      Object.fromEntries([
        ['RoleName', 'tagged'],
        ...pairs.flatMap(([key, value], at) => [
          [`Tags.member.${at + 1}.Key`, key],
          [`Tags.member.${at + 1}.Value`, value],
        ]),
      ]),
    );
  await tag([
    ['a', '1'],
    ['b', '2'],
  ]);
  await tag([['A', '3']]);
  const listed = await call('ListRoleTags', { RoleName: 'tagged' });
  expect([listed.texts('Key'), listed.texts('Value')]).toEqual([
    ['A', 'b'],
    ['3', '2'],
  ]);
  expect((await call('ListRoleTags', { RoleName: 'tagged', MaxItems: 1 })).text('IsTruncated')).toBe('true');
  await call('UntagRole', { RoleName: 'tagged', 'TagKeys.member.1': 'B' });
  expect((await call('ListRoleTags', { RoleName: 'tagged' })).texts('Key')).toEqual(['A']);
  const many = Array.from({ length: 50 }, (_, at): [string, string] => [`k${at}`, '']);
  expect((await tag(many)).code).toBe('LimitExceeded');
  expect((await tag([['aws:x', '']])).code).toBe('InvalidInput');
});

test('RoleLastUsed says when a session of the role was used last', async () => {
  const RoleName = 'used';
  expect((await make(RoleName)).xml).toContain('<RoleLastUsed></RoleLastUsed>');
  const user = { UserName: 'assumes' };
  await call('CreateUser', user);
  await call('AttachUserPolicy', { ...user, PolicyArn: 'arn:aws:iam::aws:policy/AdministratorAccess' });
  const key = await call('CreateAccessKey', user);
  const keysOf = (answer: typeof key) => ({
    accessKey: answer.text('AccessKeyId') ?? '',
    secretKey: answer.text('SecretAccessKey') ?? '',
  });
  const RoleArn = (await call('GetRole', { RoleName })).text('Arn') ?? '';
  const assumed = await callIam(
    server,
    { Action: 'AssumeRole', RoleArn, RoleSessionName: 'session' },
    { service: 'sts', credentials: keysOf(key) },
  );
  expect((await call('GetRole', { RoleName })).text('LastUsedDate')).toBeUndefined();
  const token = assumed.text('SessionToken') ?? '';
  const asRole = { service: 'sts', credentials: keysOf(assumed), token } as const;
  expect((await callIam(server, { Action: 'GetCallerIdentity' }, asRole)).status).toBe(200);
  // It is noted by the way, within a second or so.
  await expect
    .poll(async () => (await call('GetRole', { RoleName })).text('LastUsedDate'), { timeout: 60_000 })
    .toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  const shown = await call('GetRole', { RoleName });
  expect(shown.xml).toContain('<Region>us-east</Region></RoleLastUsed>');
  const details = await call('GetAccountAuthorizationDetails', { 'Filter.member.1': 'Role' });
  expect(details.xml).toContain('<Region>us-east</Region></RoleLastUsed>');
  await call('DeleteRole', { RoleName });
  expect((await make(RoleName)).text('LastUsedDate')).toBeUndefined();
});

test('a role that has policies is not deleted; then it is, and its name is free', async () => {
  const RoleName = 'going';
  await make(RoleName, { PermissionsBoundary: 'arn:aws:iam::aws:policy/ReadOnlyAccess' });
  const PolicyArn = 'arn:aws:iam::aws:policy/ReadOnlyAccess';
  await call('AttachRolePolicy', { RoleName, PolicyArn });
  expect(await call('DeleteRole', { RoleName })).toMatchObject({
    status: 409,
    code: 'DeleteConflict',
    message: 'Cannot delete entity, must detach all policies first.',
  });
  await call('DetachRolePolicy', { RoleName, PolicyArn });
  const PolicyDocument = '{"Version":"2012-10-17","Statement":{"Effect":"Deny","Action":"*","Resource":"*"}}';
  await call('PutRolePolicy', { RoleName, PolicyName: 'p', PolicyDocument });
  expect((await call('DeleteRole', { RoleName })).message).toBe(
    'Cannot delete entity, must delete policies first.',
  );
  await call('DeleteRolePolicy', { RoleName, PolicyName: 'p' });
  expect((await call('DeleteRole', { RoleName })).status).toBe(200);
  expect((await call('GetPolicy', { PolicyArn })).text('PermissionsBoundaryUsageCount')).toBe('0');
  expect((await make(RoleName)).status).toBe(200);
});

test.each([
  'GetRole',
  'DeleteRole',
  'UpdateRole',
  'UpdateRoleDescription',
  'UpdateAssumeRolePolicy',
  'TagRole',
  'UntagRole',
  'ListRoleTags',
  'PutRolePermissionsBoundary',
  'DeleteRolePermissionsBoundary',
])('%s of a role that is not there: NoSuchEntity', async (action) => {
  const others = {
    Description: 'd',
    PolicyDocument: TRUST,
    PermissionsBoundary: 'arn:aws:iam::aws:policy/ReadOnlyAccess',
    'Tags.member.1.Key': 'k',
    'Tags.member.1.Value': 'v',
    'TagKeys.member.1': 'k',
  };
  expect(await call(action, { RoleName: 'nobody', ...others })).toMatchObject({
    status: 404,
    code: 'NoSuchEntity',
    message: 'The role with name nobody cannot be found.',
  });
});
