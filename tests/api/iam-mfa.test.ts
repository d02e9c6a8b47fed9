// Virtual MFA devices by the IAM API.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { resetMfa } from '../../src/cli/account-commands.ts';
import type { CliContext } from '../../src/cli/connect.ts';
import { codeAt, stepAt } from '../../src/gateway/identity-api/one-time-codes.ts';
import { callIam, type IamCall } from '../support/servers/iam-api.ts';
import { startServer, type TestServer } from '../support/servers/start-server.ts';

let server: TestServer;
let account: string;
beforeAll(async () => {
  server = await startServer();
  account = (await call('GetUser')).text('UserId') ?? '';
  for (const UserName of ['Uma', 'Bob']) await call('CreateUser', { UserName });
});
afterAll(() => server.stop());

const call = (Action: string, parameters: Record<string, string | number | boolean> = {}) =>
  callIam(server, { Action, ...parameters });

const serialOf = (name: string) => `arn:aws:iam::${account}:mfa/${name}`;

/** The bytes of Base32 (RFC 4648), as an app reads them. */
function bytesOf(base32: string): Buffer {
  let bits = '';
  for (const letter of base32) {
    bits += 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(letter).toString(2).padStart(5, '0');
  }
  return Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)));
}

async function make(name: string, parameters: Record<string, string> = {}) {
  const made = await call('CreateVirtualMFADevice', { VirtualMFADeviceName: name, ...parameters });
  const seed = bytesOf(Buffer.from(made.text('Base32StringSeed') ?? '', 'base64').toString());
  return { made, seed, SerialNumber: made.text('SerialNumber') ?? '' };
}

/** The codes of this step and the next one. */
const codesFrom = (seed: Uint8Array, step: number) => ({
  AuthenticationCode1: codeAt(seed, step),
  AuthenticationCode2: codeAt(seed, step + 1),
});

/** Two codes, the first one so many steps from now. */
const pair = (seed: Uint8Array, steps: number) => codesFrom(seed, stepAt(Date.now()) + steps);

/**
 * The codes of the last step and of this one, and the code that is right behind them: of the step behind, not of a clock that
 * is read again. Where the server takes the pair a step later it takes the device's clock for late, and that code is its last.
 */
function currentCodes(seed: Uint8Array) {
  const step = stepAt(Date.now());
  return { codes: codesFrom(seed, step - 1), next: codeAt(seed, step + 1) };
}

test('a device is made with a seed and its QR code', async () => {
  const { made, seed } = await make('First', {
    Path: '/phones/',
    'Tags.member.1.Key': 'k',
    'Tags.member.1.Value': 'v',
  });
  expect(made.text('SerialNumber')).toBe(serialOf('phones/First'));
  expect(seed).toHaveLength(20);
  const png = Buffer.from(made.text('QRCodePNG') ?? '', 'base64');
  expect(png.subarray(1, 4).toString()).toBe('PNG');
  expect(made.text('Key')).toBe('k');
  expect((await make('first')).made).toMatchObject({
    status: 409,
    code: 'EntityAlreadyExists',
    message: 'MFADevice entity at the same path and name already exists.',
  });
  expect((await make('a b')).made.code).toBe('ValidationError');
  const long = { Path: `/${'x'.repeat(240)}/` };
  expect((await make('long', long)).made).toMatchObject({ code: 'ValidationError' });
});

