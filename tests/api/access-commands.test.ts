// holdfast user, group, role, policy, key, mfa: what they do by IAM and STS, what they print, and what they refuse.
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TOTP } from 'otpauth';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { must } from '../../src/base/assert.ts';
import { Refusal } from '../../src/base/refusal.ts';
import { explainPolicy } from '../../src/cli/access/explain-policy.ts';
import {
  addToGroup,
  createGroup,
  deleteGroup,
  listGroups,
  removeFromGroup,
  showGroup,
} from '../../src/cli/access/group-commands.ts';
import { changeKey, createKey, listKeys } from '../../src/cli/access/key-commands.ts';
import {
  createDevice,
  deactivateDevice,
  deleteDevice,
  enableDevice,
  listDevices,
} from '../../src/cli/access/mfa-commands.ts';
import {
  attachPolicy,
  createPolicy,
  deletePolicy,
  detachPolicy,
  listPolicies,
  putPolicy,
  removePolicy,
  showPolicy,
  updatePolicy,
} from '../../src/cli/access/policy-commands.ts';
import {
  assumeRole,
  createRole,
  deleteRole,
  listRoles,
  showRole,
} from '../../src/cli/access/role-commands.ts';
import { createUser, deleteUser, listUsers, showUser } from '../../src/cli/access/user-commands.ts';
import type { CliContext, ConnectOptions } from '../../src/cli/connect.ts';
import { createPrintedTool } from '../support/run/printed-tool.ts';
import { type Access, send } from '../support/servers/raw-s3.ts';
import { startServer, type TestServer } from '../support/servers/start-server.ts';

const folder = mkdtempSync(join(tmpdir(), 'holdfast-access-'));
let server: TestServer;
beforeAll(async () => {
  server = await startServer();
  await send(server, { method: 'PUT', path: '/vault' });
});
afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true });
});

type Options = ConnectOptions & { endpoint: string };
type Keys = Pick<Access, 'accessKey' | 'secretKey'> & { sessionToken?: string };

/** Runs a command as root, or with other keys, and gives what it prints. */
async function run(
  command: (context: CliContext, options: Options) => Promise<unknown>,
  keys: Keys = server,
): Promise<string> {
  const { context, taken } = createPrintedTool();
  const env = {
    AWS_ACCESS_KEY_ID: keys.accessKey,
    AWS_SECRET_ACCESS_KEY: keys.secretKey,
    AWS_SESSION_TOKEN: keys.sessionToken ?? '',
  };
  await command({ ...context, env }, { endpoint: server.endpoint });
  return taken();
}

/** The same with --json. */
async function runJson(command: (context: CliContext, options: Options) => Promise<unknown>, keys?: Keys) {
  return JSON.parse(await run((context, options) => command(context, { ...options, json: true }), keys));
}

async function refusalOf(command: (context: CliContext, options: Options) => Promise<unknown>, keys?: Keys) {
  const error = await run(command, keys).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(Refusal);
  return (error as Refusal).message;
}

const userKeys = async (name: string): Promise<Keys> => {
  const made = await runJson((context, options) => createKey(context, { ...options, user: name }));
  return { accessKey: made.AccessKeyId, secretKey: made.SecretAccessKey };
};

const document = (...statements: object[]) =>
  JSON.stringify({ Version: '2012-10-17', Statement: statements });
function fileOf(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}
const READ = { Effect: 'Allow', Action: 's3:GetObject', Resource: 'arn:aws:s3:::vault/*' };

