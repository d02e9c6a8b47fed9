// The alias and the summary of an account by the IAM API.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { callIam, type IamAnswer, type IamCall } from '../support/servers/iam-api.ts';
import { createAccount } from '../support/servers/s3-api.ts';
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

test('an account has one alias, which no other has', async () => {
  expect((await ok('ListAccountAliases')).xml).toContain('<AccountAliases></AccountAliases>');
  await ok('CreateAccountAlias', { AccountAlias: 'acme' });
  await ok('CreateAccountAlias', { AccountAlias: 'acme' });
  const credentials = await createAccount(server);
  expect(await call('CreateAccountAlias', { AccountAlias: 'acme' }, { credentials })).toMatchObject({
    status: 409,
    code: 'EntityAlreadyExists',
    message: 'The account alias acme already exists.',
  });
  await ok('CreateAccountAlias', { AccountAlias: 'acme-2' });
  const listed = await ok('ListAccountAliases');
  expect(listed.xml).toContain('<AccountAliases><member>acme-2</member></AccountAliases>');
  // The name before is free again.
  await ok('CreateAccountAlias', { AccountAlias: 'acme' }, { credentials });
  expect(await call('DeleteAccountAlias', { AccountAlias: 'acme' })).toMatchObject({
    status: 404,
    code: 'NoSuchEntity',
  });
  await ok('DeleteAccountAlias', { AccountAlias: 'acme-2' });
  expect((await ok('ListAccountAliases')).xml).toContain('<AccountAliases></AccountAliases>');
});

test.each(['ab', 'Acme', '-acme', 'a--b', 'acme-', 'x'.repeat(64)])(
  '%s is no alias',
  async (AccountAlias) => {
    expect(await call('CreateAccountAlias', { AccountAlias })).toMatchObject({
      status: 400,
      code: 'ValidationError',
    });
  },
);

test('the summary counts what is there, beside what may be', async () => {
  const credentials = await createAccount(server);
  const figures = (answer: IamAnswer) => {
    const values = answer.texts('value').map(Number);
    return Object.fromEntries(answer.texts('key').map((key, at) => [key, values[at]]));
  };
  const read = async () => figures(await ok('GetAccountSummary', {}, { credentials }));
  expect(await read()).toMatchObject({
    Users: 0,
    UsersQuota: 5000,
    Groups: 0,
    GroupsQuota: 300,
    GroupsPerUserQuota: 10,
    AccessKeysPerUserQuota: 2,
    PolicySizeQuota: 6144,
    MFADevicesInUse: 0,
    AccountMFAEnabled: 0,
  });
  for (const UserName of ['a', 'b']) await ok('CreateUser', { UserName }, { credentials });
  await ok('CreateGroup', { GroupName: 'g' }, { credentials });
  await ok('DeleteUser', { UserName: 'a' }, { credentials });
  expect(await read()).toMatchObject({ Users: 1, Groups: 1, Roles: 0, Policies: 0 });
});

test('what another account has is not seen', async () => {
  await ok('CreateUser', { UserName: 'mine' });
  const credentials = await createAccount(server);
  expect(await call('GetUser', { UserName: 'mine' }, { credentials })).toMatchObject({ status: 404 });
  expect((await ok('ListUsers', {}, { credentials })).texts('UserName')).toEqual([]);
});
