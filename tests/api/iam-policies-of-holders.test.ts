// Inline policies, attachments and boundaries of users, groups and roles by the IAM API.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
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

const TRUST =
  '{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":"*","Action":"sts:AssumeRole"}}';
const documentOf = (Action: string) =>
  JSON.stringify({ Version: '2012-10-17', Statement: [{ Effect: 'Allow', Action, Resource: '*' }] });

describe.each([
  ['User', 2048],
  ['Group', 5120],
  ['Role', 10_240],
])('%s', (label, charactersMax) => {
  const kind = label.toLowerCase();
  const holder = { [`${label}Name`]: 'Holly' };
  const nobody = { [`${label}Name`]: 'nobody' };

  beforeAll(async () => {
    await call(`Create${label}`, { ...holder, AssumeRolePolicyDocument: TRUST });
  });

  test('an inline policy is put, shown byte for byte, replaced, listed and deleted', async () => {
    const PolicyDocument = ` ${documentOf('s3:Get*')}\n`;
    await call(`Put${label}Policy`, { ...holder, PolicyName: 'b', PolicyDocument });
    await call(`Put${label}Policy`, { ...holder, PolicyName: 'a', PolicyDocument: documentOf('s3:*') });
    const shown = await call(`Get${label}Policy`, { ...holder, PolicyName: 'b' });
    expect(decodeURIComponent(shown.text('PolicyDocument') ?? '')).toBe(PolicyDocument);
    expect([shown.text(`${label}Name`), shown.text('PolicyName')]).toEqual(['Holly', 'b']);
    await call(`Put${label}Policy`, { ...holder, PolicyName: 'b', PolicyDocument: documentOf('s3:List*') });
    const replaced = await call(`Get${label}Policy`, { ...holder, PolicyName: 'b' });
    expect(decodeURIComponent(replaced.text('PolicyDocument') ?? '')).toContain('s3:List*');
    const first = await call(`List${label}Policies`, { ...holder, MaxItems: 1 });
    expect([first.texts('member'), first.text('IsTruncated')]).toEqual([['a'], 'true']);
    const rest = await call(`List${label}Policies`, { ...holder, Marker: first.text('Marker') ?? '' });
    expect([rest.texts('member'), rest.text('IsTruncated')]).toEqual([['b'], 'false']);
    for (const PolicyName of ['a', 'b']) await call(`Delete${label}Policy`, { ...holder, PolicyName });
    expect((await call(`List${label}Policies`, holder)).xml).toContain('<PolicyNames></PolicyNames>');
    for (const action of ['Get', 'Delete']) {
      expect(await call(`${action}${label}Policy`, { ...holder, PolicyName: 'a' })).toMatchObject({
        status: 404,
        code: 'NoSuchEntity',
        message: `The ${kind} policy with name a cannot be found.`,
      });
    }
  });

  test('inline policies have room together, without their white space', async () => {
    const half = documentOf(`s3:${'x'.repeat(charactersMax / 2 - 100)}`).replace('{', `{${' '.repeat(5000)}`);
    const put = (PolicyName: string, PolicyDocument: string) =>
      call(`Put${label}Policy`, { ...holder, PolicyName, PolicyDocument });
    expect((await put('one', half)).status).toBe(200);
    expect((await put('two', half)).status).toBe(200);
    const full = {
      status: 409,
      code: 'LimitExceeded',
      message: `Maximum policy size of ${charactersMax} bytes exceeded for ${kind} Holly`,
    };
    expect(await put('three', half)).toMatchObject(full);
    // White space is free within reason.
    expect(await put('two', documentOf('s3:*').replace('{', `{${' '.repeat(70_000)}`))).toMatchObject(full);
    for (const PolicyName of ['one', 'two']) await call(`Delete${label}Policy`, { ...holder, PolicyName });
  });

  test('a document that is no policy is refused with its place', async () => {
    const PolicyDocument = documentOf('s3:Get*').replace('"Allow"', '"Perhaps"');
    expect(await call(`Put${label}Policy`, { ...holder, PolicyName: 'p', PolicyDocument })).toMatchObject({
      status: 400,
      code: 'MalformedPolicyDocument',
      message: 'Syntax errors in policy. (Statement[0].Effect)',
    });
  });

  test('managed policies are attached, listed and detached', async () => {
    const own = `arn:aws:iam::${account}:policy/of/${label}`;
    await call('CreatePolicy', { PolicyName: label, Path: '/of/', PolicyDocument: documentOf('s3:*') });
    const ready = 'arn:aws:iam::aws:policy/AmazonS3FullAccess';
    for (const PolicyArn of [own, ready, own]) {
      expect((await call(`Attach${label}Policy`, { ...holder, PolicyArn })).status).toBe(200);
    }
    expect((await call('GetPolicy', { PolicyArn: own })).text('AttachmentCount')).toBe('1');
    const list = (parameters: Record<string, string | number> = {}) =>
      call(`ListAttached${label}Policies`, { ...holder, ...parameters });
    expect((await list()).texts('PolicyArn').sort()).toEqual([own, ready].sort());
    expect((await list({ PathPrefix: '/of/' })).texts('PolicyName')).toEqual([label]);
    const first = await list({ MaxItems: 1 });
    const rest = await list({ Marker: first.text('Marker') ?? '' });
    expect([...first.texts('PolicyArn'), ...rest.texts('PolicyArn')].sort()).toEqual([own, ready].sort());
    for (const PolicyArn of [own, ready]) await call(`Detach${label}Policy`, { ...holder, PolicyArn });
    expect((await call('GetPolicy', { PolicyArn: own })).text('AttachmentCount')).toBe('0');
    expect(await call(`Detach${label}Policy`, { ...holder, PolicyArn: own })).toMatchObject({
      status: 404,
      message: `Policy ${own} was not found.`,
    });
  });

  test('ten managed policies at most', async () => {
    const arns = Array.from({ length: 11 }, (_, at) => `arn:aws:iam::${account}:policy/${label}${at}`);
    for (const [at, PolicyArn] of arns.entries()) {
      await call('CreatePolicy', { PolicyName: `${label}${at}`, PolicyDocument: documentOf('s3:*') });
      const answer = await call(`Attach${label}Policy`, { ...holder, PolicyArn });
      if (at < 10) expect(answer.status).toBe(200);
      else {
        const message = `Cannot exceed quota for PoliciesPer${label}: 10`;
        expect(answer).toMatchObject({ status: 409, code: 'LimitExceeded', message });
      }
    }
  });

  test('what is attached must be there', async () => {
    const PolicyArn = `arn:aws:iam::${account}:policy/nothing`;
    expect(await call(`Attach${label}Policy`, { ...holder, PolicyArn })).toMatchObject({
      status: 404,
      message: `Policy ${PolicyArn} does not exist or is not attachable.`,
    });
    const PolicyName = 'p';
    const ready = 'arn:aws:iam::aws:policy/ReadOnlyAccess';
    for (const action of [
      `Put${label}Policy`,
      `Get${label}Policy`,
      `Delete${label}Policy`,
      `List${label}Policies`,
      `Attach${label}Policy`,
      `Detach${label}Policy`,
      `ListAttached${label}Policies`,
    ]) {
      const parameters = { ...nobody, PolicyName, PolicyArn: ready, PolicyDocument: documentOf('s3:*') };
      expect(await call(action, parameters)).toMatchObject({
        code: 'NoSuchEntity',
        message: `The ${kind} with name nobody cannot be found.`,
      });
    }
  });
});

