// Managed policies by the IAM API: their versions, tags, and who has them.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { callIam } from '../support/servers/iam-api.ts';
import { startServer, type TestServer } from '../support/servers/start-server.ts';

let server: TestServer;
let account: string;
beforeAll(async () => {
  server = await startServer();
  account = (await call('GetUser')).text('UserId') ?? '';
});
afterAll(() => server.stop());

const call = (Action: string, parameters: Record<string, string | number | boolean> = {}) =>
  callIam(server, { Action, ...parameters });

const documentOf = (Action: string) =>
  JSON.stringify({ Version: '2012-10-17', Statement: [{ Effect: 'Allow', Action, Resource: '*' }] });
const READ = documentOf('s3:Get*');
const READY = 'arn:aws:iam::aws:policy/ReadOnlyAccess';
const TRUST =
  '{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":"*","Action":"sts:AssumeRole"}}';

const arnOf = (name: string) => `arn:aws:iam::${account}:policy/${name}`;
const make = (PolicyName: string, parameters: Record<string, string | number> = {}) =>
  call('CreatePolicy', { PolicyName, PolicyDocument: READ, ...parameters });

test('a policy is made, and shown as it was made', async () => {
  const made = await make('Read', {
    Path: '/team/',
    Description: 'to read\n„ä€ 😀“',
    'Tags.member.1.Key': 'k',
    'Tags.member.1.Value': 'v',
  });
  expect(made.text('PolicyId')).toMatch(/^ANPA[A-Z2-7]{17}$/);
  const shown = await call('GetPolicy', { PolicyArn: arnOf('team/Read') });
  expect(shown.xml.replace(/.*<Policy>/s, '')).toContain(made.xml.replace(/.*<Policy>|<\/Policy>.*/gs, ''));
  expect(shown.text('Description')).toBe('to read\n„ä€ 😀“');
  expect(shown.text('DefaultVersionId')).toBe('v1');
  expect([shown.text('AttachmentCount'), shown.text('IsAttachable')]).toEqual(['0', 'true']);
  const version = await call('GetPolicyVersion', { PolicyArn: arnOf('team/Read'), VersionId: 'v1' });
  expect(version.text('Document')).toContain('%22s3%3AGet%2A%22');
  expect(decodeURIComponent(version.text('Document') ?? '')).toBe(READ);
  expect(version.text('IsDefaultVersion')).toBe('true');
});

test.each([
  [
    { PolicyName: 'READ' },
    'EntityAlreadyExists',
    'A policy called READ already exists. Duplicate names are not allowed.',
  ],
  [{ Path: 'x' }, 'ValidationError', undefined],
  // No parser of XML takes one, in whatever spelling: nobody could read the list that has it.
  [{ Description: 'a\u0001b' }, 'ValidationError', undefined],
  [{ Description: 'a\uffffb' }, 'ValidationError', undefined],
  [{ PolicyDocument: '{}' }, 'MalformedPolicyDocument', 'Syntax errors in policy. (document)'],
  [{ PolicyDocument: READ.replace('Allow', 'allow') }, 'MalformedPolicyDocument', undefined],
  [
    { PolicyDocument: documentOf(`s3:${'x'.repeat(6100)}`) },
    'LimitExceeded',
    'Cannot exceed quota for PolicySize: 6144',
  ],
  [{ PolicyDocument: 'x'.repeat(131_073) }, 'ValidationError', undefined],
] as [Record<string, string>, string, string | undefined][])(
  'CreatePolicy with %.100j: %s',
  async (parameters, code, message) => {
    const answer = await make('other', parameters);
    expect(answer.code).toBe(code);
    if (message !== undefined) expect(answer.message).toBe(message);
  },
);

test('white space does not count, up to four times as much as the rest', async () => {
  const spaced = (count: number) =>
    documentOf(`s3:${'x'.repeat(6000)}`).replace('{', `{${' '.repeat(count)}`);
  expect((await make('spaced', { PolicyDocument: spaced(20_000) })).status).toBe(200);
  expect(await make('blank', { PolicyDocument: spaced(30_000) })).toMatchObject({ code: 'LimitExceeded' });
});