test('a role is made, shown, assumed and deleted', async () => {
  const account = (await runJson((c, o) => createUser(c, 'assumer', o))).Arn.split(':')[4];
  const made = await runJson((c, o) =>
    createRole(c, 'reader', { ...o, trust: [account], maxSeconds: '7200' }),
  );
  expect(made).toMatchObject({ RoleName: 'reader', Arn: `arn:aws:iam::${account}:role/reader` });
  await run((c, o) =>
    putPolicy(c, 'read', { ...o, role: 'reader', file: fileOf('read.json', document(READ)) }),
  );
  expect(await run((c, o) => showRole(c, 'reader', o))).toMatch(/policies +read \(inline\)/);
  expect(await run((c, o) => showRole(c, 'reader', o))).toContain('"Action":"sts:AssumeRole"');
  expect(await run((c, o) => listRoles(c, o))).toMatch(/^NAME.*\nreader /);
  await run((c, o) =>
    putPolicy(c, 'assume', {
      ...o,
      user: 'assumer',
      file: fileOf(
        'assume.json',
        document({ Effect: 'Allow', Action: 'sts:AssumeRole', Resource: made.Arn }),
      ),
    }),
  );
  const keys = await userKeys('assumer');
  const lines = await run((c, o) => assumeRole(c, made.Arn, { ...o, sessionName: 'job' }), keys);
  const value = (name: string) => must(new RegExp(`^export ${name}=(\\S+)$`, 'm').exec(lines)?.[1], name);
  const session = {
    accessKey: value('AWS_ACCESS_KEY_ID'),
    secretKey: value('AWS_SECRET_ACCESS_KEY'),
    sessionToken: value('AWS_SESSION_TOKEN'),
  };
  // The session may read in the bucket, and no more.
  expect(await refusalOf((c, o) => listUsers(c, o), session)).toMatch(
    /assumed-role\/reader\/job is not authorized to perform: iam:ListUsers/,
  );
  expect(await refusalOf((c, o) => deleteRole(c, 'reader', o))).toContain('DeleteConflict');
  expect(await run((c, o) => deleteRole(c, 'reader', { ...o, force: true }))).toBe('Role reader is deleted.');
  expect(await refusalOf((c, o) => showRole(c, 'reader', o))).toContain('NoSuchEntity');
});

test('managed policies are made, changed, attached and deleted', async () => {
  const file = fileOf('managed.json', `${document(READ)}\n`);
  const made = await runJson((c, o) => createPolicy(c, 'may-read', { ...o, file, description: 'reads' }));
  expect(made.Arn).toMatch(/:policy\/may-read$/);
  await run((c, o) => createUser(c, 'holder', o));
  await run((c, o) => attachPolicy(c, 'may-read', { ...o, user: 'holder' }));
  await run((c, o) => attachPolicy(c, 'ReadOnlyAccess', { ...o, user: 'holder' }));
  const attached = (await runJson((c, o) => showUser(c, 'holder', o))).AttachedPolicies;
  expect(attached.map((each: { PolicyArn: string }) => each.PolicyArn).sort()).toEqual([
    made.Arn,
    'arn:aws:iam::aws:policy/ReadOnlyAccess',
  ]);
  for (let round = 2; round <= 7; round++)
    expect(await run((c, o) => updatePolicy(c, 'may-read', { ...o, file }))).toMatch(
      new RegExp(`version +v${round}`),
    );
  const shown = await run((c, o) => showPolicy(c, 'may-read', o));
  expect(shown).toContain('v7');
  expect(shown.endsWith(`\n${document(READ)}\n`)).toBe(true);
  expect(await run((c, o) => listPolicies(c, o))).toMatch(/^NAME.*\nmay-read +v7 +1 /);
  expect(await run((c, o) => listPolicies(c, { ...o, all: true }))).toContain('AdministratorAccess');
  await run((c, o) => detachPolicy(c, 'ReadOnlyAccess', { ...o, user: 'holder' }));
  expect(await refusalOf((c, o) => deletePolicy(c, 'may-read', o))).toContain('DeleteConflict');
  await run((c, o) => deletePolicy(c, 'may-read', { ...o, force: true }));
  expect((await runJson((c, o) => showUser(c, 'holder', o))).AttachedPolicies).toEqual([]);
  expect(await refusalOf((c, o) => showPolicy(c, 'may-read', o))).toBe('there is no managed policy may-read');
});

