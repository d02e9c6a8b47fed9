// Passwords of users and the account's rule for them by the IAM API.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { callIam, type IamCall } from '../support/servers/iam-api.ts';
import { freshWord } from '../support/servers/s3-api.ts';
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

let UserName: string;
beforeEach(async () => {
  UserName = freshWord();
  await ok('CreateUser', { UserName });
});

test('a login profile is made, shown, changed and deleted', async () => {
  const none = {
    status: 404,
    code: 'NoSuchEntity',
    message: `Login Profile for User ${UserName} cannot be found.`,
  };
  expect(await call('GetLoginProfile', { UserName })).toMatchObject(none);
  expect(await call('UpdateLoginProfile', { UserName })).toMatchObject(none);
  const made = await ok('CreateLoginProfile', {
    UserName,
    Password: 'Correct-Horse-9',
    PasswordResetRequired: true,
  });
  expect([made.text('UserName'), made.text('PasswordResetRequired')]).toEqual([UserName, 'true']);
  expect(made.xml).not.toContain('Horse');
  expect(await call('CreateLoginProfile', { UserName, Password: 'Correct-Horse-9' })).toMatchObject({
    status: 409,
    code: 'EntityAlreadyExists',
  });
  await ok('UpdateLoginProfile', { UserName, PasswordResetRequired: false });
  const shown = await ok('GetLoginProfile', { UserName });
  expect(shown.text('PasswordResetRequired')).toBe('false');
  expect(shown.text('CreateDate')).toBe(made.text('CreateDate'));
  await ok('DeleteLoginProfile', { UserName });
  expect(await call('DeleteLoginProfile', { UserName })).toMatchObject(none);
});

test.each(['short1A', 'onlylowercase', 'lower and UPPER'])(
  'without a rule of the account %j is too weak',
  async (Password) => {
    const answer = await call('CreateLoginProfile', { UserName, Password });
    expect(answer).toMatchObject({ status: 400, code: 'PasswordPolicyViolation' });
  },
);

test('a password that cannot be one is refused and not repeated', async () => {
  const Password = `secret-${'x'.repeat(128)}`;
  const answer = await call('CreateLoginProfile', { UserName, Password });
  expect(answer).toMatchObject({
    code: 'ValidationError',
    message:
      "1 validation error detected: Value at 'password' failed to satisfy constraint: Member must have length less than or equal to 128",
  });
});

test("the account's rule is set, shown, kept and deleted", async () => {
  const none = await call('GetAccountPasswordPolicy');
  expect(none).toMatchObject({ status: 404, code: 'NoSuchEntity' });
  expect(none.message).toMatch(/^The Password Policy with domain name \d{12} cannot be found\.$/);
  await ok('UpdateAccountPasswordPolicy', {
    MinimumPasswordLength: 10,
    RequireSymbols: true,
    RequireNumbers: true,
    RequireUppercaseCharacters: true,
    RequireLowercaseCharacters: true,
    PasswordReusePrevention: 2,
    MaxPasswordAge: 90,
    HardExpiry: false,
  });
  const shown = await ok('GetAccountPasswordPolicy');
  expect(shown.xml).toContain(
    '<PasswordPolicy><MinimumPasswordLength>10</MinimumPasswordLength><RequireSymbols>true</RequireSymbols>',
  );
  expect(['ExpirePasswords', 'MaxPasswordAge', 'HardExpiry'].map((name) => shown.text(name))).toEqual([
    'true',
    '90',
    'false',
  ]);
  const weak = ['Short-1', 'NO-LOWER-CASE-1', 'no-upper-case-1', 'No-Number-Here', 'NoSymbol12345'];
  for (const Password of weak) {
    expect(await call('CreateLoginProfile', { UserName, Password })).toMatchObject({
      code: 'PasswordPolicyViolation',
    });
  }
  const word = (number: number) => `Good-Password-${number}`;
  await ok('CreateLoginProfile', { UserName, Password: word(1) });
  await ok('UpdateLoginProfile', { UserName, Password: word(2) });
  for (const number of [1, 2]) {
    expect(await call('UpdateLoginProfile', { UserName, Password: word(number) })).toMatchObject({
      code: 'PasswordPolicyViolation',
    });
  }
  await ok('UpdateLoginProfile', { UserName, Password: word(3) });
  await ok('UpdateLoginProfile', { UserName, Password: word(1) });
  await ok('UpdateAccountPasswordPolicy');
  const reset = await ok('GetAccountPasswordPolicy');
  expect([reset.text('MinimumPasswordLength'), reset.text('ExpirePasswords')]).toEqual(['6', 'false']);
  await ok('UpdateLoginProfile', { UserName, Password: 'simple' });
  expect(await call('UpdateAccountPasswordPolicy', { MinimumPasswordLength: 5 })).toMatchObject({
    code: 'ValidationError',
    message:
      "1 validation error detected: Value '5' at 'minimumPasswordLength' failed to satisfy constraint: Member must have value greater than or equal to 6",
  });
  expect(await call('UpdateAccountPasswordPolicy', { RequireNumbers: 'yes' })).toMatchObject({
    code: 'ValidationError',
  });
  await ok('DeleteAccountPasswordPolicy');
  expect(await call('DeleteAccountPasswordPolicy')).toMatchObject({ status: 404 });
});