test('five versions at most; the default one is not deleted, and numbers are not used twice', async () => {
  await make('versions');
  const PolicyArn = arnOf('versions');
  const add = (parameters: Record<string, string | boolean> = {}) =>
    call('CreatePolicyVersion', { PolicyArn, PolicyDocument: documentOf('s3:List*'), ...parameters });
  const second = await add();
  expect([second.text('VersionId'), second.text('IsDefaultVersion')]).toEqual(['v2', 'false']);
  expect((await add({ SetAsDefault: true })).text('IsDefaultVersion')).toBe('true');
  await add();
  await add();
  expect(await add()).toMatchObject({ status: 409, code: 'LimitExceeded' });
  expect(await call('DeletePolicyVersion', { PolicyArn, VersionId: 'v3' })).toMatchObject({
    code: 'DeleteConflict',
    message: 'Cannot delete the default version of a policy.',
  });
  await call('DeletePolicyVersion', { PolicyArn, VersionId: 'v5' });
  expect((await add()).text('VersionId')).toBe('v6');
  const list = await call('ListPolicyVersions', { PolicyArn, MaxItems: 3 });
  expect([list.texts('VersionId'), list.text('IsTruncated')]).toEqual([['v6', 'v4', 'v3'], 'true']);
  const rest = await call('ListPolicyVersions', { PolicyArn, Marker: list.text('Marker') ?? '' });
  expect(rest.texts('VersionId')).toEqual(['v2', 'v1']);
  await call('SetDefaultPolicyVersion', { PolicyArn, VersionId: 'v1' });
  expect((await call('GetPolicy', { PolicyArn })).text('DefaultVersionId')).toBe('v1');
  expect(await call('GetPolicyVersion', { PolicyArn, VersionId: 'v5' })).toMatchObject({
    status: 404,
    message: `Policy ${PolicyArn} version v5 does not exist or is not attachable.`,
  });
  expect((await call('GetPolicyVersion', { PolicyArn, VersionId: '1' })).code).toBe('ValidationError');
  expect((await call('DeletePolicy', { PolicyArn })).message).toMatch(
    /^This policy has more than one version/,
  );
});

test('policies are listed in pages: by scope, path and use', async () => {
  for (const name of ['p1', 'p2', 'p3']) await make(name, { Path: '/paged/' });
  await call('CreateRole', {
    RoleName: 'lister',
    AssumeRolePolicyDocument: TRUST,
    PermissionsBoundary: arnOf('paged/p3'),
  });
  await call('AttachRolePolicy', { RoleName: 'lister', PolicyArn: arnOf('paged/p2') });
  await call('AttachRolePolicy', { RoleName: 'lister', PolicyArn: READY });
  const list = async (parameters: Record<string, string | number | boolean>) =>
    (await call('ListPolicies', parameters)).texts('PolicyName');
  expect(await list({ PathPrefix: '/paged/' })).toEqual(['p1', 'p2', 'p3']);
  expect(await list({ Scope: 'AWS', OnlyAttached: true })).toEqual(['ReadOnlyAccess']);
  expect(await list({ Scope: 'Local', OnlyAttached: true })).toEqual(['p2']);
  expect(await list({ PolicyUsageFilter: 'PermissionsPolicy' })).toEqual(['p2', 'ReadOnlyAccess']);
  expect(await list({ PolicyUsageFilter: 'PermissionsBoundary' })).toEqual(['p3']);

  const all = await list({});
  expect(all.slice(-7)).toEqual([
    'AdministratorAccess',
    'AmazonS3FullAccess',
    'AmazonS3ReadOnlyAccess',
    'IAMFullAccess',
    'IAMReadOnlyAccess',
    'IAMUserChangePassword',
    'ReadOnlyAccess',
  ]);
  const paged: string[] = [];
  for (let Marker: string | undefined, pages = 0; pages === 0 || Marker !== undefined; pages++) {
    expect(pages).toBeLessThan(50);
    const page = await call('ListPolicies', { MaxItems: 2, ...(Marker && { Marker }) });
    paged.push(...page.texts('PolicyName'));
    Marker = page.text('Marker');
  }
  expect(paged).toEqual(all);
});