test('an inline policy is put, shown and removed', async () => {
  await run((c, o) => createUser(c, 'inline', o));
  const put = (source: object) => run((c, o) => putPolicy(c, 'own', { ...o, user: 'inline', ...source }));
  await put({ file: fileOf('own.json', document(READ)) });
  const show = () => run((c, o) => showPolicy(c, 'own', { ...o, user: 'inline' }));
  expect(await show()).toBe(document(READ));
  // White space does not count, and comes back as it was.
  const wide = `${' '.repeat(40_000)}${document(READ)}`;
  await put({ file: fileOf('wide.json', wide) });
  expect(await show()).toBe(wide);
  await put({ template: 'read-only', bucket: 'vault' });
  expect(await show()).toContain('"NotAction":["s3:Get*","s3:List*"]');
  await run((c, o) => removePolicy(c, 'own', { ...o, user: 'inline' }));
  await expect(show()).rejects.toThrow('NoSuchEntity');
  await expect(put({ file: fileOf('bad.json', '{"Version"') })).rejects.toThrow('MalformedPolicyDocument');
  await expect(put({ file: folder })).rejects.toThrow('is no policy');
  await expect(put({ file: join(folder, 'none') })).rejects.toThrow('cannot read');
  await expect(put({})).rejects.toThrow('one of --file and --template');
  await expect(put({ template: 'read-only' })).rejects.toThrow('give --bucket');
  await expect(put({ template: 'read-only', bucket: '*' })).rejects.toThrow('"*" is no name of a bucket');
  await expect(put({ template: 'write-only', bucket: 'vault' })).rejects.toThrow(
    'must be one of append-only',
  );
  const twice = run((c, o) => putPolicy(c, 'own', { ...o, user: 'a', group: 'b', template: 'restic' }));
  await expect(twice).rejects.toThrow('one of --user, --group and --role');
});

test('a user is made by a template, shown with what it has, and deleted with all of it', async () => {
  const printed = await run((c, o) =>
    createUser(c, 'backup', { ...o, policy: 'append-only', bucket: 'vault' }),
  );
  expect(printed).toMatch(/^user +arn:aws:iam::\d{12}:user\/backup\npolicy +append-only, of bucket vault/);
  expect(printed).toContain('WARNING vault keeps no versions');
  expect(printed).toContain('export AWS_DEFAULT_REGION=us-east RESTIC_REPOSITORY=s3:http://127.0.0.1:');
  expect(printed).toContain('  [backup]\n  type = s3\n');
  const accessKey = must(/access key +(\S+)/.exec(printed)?.[1], 'an access key');
  await run((c, o) => createGroup(c, 'jobs', o));
  await run((c, o) => addToGroup(c, { group: 'jobs', user: 'backup' }, o));
  await run((c, o) => attachPolicy(c, 'ReadOnlyAccess', { ...o, user: 'backup' }));
  const shown = await run((c, o) => showUser(c, 'backup', o));
  expect(shown).toMatch(/groups +jobs\n/);
  expect(shown).toMatch(/policies +arn:aws:iam::aws:policy\/ReadOnlyAccess, append-only \(inline\)\n/);
  expect(shown).toContain(`${accessKey} (Active)`);
  expect(await run((c, o) => listUsers(c, o))).toMatch(/^NAME +PATH +CREATED +ARN\n/);
  expect(await refusalOf((c, o) => deleteUser(c, 'backup', o))).toContain('DeleteConflict');
  await run((c, o) => deleteUser(c, 'backup', { ...o, force: true }));
  expect(await refusalOf((c, o) => showUser(c, 'backup', o))).toContain('NoSuchEntity');
});

test('warnings of a template: a bucket that is not there, and one that the keys may not see', async () => {
  const make = (name: string, policy: string, bucket: string, keys?: Keys) =>
    runJson((c, o) => createUser(c, name, { ...o, policy, bucket }), keys);
  expect((await make('w1', 'read-only', 'not-made')).Warnings).toEqual([
    'there is no bucket not-made: make it, and turn its versioning on',
  ]);
  expect((await make('w2', 'read-only', 'vault')).Warnings).toEqual([]);
  const AccessToUsers = { Effect: 'Allow', Action: 'iam:*', Resource: '*' };
  await run((c, o) => createUser(c, 'clerk', o));
  await run((c, o) =>
    putPolicy(c, 'users', { ...o, user: 'clerk', file: fileOf('clerk.json', document(AccessToUsers)) }),
  );
  const { Warnings } = await make('w3', 'append-only', 'vault', await userKeys('clerk'));
  expect(Warnings).toEqual([expect.stringContaining('whether vault keeps versions cannot be seen')]);
});