test('a device is enabled by two codes of its own, which follow one another', async () => {
  const { seed, SerialNumber } = await make('uma');
  const owned = { UserName: 'Uma', SerialNumber };
  const { AuthenticationCode1, AuthenticationCode2 } = pair(seed, -4);
  const turned = { AuthenticationCode1: AuthenticationCode2, AuthenticationCode2: AuthenticationCode1 };
  const refused = {
    status: 403,
    code: 'InvalidAuthenticationCode',
    message: 'Authentication code for device is not valid.',
  };
  expect(await call('EnableMFADevice', { ...owned, ...turned })).toMatchObject(refused);
  expect(await call('EnableMFADevice', { ...owned, ...pair(seed, -200) })).toMatchObject(refused);
  const malformed = await call('EnableMFADevice', { ...owned, AuthenticationCode1: '12345x' });
  expect(malformed.code).toBe('ValidationError');
  expect(malformed.xml).not.toContain('12345x');
  expect((await call('EnableMFADevice', { ...owned, ...pair(seed, -4) })).status).toBe(200);
  expect(await call('EnableMFADevice', { ...owned, ...pair(seed, 0) })).toMatchObject({
    status: 409,
    code: 'EntityAlreadyExists',
  });
  const listed = await call('ListMFADevices', { UserName: 'UMA' });
  expect([listed.text('UserName'), listed.text('SerialNumber')]).toEqual(['Uma', SerialNumber]);
  expect(listed.text('EnableDate')).toMatch(/^\d{4}-/);

  // Codes that were used are no good again; newer ones are.
  expect(await call('ResyncMFADevice', { ...owned, ...pair(seed, -4) })).toMatchObject(refused);
  expect((await call('ResyncMFADevice', { ...owned, ...pair(seed, 5) })).status).toBe(200);

  expect(await call('DeleteVirtualMFADevice', { SerialNumber })).toMatchObject({
    status: 409,
    code: 'DeleteConflict',
    message: 'MFA VirtualDevice in use. Must deactivate first.',
  });
  for (const action of ['DeactivateMFADevice', 'ResyncMFADevice']) {
    const others = { UserName: 'Bob', SerialNumber, ...pair(seed, 10) };
    expect(await call(action, others)).toMatchObject({
      status: 404,
      message: 'MFA Device invalid for user.',
    });
  }
  expect((await call('DeactivateMFADevice', owned)).status).toBe(200);
  expect((await call('ListMFADevices', { UserName: 'Uma' })).texts('SerialNumber')).toEqual([]);
  expect((await call('DeleteVirtualMFADevice', { SerialNumber })).status).toBe(200);
  expect(await call('DeleteVirtualMFADevice', { SerialNumber })).toMatchObject({
    status: 404,
    message: `VirtualMFADevice with serial number ${SerialNumber} does not exist.`,
  });
});

test('the root has devices of its own, and names nobody or its account', async () => {
  const { seed, SerialNumber } = await make('root-account-mfa-device');
  const { codes, next } = currentCodes(seed);
  expect((await call('EnableMFADevice', { SerialNumber, ...codes })).status).toBe(200);
  const listed = await call('ListMFADevices');
  expect([listed.text('UserName'), listed.text('SerialNumber')]).toEqual([account, SerialNumber]);
  const assigned = await call('ListVirtualMFADevices', { AssignmentStatus: 'Assigned' });
  expect(assigned.text('Arn')).toBe(`arn:aws:iam::${account}:root`);
  const owned = { SerialNumber, UserName: account };
  expect((await call('DeactivateMFADevice', owned)).status).toBe(403);
  const withMfa = await sessionOf(server, { SerialNumber, TokenCode: next });
  expect((await callIam(server, { Action: 'DeactivateMFADevice', ...owned }, withMfa)).status).toBe(200);
  expect((await call('ListMFADevices', { UserName: account })).texts('SerialNumber')).toEqual([]);
  expect((await call('DeleteVirtualMFADevice', { SerialNumber })).status).toBe(200);
});

/** Temporary credentials, as GetSessionToken gives them. */
async function sessionOf(
  credentials: { accessKey: string; secretKey: string },
  mfa: { SerialNumber: string; TokenCode: string },
): Promise<IamCall> {
  const parameters = { Action: 'GetSessionToken', ...mfa };
  const answer = await callIam(server, parameters, { credentials, service: 'sts' });
  expect(answer.status).toBe(200);
  const [accessKey, secretKey, token] = ['AccessKeyId', 'SecretAccessKey', 'SessionToken'].map(
    (name) => answer.text(name) ?? '',
  );
  return { credentials: { accessKey: accessKey ?? '', secretKey: secretKey ?? '' }, token: token ?? '' };
}

test('a key of long term alone neither takes away its own device nor adds another; who looks after users may', async () => {
  await call('CreateUser', { UserName: 'own' });
  const key = await call('CreateAccessKey', { UserName: 'own' });
  const credentials = {
    accessKey: key.text('AccessKeyId') ?? '',
    secretKey: key.text('SecretAccessKey') ?? '',
  };
  const statement = { Effect: 'Allow', Action: 'iam:*', Resource: '*' };
  const PolicyDocument = JSON.stringify({ Version: '2012-10-17', Statement: statement });
  await call('PutUserPolicy', { UserName: 'own', PolicyName: 'p', PolicyDocument });
  const [first, second] = [await make('own-first'), await make('own-second')];
  const act = (Action: string, parameters: Record<string, string>, as: IamCall = { credentials }) =>
    callIam(server, { Action, UserName: 'own', ...parameters }, as);
  const { SerialNumber } = first;
  const added = { SerialNumber: second.SerialNumber, ...pair(second.seed, -4) };
  const { codes, next } = currentCodes(first.seed);
  expect((await act('EnableMFADevice', { SerialNumber, ...codes })).status).toBe(200);
  const refused = {
    status: 403,
    code: 'AccessDenied',
    message: expect.stringContaining('given with MFA (GetSessionToken'),
  };
  expect(await act('DeactivateMFADevice', { SerialNumber })).toMatchObject(refused);
  expect(await act('EnableMFADevice', added)).toMatchObject(refused);
  const withMfa = await sessionOf(credentials, { SerialNumber, TokenCode: next });
  expect((await act('EnableMFADevice', added, withMfa)).status).toBe(200);
  expect((await act('DeactivateMFADevice', { SerialNumber }, withMfa)).status).toBe(200);
  const other = { UserName: 'own', SerialNumber: second.SerialNumber };
  expect((await call('DeactivateMFADevice', other)).status).toBe(200);
  for (const made of [first, second])
    expect((await call('DeleteVirtualMFADevice', { SerialNumber: made.SerialNumber })).status).toBe(200);
});