test('who has a policy is told, as a policy and as a boundary', async () => {
  const PolicyArn = arnOf('team/Read');
  const role = { AssumeRolePolicyDocument: TRUST, Path: '/r/', PermissionsBoundary: PolicyArn };
  for (const RoleName of ['r1', 'r2']) await call('CreateRole', { RoleName, ...role });
  await call('CreateUser', { UserName: 'Uma' });
  await call('AttachUserPolicy', { UserName: 'uma', PolicyArn });
  await call('CreateGroup', { GroupName: 'Gang', Path: '/r/' });
  await call('AttachGroupPolicy', { GroupName: 'gang', PolicyArn });
  await call('AttachRolePolicy', { RoleName: 'R1', PolicyArn });
  const counts = await call('GetPolicy', { PolicyArn });
  expect([counts.text('AttachmentCount'), counts.text('PermissionsBoundaryUsageCount')]).toEqual(['3', '2']);
  const names = async (parameters: Record<string, string | number> = {}) => {
    const answer = await call('ListEntitiesForPolicy', { PolicyArn, ...parameters });
    return [answer.texts('UserName'), answer.texts('GroupName'), answer.texts('RoleName')];
  };
  expect(await names()).toEqual([['Uma'], ['Gang'], ['r1', 'r2']]);
  expect(await names({ PolicyUsageFilter: 'PermissionsPolicy' })).toEqual([['Uma'], ['Gang'], ['r1']]);
  expect(await names({ PolicyUsageFilter: 'PermissionsBoundary' })).toEqual([[], [], ['r1', 'r2']]);
  expect(await names({ EntityFilter: 'Role', PathPrefix: '/r/' })).toEqual([[], [], ['r1', 'r2']]);
  expect(await names({ EntityFilter: 'User', PathPrefix: '/r/' })).toEqual([[], [], []]);

  // Users and groups keep it under another name.
  await call('UpdateUser', { UserName: 'Uma', NewUserName: 'Ulla', NewPath: '/r/' });
  await call('UpdateGroup', { GroupName: 'Gang', NewGroupName: 'Band' });
  expect(await names({ PathPrefix: '/r/' })).toEqual([['Ulla'], ['Band'], ['r1', 'r2']]);

  const found = new Set<string>();
  for (let Marker: string | undefined, pages = 0; pages === 0 || Marker !== undefined; pages++) {
    expect(pages).toBeLessThan(10);
    const page = await call('ListEntitiesForPolicy', { PolicyArn, MaxItems: 1, ...(Marker && { Marker }) });
    for (const kind of ['UserName', 'GroupName', 'RoleName'])
      for (const name of page.texts(kind)) found.add(name);
    Marker = page.text('Marker');
  }
  expect([...found].sort()).toEqual(['Band', 'Ulla', 'r1', 'r2']);
  expect(await call('DeletePolicy', { PolicyArn })).toMatchObject({
    status: 409,
    message: 'Cannot delete a policy attached to entities.',
  });
});

test('a policy that nobody has is deleted with its version', async () => {
  await make('going');
  const PolicyArn = arnOf('going');
  expect((await call('DeletePolicy', { PolicyArn })).status).toBe(200);
  expect(await call('GetPolicy', { PolicyArn })).toMatchObject({
    status: 404,
    code: 'NoSuchEntity',
    message: `Policy ${PolicyArn} was not found.`,
  });
  expect((await make('going')).status).toBe(200);
});

test('tags of a policy', async () => {
  await make('tagged');
  const PolicyArn = arnOf('tagged');
  await call('TagPolicy', { PolicyArn, 'Tags.member.1.Key': 'a', 'Tags.member.1.Value': '1' });
  await call('TagPolicy', { PolicyArn, 'Tags.member.1.Key': 'b', 'Tags.member.1.Value': '2' });
  expect((await call('ListPolicyTags', { PolicyArn })).texts('Key')).toEqual(['a', 'b']);
  await call('UntagPolicy', { PolicyArn, 'TagKeys.member.1': 'a' });
  expect((await call('ListPolicyTags', { PolicyArn })).texts('Value')).toEqual(['2']);
});

test('ready-made policies are shown, and changed by nobody', async () => {
  const shown = await call('GetPolicy', { PolicyArn: READY });
  expect([shown.text('PolicyName'), shown.text('DefaultVersionId')]).toEqual(['ReadOnlyAccess', 'v1']);
  const version = await call('GetPolicyVersion', { PolicyArn: READY, VersionId: 'v1' });
  expect(JSON.parse(decodeURIComponent(version.text('Document') ?? ''))).toMatchObject({
    Version: '2012-10-17',
  });
  for (const action of [
    'DeletePolicy',
    'CreatePolicyVersion',
    'DeletePolicyVersion',
    'SetDefaultPolicyVersion',
    'TagPolicy',
    'UntagPolicy',
  ]) {
    const answer = await call(action, {
      PolicyArn: READY,
      PolicyDocument: READ,
      VersionId: 'v1',
      'Tags.member.1.Key': 'k',
      'Tags.member.1.Value': 'v',
      'TagKeys.member.1': 'k',
    });
    expect(answer).toMatchObject({ status: 403, code: 'AccessDenied' });
  }
});

test('what is no ARN of a policy, or of one elsewhere', async () => {
  const wrong = await call('GetPolicy', { PolicyArn: `arn:aws:iam::${account}:user/someone` });
  expect(wrong).toMatchObject({ status: 400, code: 'InvalidInput' });
  for (const PolicyArn of [arnOf('Read'), arnOf('team/READ'), 'arn:aws:iam::210987654321:policy/team/Read']) {
    expect((await call('GetPolicy', { PolicyArn })).code).toBe('NoSuchEntity');
  }
});