test('a user whose policy is refused is not left behind', async () => {
  await run((c, o) => createUser(c, 'half', o));
  const allowed = { Effect: 'Allow', Action: ['iam:CreateUser', 'iam:DeleteUser'], Resource: '*' };
  await run((c, o) =>
    putPolicy(c, 'half', { ...o, user: 'half', file: fileOf('half.json', document(allowed)) }),
  );
  const keys = await userKeys('half');
  expect(
    await refusalOf((c, o) => createUser(c, 'never', { ...o, policy: 'restic', bucket: 'vault' }), keys),
  ).toContain('iam:PutUserPolicy');
  expect(await refusalOf((c, o) => showUser(c, 'never', o))).toContain('NoSuchEntity');
});

test('a group has users and policies, and goes with them', async () => {
  await run((c, o) => createGroup(c, 'staff', { ...o, path: '/people/' }));
  await run((c, o) => createUser(c, 'ann', o));
  await run((c, o) => addToGroup(c, { group: 'staff', user: 'ann' }, o));
  await run((c, o) => attachPolicy(c, 'ReadOnlyAccess', { ...o, group: 'staff' }));
  const shown = await runJson((c, o) => showGroup(c, 'staff', o));
  expect(shown.Users.map((user: { UserName: string }) => user.UserName)).toEqual(['ann']);
  expect(shown.Group.Path).toBe('/people/');
  expect(await run((c, o) => listGroups(c, o))).toContain('staff');
  await run((c, o) => removeFromGroup(c, { group: 'staff', user: 'ann' }, o));
  expect(await run((c, o) => showGroup(c, 'staff', o))).toMatch(/users +-\n/);
  await run((c, o) => addToGroup(c, { group: 'staff', user: 'ann' }, o));
  expect(await refusalOf((c, o) => deleteGroup(c, 'staff', o))).toContain('DeleteConflict');
  await run((c, o) => deleteGroup(c, 'staff', { ...o, force: true }));
  expect(await refusalOf((c, o) => showGroup(c, 'staff', o))).toContain('NoSuchEntity');
});

test('keys are made, disabled, enabled and deleted, by the key alone', async () => {
  await run((c, o) => createUser(c, 'keyed', o));
  const keys = await userKeys('keyed');
  const change = (what: 'disable' | 'enable' | 'delete') =>
    run((c, o) => changeKey(c, { accessKey: keys.accessKey, change: what }, o));
  const list = () => run((c, o) => listKeys(c, { ...o, user: 'keyed' }));
  expect(await refusalOf((c, o) => listUsers(c, o), keys)).toContain('AccessDenied');
  expect(await change('disable')).toContain('is disabled');
  expect(await list()).toMatch(new RegExp(`${keys.accessKey} +keyed +Inactive `));
  expect(await refusalOf((c, o) => listUsers(c, o), keys)).toContain('InvalidClientTokenId');
  await change('enable');
  expect(await list()).toMatch(/ Active /);
  await change('delete');
  expect(await list()).toBe('ACCESS KEY  USER  STATUS  CREATED  LAST USED');
  expect(await run((c, o) => listKeys(c, o))).toContain(server.accessKey);
});