test.each(['User', 'Role'])('a boundary of a %s is put, replaced and removed', async (label) => {
  const holder = { [`${label}Name`]: 'Bo' };
  await call(`Create${label}`, { ...holder, AssumeRolePolicyDocument: TRUST });
  const countOf = async (PolicyArn: string) =>
    (await call('GetPolicy', { PolicyArn })).text('PermissionsBoundaryUsageCount');
  const [one, two] = ['IAMFullAccess', 'IAMReadOnlyAccess'].map((name) => `arn:aws:iam::aws:policy/${name}`);
  for (const PermissionsBoundary of [one, one, two]) {
    const put = { ...holder, PermissionsBoundary: PermissionsBoundary ?? '' };
    expect((await call(`Put${label}PermissionsBoundary`, put)).status).toBe(200);
  }
  expect([await countOf(one ?? ''), await countOf(two ?? '')]).toEqual(['0', '1']);
  expect((await call(`Get${label}`, holder)).text('PermissionsBoundaryArn')).toBe(two);
  await call(`Delete${label}PermissionsBoundary`, holder);
  expect(await countOf(two ?? '')).toBe('0');
  expect((await call(`Get${label}`, holder)).text('PermissionsBoundaryArn')).toBeUndefined();
  expect(await call(`Delete${label}PermissionsBoundary`, holder)).toMatchObject({ code: 'NoSuchEntity' });
});

test('what policies say holds with the answer: attached, default version, inline denial, boundary, detached', async () => {
  const made = await call('CreateUser', { UserName: 'worker' });
  const key = await call('CreateAccessKey', { UserName: 'worker' });
  const credentials = {
    accessKey: key.text('AccessKeyId') ?? '',
    secretKey: key.text('SecretAccessKey') ?? '',
  };
  const PolicyArn = `arn:aws:iam::${account}:policy/work`;
  const statusOf = async (Action: string, parameters: Record<string, string>) =>
    (await callIam(server, { Action, ...parameters }, { credentials })).status;
  const statuses = async () => [
    await statusOf('GetRole', { RoleName: 'Holly' }),
    await statusOf('ListRoles', {}),
  ];
  expect(await statuses()).toEqual([403, 403]);
  await call('CreatePolicy', { PolicyName: 'work', PolicyDocument: documentOf('iam:GetRole') });
  await call('AttachUserPolicy', { UserName: 'worker', PolicyArn });
  expect(await statuses()).toEqual([200, 403]);
  await call('CreatePolicyVersion', {
    PolicyArn,
    PolicyDocument: documentOf('iam:List*'),
    SetAsDefault: true,
  });
  expect(await statuses()).toEqual([403, 200]);
  await call('SetDefaultPolicyVersion', { PolicyArn, VersionId: 'v1' });
  expect(await statuses()).toEqual([200, 403]);
  const PermissionsBoundary = 'arn:aws:iam::aws:policy/AmazonS3FullAccess';
  await call('PutUserPermissionsBoundary', { UserName: 'worker', PermissionsBoundary });
  expect(await statuses()).toEqual([403, 403]);
  await call('DeleteUserPermissionsBoundary', { UserName: 'worker' });
  expect(await statuses()).toEqual([200, 403]);
  const PolicyDocument = documentOf('iam:*').replace('Allow', 'Deny');
  await call('PutUserPolicy', { UserName: 'worker', PolicyName: 'no', PolicyDocument });
  const refused = await callIam(server, { Action: 'GetRole', RoleName: 'Holly' }, { credentials });
  expect(refused.message).toBe(
    `User: ${made.text('Arn')} is not authorized to perform: iam:GetRole on resource: arn:aws:iam::${account}:role/Holly with an explicit deny in an identity-based policy`,
  );
  await call('DeleteUserPolicy', { UserName: 'worker', PolicyName: 'no' });
  await call('DetachUserPolicy', { UserName: 'worker', PolicyArn });
  expect(await statuses()).toEqual([403, 403]);
});