test("the operator deactivates the devices of an account's root, which are lost", async () => {
  const { seed, SerialNumber } = await make('lost');
  expect((await call('EnableMFADevice', { SerialNumber, ...pair(seed, -4) })).status).toBe(200);
  const said: string[] = [];
  const context: CliContext = {
    env: {},
    print: (text) => void said.push(text),
    nowMs: Date.now,
    sleep: async () => {},
  };
  const options = { dataDir: server.dataDir, json: true };
  await resetMfa(context, account, options);
  expect(said.map((text) => JSON.parse(text))).toEqual([{ deactivatedCount: 1 }]);
  expect((await call('ListMFADevices')).texts('SerialNumber')).toEqual([]);
  expect((await call('DeleteVirtualMFADevice', { SerialNumber })).status).toBe(200);
  await resetMfa(context, account, options);
  expect(JSON.parse(said.at(-1) ?? '')).toEqual({ deactivatedCount: 0 });
  expect(server.logs().filter(({ event }) => event === 'mfa-reset')).toHaveLength(2);
});

test('virtual devices are listed by their assignment, in pages', async () => {
  const { seed, SerialNumber } = await make('bob');
  await call('EnableMFADevice', { UserName: 'Bob', SerialNumber, ...pair(seed, -4) });
  await make('unused');
  const list = async (parameters: Record<string, string | number>) => {
    const answer = await call('ListVirtualMFADevices', parameters);
    return { serials: answer.texts('SerialNumber'), users: answer.texts('UserName'), answer };
  };
  const assigned = await list({ AssignmentStatus: 'Assigned' });
  expect([assigned.serials, assigned.users]).toEqual([[serialOf('bob')], ['Bob']]);
  const unassigned = await list({ AssignmentStatus: 'Unassigned' });
  expect(unassigned.serials).toEqual([serialOf('phones/First'), serialOf('unused')]);
  const all = await list({});
  expect(all.serials).toEqual([serialOf('bob'), serialOf('phones/First'), serialOf('unused')]);
  expect(all.answer.xml).not.toContain('Base32StringSeed');
  const first = await list({ MaxItems: 2 });
  const rest = await list({ Marker: first.answer.text('Marker') ?? '' });
  expect([...first.serials, ...rest.serials]).toEqual(all.serials);
});

test('a user has eight devices at most', async () => {
  await call('CreateUser', { UserName: 'many' });
  for (let at = 0; at < 9; at++) {
    const { seed, SerialNumber } = await make(`many${at}`);
    const enabled = await call('EnableMFADevice', { UserName: 'many', SerialNumber, ...pair(seed, -4) });
    if (at < 8) expect(enabled.status).toBe(200);
    else {
      const message = 'Cannot exceed quota for MFADevicesPerUser: 8';
      expect(enabled).toMatchObject({ status: 409, code: 'LimitExceeded', message });
    }
  }
  const page = await call('ListMFADevices', { UserName: 'many', MaxItems: 5 });
  expect([page.texts('SerialNumber').length, page.text('IsTruncated')]).toEqual([5, 'true']);
});

test('what is not there', async () => {
  const nobody = { UserName: 'nobody', SerialNumber: serialOf('bob') };
  const codes = { AuthenticationCode1: '000000', AuthenticationCode2: '000000' };
  for (const action of ['EnableMFADevice', 'ResyncMFADevice', 'DeactivateMFADevice', 'ListMFADevices']) {
    expect(await call(action, { ...nobody, ...codes })).toMatchObject({
      code: 'NoSuchEntity',
      message: 'The user with name nobody cannot be found.',
    });
  }
  for (const action of ['EnableMFADevice', 'ResyncMFADevice', 'DeactivateMFADevice']) {
    const missing = { UserName: 'Bob', SerialNumber: serialOf('nothing'), ...codes };
    expect(await call(action, missing)).toMatchObject({ status: 404, code: 'NoSuchEntity' });
  }
});