test('a device is made, given to a user by two codes, and taken away', async () => {
  await run((c, o) => createUser(c, 'careful', o));
  const qrFile = join(folder, 'seed.png');
  const printed = await run((c, o) => createDevice(c, 'phone', { ...o, qrFile }));
  const serialNumber = must(/serial number +(\S+)/.exec(printed)?.[1], 'a serial number');
  expect(serialNumber).toMatch(/^arn:aws:iam::\d{12}:mfa\/phone$/);
  expect(readFileSync(qrFile).subarray(1, 4).toString()).toBe('PNG');
  expect(statSync(qrFile).mode & 0o077).toBe(0);
  const secret = must(/seed +([A-Z2-7]+)$/m.exec(printed)?.[1], 'a seed');
  const totp = new TOTP({ secret });
  const now = Date.now();
  const codes = [totp.generate({ timestamp: now - 30_000 }), totp.generate({ timestamp: now })] as const;
  const enable = (given: readonly [string, string]) =>
    run((c, o) => enableDevice(c, { serialNumber, codes: given }, { ...o, user: 'careful' }));
  await expect(enable(['000000', '000000'])).rejects.toThrow('InvalidAuthenticationCode');
  expect(await enable(codes)).toBe(`Device ${serialNumber} is of user careful.`);
  expect(await run((c, o) => listDevices(c, { ...o, user: 'careful' }))).toContain(
    `${serialNumber}  careful  `,
  );
  expect(await run((c, o) => listDevices(c, o))).toContain(`${serialNumber}  careful  `);
  expect(await run((c, o) => showUser(c, 'careful', o))).toContain(serialNumber);
  expect(await refusalOf((c, o) => deleteDevice(c, serialNumber, o))).toContain('DeleteConflict');
  await run((c, o) => deactivateDevice(c, serialNumber, { ...o, user: 'careful' }));
  await run((c, o) => deleteDevice(c, serialNumber, o));
  expect(await run((c, o) => listDevices(c, o))).toBe('SERIAL NUMBER  USER  ENABLED');
  // A picture of before is not written over: it may be the seed of another device.
  expect(await refusalOf((c, o) => createDevice(c, 'again', { ...o, qrFile }))).toContain(
    'cannot be written',
  );
});

test('an explanation names the statement that decided, of the user and of the bucket', async () => {
  const made = await runJson((c, o) =>
    createUser(c, 'asked', { ...o, policy: 'append-only', bucket: 'vault' }),
  );
  const as = made.User.Arn;
  const explain = async (action: string, more: { resource?: string[]; context?: string[] } = {}) => {
    let code: number | undefined;
    const printed = await run(async (c, o) => {
      const resource = more.resource ?? ['arn:aws:s3:::vault/key'];
      code = await explainPolicy(c, { ...o, as, action: [action], ...more, resource });
    });
    return [code, printed];
  };
  expect(await explain('s3:DeleteObject')).toEqual([
    1,
    's3:DeleteObject on arn:aws:s3:::vault/key: denied: a statement denies it\n' +
      '  by user_asked_append-only (IAM Policy), statement NeverDeleteOrChangeRules',
  ]);
  expect(await explain('s3:PutObject')).toEqual([
    0,
    's3:PutObject on arn:aws:s3:::vault/key: allowed\n' +
      '  by user_asked_append-only (IAM Policy), statement ReadAndWrite',
  ]);
  expect(await explain('s3:GetObject', { resource: ['arn:aws:s3:::other/key'] })).toEqual([
    1,
    's3:GetObject on arn:aws:s3:::other/key: denied: no statement allows it',
  ]);
  const policy = document({
    Effect: 'Deny',
    Principal: '*',
    Action: 's3:PutObject',
    Resource: 'arn:aws:s3:::vault/*',
    Condition: { NotIpAddress: { 'aws:SourceIp': '192.0.2.0/24' } },
  });
  const body = Buffer.from(policy);
  expect((await send(server, { method: 'PUT', path: '/vault?policy', body })).status).toBe(204);
  const [code, text] = await explain('s3:PutObject', { context: ['aws:SourceIp=198.51.100.1'] });
  expect(code).toBe(1);
  expect(text).toContain('by ResourcePolicy (Resource Policy), statement {"Effect":"Deny"');
  expect((await explain('s3:PutObject', { context: ['aws:SourceIp=192.0.2.1'] }))[0]).toBe(0);
  await run((c, o) => createGroup(c, 'nobody', o));
  const group = as.replace(':user/asked', ':group/nobody');
  const ofGroup = await run((c, o) =>
    explainPolicy(c, { ...o, as: group, action: ['s3:PutObject'], resource: ['arn:aws:s3:::vault/key'] }),
  );
  expect(ofGroup).toContain('denied: no statement allows it');
  await expect(explain('s3:PutObject', { context: ['aws:SourceIp'] })).rejects.toThrow(
    '--context takes key=value',
  );
  expect((await send(server, { method: 'DELETE', path: '/vault?policy' })).status).toBe(204);
});