test("a user changes its own password where the account's rule or a policy lets it", async () => {
  const key = await ok('CreateAccessKey', { UserName });
  const credentials = {
    accessKey: key.text('AccessKeyId') ?? '',
    secretKey: key.text('SecretAccessKey') ?? '',
  };
  const change = (OldPassword: string, NewPassword: string) =>
    call('ChangePassword', { OldPassword, NewPassword }, { credentials });
  const refused = await change('First-Word-1', 'Second-Word-2');
  expect(refused).toMatchObject({ status: 403, code: 'AccessDenied' });
  expect(refused.message).toContain(`because no identity-based policy allows the iam:ChangePassword action`);
  await ok('UpdateAccountPasswordPolicy', {
    AllowUsersToChangePassword: true,
    MinimumPasswordLength: 8,
    PasswordReusePrevention: 1,
  });
  expect(await change('First-Word-1', 'Second-Word-2')).toMatchObject({ status: 404, code: 'NoSuchEntity' });
  await ok('CreateLoginProfile', { UserName, Password: 'First-Word-1', PasswordResetRequired: true });
  expect(await change('Wrong-Word-1', 'Second-Word-2')).toMatchObject({
    status: 403,
    code: 'AccessDenied',
    message: 'The old password was incorrect.',
  });
  for (const word of ['short', 'First-Word-1'])
    expect(await change('First-Word-1', word)).toMatchObject({
      status: 400,
      code: 'PasswordPolicyViolation',
    });
  expect((await change('First-Word-1', 'Second-Word-2')).status).toBe(200);
  expect((await ok('GetLoginProfile', { UserName })).text('PasswordResetRequired')).toBe('false');
  expect(await change('First-Word-1', 'Third-Word-3')).toMatchObject({ code: 'AccessDenied' });
  expect((await ok('GetAccountPasswordPolicy', {}, { credentials })).text('MinimumPasswordLength')).toBe('8');
  // Nothing else is granted by it, and nobody else's password.
  const others = await call('GetLoginProfile', { UserName }, { credentials });
  expect(others).toMatchObject({ status: 403, code: 'AccessDenied' });
  await ok('DeleteAccountPasswordPolicy');
  expect(await change('Second-Word-2', 'Third-Word-3')).toMatchObject({ code: 'AccessDenied' });
});

test("who has a user's key cannot try passwords on and on", async () => {
  const key = await ok('CreateAccessKey', { UserName });
  const credentials = {
    accessKey: key.text('AccessKeyId') ?? '',
    secretKey: key.text('SecretAccessKey') ?? '',
  };
  await ok('UpdateAccountPasswordPolicy', { AllowUsersToChangePassword: true });
  await ok('CreateLoginProfile', { UserName, Password: 'First-Word-1' });
  const change = async (OldPassword: string) => {
    const words = { OldPassword, NewPassword: 'Second-Word-2' };
    const { status, code } = await call('ChangePassword', words, { credentials });
    return [status, code];
  };
  for (let count = 0; count < 5; count++)
    expect(await change(`Guess-${count}`)).toEqual([403, 'AccessDenied']);
  expect(await change('First-Word-1')).toEqual([403, 'AuthenticationLockout']);
  // Who may set it, may do so all the same.
  await ok('UpdateLoginProfile', { UserName, Password: 'Third-Word-3' });
});

test('a root has no password to change', async () => {
  const passwords = { OldPassword: 'a', NewPassword: 'b' };
  expect(await call('ChangePassword', passwords)).toMatchObject({ status: 400, code: 'InvalidUserType' });
});

test('no password and no hash of one is in the log', async () => {
  await ok('CreateLoginProfile', { UserName, Password: 'Never-Logged-1' });
  const log = JSON.stringify(server.logs());
  expect(log).toContain('"event":"request"');
  expect([log.includes('Never-Logged'), log.includes('scrypt')]).toEqual([false, false]);
});
