// Users of an account by the IAM API.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { callIam } from '../support/servers/iam-api.ts';
import { startServer, type TestServer } from '../support/servers/start-server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server.stop());

type Parameters = Record<string, string | number | boolean>;
const call = (Action: string, parameters: Parameters = {}) => callIam(server, { Action, ...parameters });
const made = async (UserName: string, more: Parameters = {}) => {
  const answer = await call('CreateUser', { UserName, ...more });
  expect(answer.status, answer.xml).toBe(200);
  return answer;
};
const ok = async (Action: string, parameters: Parameters) => {
  const answer = await call(Action, parameters);
  expect(answer.status, answer.xml).toBe(200);
  return answer;
};

test('a user is made with path and tags, and shown as it was made', async () => {
  const created = await made('Ann', {
    Path: '/staff/ops/',
    'Tags.member.1.Key': 'team',
    'Tags.member.1.Value': 'a + b',
    'Tags.member.2.Key': 'empty',
    'Tags.member.2.Value': '',
  });
  const shown = await call('GetUser', { UserName: 'ANN' });
  expect(shown.text('UserId')).toBe(created.text('UserId'));
  expect(shown.text('UserName')).toBe('Ann');
  expect(shown.text('Path')).toBe('/staff/ops/');
  expect(shown.text('Arn')).toMatch(/^arn:aws:iam::\d{12}:user\/staff\/ops\/Ann$/);
  expect(shown.text('CreateDate')).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  expect([shown.texts('Key'), shown.texts('Value')]).toEqual([
    ['team', 'empty'],
    ['a + b', ''],
  ]);
});

test('names that differ in case alone are one name', async () => {
  await made('once');
  expect(await call('CreateUser', { UserName: 'ONCE' })).toMatchObject({
    status: 409,
    code: 'EntityAlreadyExists',
    message: 'User with name ONCE already exists.',
  });
});

test('users that are made at once are all made, one for each name', async () => {
  const names = ['p1', 'p2', 'p3', 'p4', 'p4', 'p5', 'p6', 'p7'];
  const answers = await Promise.all(names.map((UserName) => call('CreateUser', { UserName })));
  const codes = answers.map(({ status }) => status).sort();
  expect(codes).toEqual([...Array(7).fill(200), 409]);
});

test('a user gets another name and path, and keeps all that it has', async () => {
  const created = await made('before');
  await ok('CreateGroup', { GroupName: 'moving' });
  await ok('AddUserToGroup', { GroupName: 'moving', UserName: 'before' });
  const key = await ok('CreateAccessKey', { UserName: 'before' });
  await ok('UpdateUser', { UserName: 'before', NewUserName: 'after', NewPath: '/x/' });
  expect(await call('GetUser', { UserName: 'before' })).toMatchObject({ code: 'NoSuchEntity' });
  const shown = await ok('GetUser', { UserName: 'after' });
  expect(shown.text('UserId')).toBe(created.text('UserId'));
  expect(shown.text('Arn')).toMatch(/:user\/x\/after$/);
  const members = await ok('GetGroup', { GroupName: 'moving' });
  expect(members.texts('UserName')).toEqual(['after']);
  const [AccessKeyId = ''] = key.texts('AccessKeyId');
  const used = await ok('GetAccessKeyLastUsed', { AccessKeyId });
  expect(used.text('UserName')).toBe('after');
  await made('before');
});

test('a name that is taken is not given again, the own one in another case is', async () => {
  await made('taken');
  await made('wants');
  const answer = await call('UpdateUser', { UserName: 'wants', NewUserName: 'Taken' });
  expect(answer).toMatchObject({ status: 409, code: 'EntityAlreadyExists' });
  await ok('UpdateUser', { UserName: 'wants', NewUserName: 'Wants' });
  expect((await ok('GetUser', { UserName: 'wants' })).text('UserName')).toBe('Wants');
  expect(await call('UpdateUser', { UserName: 'nobody', NewPath: '/' })).toMatchObject({ status: 404 });
});

test('a list has those below a path, page by page, by name', async () => {
  for (const name of ['l3', 'l1', 'L2']) await made(name, { Path: '/list/' });
  const first = await ok('ListUsers', { PathPrefix: '/list/', MaxItems: 2 });
  expect([first.texts('UserName'), first.text('IsTruncated')]).toEqual([['l1', 'L2'], 'true']);
  const [Marker = ''] = first.texts('Marker');
  const second = await ok('ListUsers', { PathPrefix: '/list/', MaxItems: 2, Marker });
  expect([second.texts('UserName'), second.text('IsTruncated')]).toEqual([['l3'], 'false']);
  expect(second.xml).not.toContain('<Marker>');
  const whole = await ok('ListUsers', { PathPrefix: '/list/', MaxItems: 3 });
  expect([whole.texts('UserName').length, whole.text('IsTruncated')]).toEqual([3, 'false']);
  expect((await ok('ListUsers', { PathPrefix: '/none/' })).xml).toContain('<Users></Users>');
  for (const wrong of ['Marker=%21%21', 'Marker=b3RoZXI', 'MaxItems=0', 'MaxItems=1001', 'PathPrefix=x']) {
    const answer = await callIam(server, `Action=ListUsers&${wrong}`);
    expect([wrong, answer.status, answer.code]).toEqual([wrong, 400, 'ValidationError']);
  }
});

