// Access keys of users and of the account itself by the IAM API.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { callIam, type IamCall } from '../support/servers/iam-api.ts';
import { startServer, type TestServer } from '../support/servers/start-server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server.stop());

type Parameters = Record<string, string | number | boolean>;
const call = (Action: string, parameters: Parameters = {}, options: IamCall = {}) =>
  callIam(server, { Action, ...parameters }, options);
const ok = async (Action: string, parameters: Parameters = {}, options: IamCall = {}) => {
  const answer = await call(Action, parameters, options);
  expect(answer.status, answer.xml).toBe(200);
  return answer;
};

test('a user has two keys, each with its secret once', async () => {
  const UserName = 'keys';
  await ok('CreateUser', { UserName });
  const first = await ok('CreateAccessKey', { UserName });
  expect(first.text('UserName')).toBe(UserName);
  expect(first.text('AccessKeyId')).toMatch(/^HF[A-Z0-9]{18}$/);
  expect(first.text('SecretAccessKey')).toMatch(/^[A-Za-z0-9]{40}$/);
  expect(first.text('Status')).toBe('Active');
  const second = await ok('CreateAccessKey', { UserName });
  expect(await call('CreateAccessKey', { UserName })).toMatchObject({
    status: 409,
    code: 'LimitExceeded',
    message: 'Cannot exceed quota for AccessKeysPerUser: 2',
  });
  const listed = await ok('ListAccessKeys', { UserName });
  const ids = [first.text('AccessKeyId'), second.text('AccessKeyId')].sort();
  expect([listed.texts('AccessKeyId'), listed.text('IsTruncated')]).toEqual([ids, 'false']);
  expect(listed.xml).not.toContain('Secret');
});

test('a key is disabled, enabled and deleted', async () => {
  const UserName = 'changing';
  await ok('CreateUser', { UserName });
  const AccessKeyId = (await ok('CreateAccessKey', { UserName })).text('AccessKeyId') ?? '';
  const statusOf = async () => (await ok('ListAccessKeys', { UserName })).texts('Status');
  await ok('UpdateAccessKey', { UserName, AccessKeyId, Status: 'Inactive' });
  expect(await statusOf()).toEqual(['Inactive']);
  await ok('UpdateAccessKey', { UserName, AccessKeyId, Status: 'Inactive' });
  // Whose it is stays known.
  expect((await ok('GetAccessKeyLastUsed', { AccessKeyId })).text('UserName')).toBe(UserName);
  await ok('UpdateAccessKey', { UserName, AccessKeyId, Status: 'Active' });
  expect(await statusOf()).toEqual(['Active']);
  expect(await call('UpdateAccessKey', { UserName, AccessKeyId, Status: 'active' })).toMatchObject({
    code: 'ValidationError',
    message:
      "1 validation error detected: Value 'active' at 'status' failed to satisfy constraint: Member must satisfy enum value set: [Active, Inactive]",
  });
  await ok('DeleteAccessKey', { UserName, AccessKeyId });
  expect(await statusOf()).toEqual([]);
  const missing = {
    status: 404,
    code: 'NoSuchEntity',
    message: `The Access Key with id ${AccessKeyId} cannot be found.`,
  };
  expect(await call('DeleteAccessKey', { UserName, AccessKeyId })).toMatchObject(missing);
  expect(await call('UpdateAccessKey', { UserName, AccessKeyId, Status: 'Active' })).toMatchObject(missing);
  expect(await call('GetAccessKeyLastUsed', { AccessKeyId })).toMatchObject(missing);
});

test('a key that was not used yet says so', async () => {
  await ok('CreateUser', { UserName: 'unused' });
  const made = await ok('CreateAccessKey', { UserName: 'unused' });
  const used = await ok('GetAccessKeyLastUsed', { AccessKeyId: made.text('AccessKeyId') ?? '' });
  expect([used.text('ServiceName'), used.text('Region')]).toEqual(['N/A', 'N/A']);
  expect(used.xml).not.toContain('LastUsedDate');
});

test('a key of another user is not found under this one', async () => {
  for (const UserName of ['one', 'two']) await ok('CreateUser', { UserName });
  const AccessKeyId = (await ok('CreateAccessKey', { UserName: 'one' })).text('AccessKeyId') ?? '';
  expect(await call('DeleteAccessKey', { UserName: 'two', AccessKeyId })).toMatchObject({ status: 404 });
  expect((await ok('ListAccessKeys', { UserName: 'one' })).texts('AccessKeyId')).toEqual([AccessKeyId]);
});

test("the account's own keys are those of a root that names no user", async () => {
  const made = await ok('CreateAccessKey');
  const credentials = {
    accessKey: made.text('AccessKeyId') ?? '',
    secretKey: made.text('SecretAccessKey') ?? '',
  };
  const AccessKeyId = credentials.accessKey;
  expect(made.xml).not.toContain('UserName');
  const both = [server.accessKey, AccessKeyId].sort();
  expect((await ok('ListAccessKeys', {}, { credentials })).texts('AccessKeyId')).toEqual(both);
  expect(await call('CreateAccessKey')).toMatchObject({ status: 409, code: 'LimitExceeded' });
  await ok('UpdateAccessKey', { AccessKeyId, Status: 'Inactive' });
  expect(await call('GetUser', {}, { credentials })).toMatchObject({
    status: 403,
    code: 'InvalidClientTokenId',
  });
  expect((await ok('ListAccessKeys')).texts('Status').sort()).toEqual(['Active', 'Inactive']);
  expect(await call('UpdateAccessKey', { AccessKeyId: server.accessKey, Status: 'Inactive' })).toMatchObject({
    status: 409,
    code: 'DeleteConflict',
  });
  await ok('DeleteAccessKey', { AccessKeyId });
  expect(await call('DeleteAccessKey', { AccessKeyId })).toMatchObject({ status: 404 });
});

test('whose a key is, is not told in the refusal of who may not ask', async () => {
  for (const UserName of ['curious', 'owner-of-it']) await ok('CreateUser', { UserName });
  const keyOf = async (UserName: string) => {
    const made = await ok('CreateAccessKey', { UserName });
    return { accessKey: made.text('AccessKeyId') ?? '', secretKey: made.text('SecretAccessKey') ?? '' };
  };
  const credentials = await keyOf('curious');
  const messageFor = async (AccessKeyId: string) => {
    const refused = await call('GetAccessKeyLastUsed', { AccessKeyId }, { credentials });
    expect([refused.status, refused.code]).toEqual([403, 'AccessDenied']);
    return refused.message;
  };
  const [ofOther, ofRoot, ofNobody] = [
    await messageFor((await keyOf('owner-of-it')).accessKey),
    await messageFor(server.accessKey),
    await messageFor('HFOLDNOBODYHASTHISKEY'),
  ];
  expect(ofOther).toMatch(/ on resource: arn:aws:iam::\d{12}:user\/\* because no identity-based policy/);
  expect([ofRoot, ofNobody]).toEqual([ofOther, ofOther]);
  expect(await messageFor(credentials.accessKey)).toContain(':user/curious because');
});