test('a user is deleted when nothing of it is left', async () => {
  await made('leaving');
  const UserName = 'leaving';
  const conflict = async (whatFirst: string) =>
    expect(await call('DeleteUser', { UserName })).toMatchObject({
      status: 409,
      code: 'DeleteConflict',
      message: `Cannot delete entity, must ${whatFirst} first.`,
    });
  await ok('CreateGroup', { GroupName: 'left' });
  await ok('AddUserToGroup', { GroupName: 'left', UserName });
  await conflict('remove users from group');
  await ok('RemoveUserFromGroup', { GroupName: 'left', UserName });
  const key = await ok('CreateAccessKey', { UserName });
  await conflict('delete access keys');
  await ok('DeleteAccessKey', { UserName, AccessKeyId: key.text('AccessKeyId') ?? '' });
  await ok('CreateLoginProfile', { UserName, Password: 'Correct-Horse-9' });
  await conflict('delete login profile');
  await ok('DeleteLoginProfile', { UserName });
  await ok('DeleteUser', { UserName });
  expect(await call('GetUser', { UserName })).toMatchObject({ status: 404 });
  expect(await call('DeleteUser', { UserName })).toMatchObject({ status: 404, code: 'NoSuchEntity' });
});

test('tags are added, replaced whatever their case, listed and removed', async () => {
  const UserName = 'tagged';
  await made(UserName);
  const tag = (number: number, key: string, value: string) => ({
    [`Tags.member.${number}.Key`]: key,
    [`Tags.member.${number}.Value`]: value,
  });
  await ok('TagUser', { UserName, ...tag(1, 'a', '1'), ...tag(2, 'b', '2') });
  await ok('TagUser', { UserName, ...tag(1, 'A', '3') });
  const shown = await ok('ListUserTags', { UserName });
  expect([shown.texts('Key'), shown.texts('Value')]).toEqual([
    ['A', 'b'],
    ['3', '2'],
  ]);
  await ok('UntagUser', { UserName, 'TagKeys.member.1': 'a', 'TagKeys.member.2': 'none' });
  expect((await ok('ListUserTags', { UserName })).texts('Key')).toEqual(['b']);
  expect(await call('TagUser', { UserName, ...tag(1, 'x', ''), ...tag(2, 'X', '') })).toMatchObject({
    status: 400,
    code: 'InvalidInput',
  });
  expect(await call('TagUser', { UserName, ...tag(1, 'AWS:x', '') })).toMatchObject({ code: 'InvalidInput' });
  expect(await call('TagUser', { UserName })).toMatchObject({
    code: 'ValidationError',
    message:
      "1 validation error detected: Value null at 'tags' failed to satisfy constraint: Member must not be null",
  });
});

test('a user has fifty tags at most', async () => {
  const UserName = 'full';
  await made(UserName);
  const tags = (count: number, from = 0) =>
    Object.fromEntries(
      Array.from({ length: count }, (_, at) => [
        [`Tags.member.${at + 1}.Key`, `k${from + at}`],
        [`Tags.member.${at + 1}.Value`, ''],
      ]).flat(),
    );
  expect(await call('TagUser', { UserName, ...tags(51) })).toMatchObject({ code: 'ValidationError' });
  await ok('TagUser', { UserName, ...tags(50) });
  expect(await call('TagUser', { UserName, ...tags(1, 50) })).toMatchObject({
    status: 409,
    code: 'LimitExceeded',
  });
  await ok('TagUser', { UserName, ...tags(1) });
  const first = await ok('ListUserTags', { UserName, MaxItems: 49 });
  const rest = await ok('ListUserTags', { UserName, Marker: first.text('Marker') ?? '' });
  expect([first.texts('Key').length, rest.texts('Key').length]).toEqual([49, 1]);
});

test('a boundary must be a policy that is there', async () => {
  const missing = 'arn:aws:iam::123456789012:policy/none';
  expect(await call('CreateUser', { UserName: 'bound', PermissionsBoundary: missing })).toMatchObject({
    status: 404,
    code: 'NoSuchEntity',
  });
  const none = 'arn:aws:s3:::bucket/none';
  expect(await call('CreateUser', { UserName: 'bound', PermissionsBoundary: none })).toMatchObject({
    status: 400,
    code: 'InvalidInput',
  });
});

test('a user that asks about itself need not say its name', async () => {
  await made('self');
  const key = await ok('CreateAccessKey', { UserName: 'self' });
  const credentials = {
    accessKey: key.text('AccessKeyId') ?? '',
    secretKey: key.text('SecretAccessKey') ?? '',
  };
  const refused = await callIam(server, { Action: 'GetUser' }, { credentials });
  expect(refused).toMatchObject({ status: 403, code: 'AccessDenied' });
  expect(refused.message).toMatch(
    /^User: (arn:aws:iam::\d{12}:user\/self) is not authorized to perform: iam:GetUser on resource: \1 because no identity-based policy allows the iam:GetUser action$/,
  );
});
