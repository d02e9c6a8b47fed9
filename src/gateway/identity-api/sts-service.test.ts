// STS over HTTP: who a caller is, session tokens, roles within an account and across accounts.
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type GatewayWorld, openGatewayWorld } from '../../../tests/support/objects/gateway-world.ts';
import { addMfaDevice, addRole, addUser, policyText } from '../../../tests/support/objects/identities.ts';
import { callIam, type IamAnswer } from '../../../tests/support/servers/iam-api.ts';
import { send } from '../../../tests/support/servers/raw-s3.ts';
import { codeAt, stepAt } from './one-time-codes.ts';

let world: GatewayWorld;
let account: Awaited<ReturnType<GatewayWorld['makeAccount']>>;
let partner: typeof account;
beforeAll(async () => {
  world = await openGatewayWorld();
  [account, partner] = [await world.makeAccount('account'), await world.makeAccount('partner')];
});
afterAll(() => world.close());

interface Keys {
  accessKey: string;
  secretKey: string;
  token?: string;
}

const call = (keys: Keys, Action: string, parameters: Record<string, string | number> = {}) =>
  callIam({ ...keys, endpoint: world.endpoint }, { Action, ...parameters }, { service: 'sts', ...keys });

function keysOf(answer: IamAnswer): Required<Keys> {
  const [accessKey = '', secretKey = '', token = ''] = [
    answer.text('AccessKeyId'),
    answer.text('SecretAccessKey'),
    answer.text('SessionToken'),
  ];
  return { accessKey, secretKey, token };
}

async function s3(keys: Keys, method: string, path: string): Promise<number> {
  const headers: Record<string, string> =
    keys.token === undefined ? {} : { 'x-amz-security-token': keys.token };
  return (await send({ ...keys, endpoint: world.endpoint }, { method, path, headers })).status;
}

const allow = (Action: string | string[], Resource: string) => ({ Effect: 'Allow', Action, Resource });
const trust = (AWS: string, extra: object = {}) =>
  policyText([
    { Effect: 'Allow', Principal: { AWS }, Action: ['sts:AssumeRole', 'sts:TagSession'], ...extra },
  ]);

test('every caller may learn who it is, whatever its policies deny', async () => {
  const statements = [{ Effect: 'Deny', Action: '*', Resource: '*' }];
  const user = await addUser(world, account.accountId, { name: 'who', statements });
  expect(await call(account, 'GetCallerIdentity')).toMatchObject({ status: 200 });
  const shown = await call(user, 'GetCallerIdentity');
  expect([shown.text('Arn'), shown.text('UserId'), shown.text('Account')]).toEqual([
    `arn:aws:iam::${account.accountId}:user/who`,
    user.id,
    account.accountId,
  ]);
  expect(await call(user, 'GetFederationToken')).toMatchObject({ status: 400, code: 'InvalidAction' });
});

describe('GetSessionToken', () => {
  test('gives credentials with the rights of the user, and may not be called with them', async () => {
    const user = await addUser(world, account.accountId, {
      name: 'with-token',
      statements: [allow('s3:ListAllMyBuckets', '*')],
    });
    const keys = keysOf(await call(user, 'GetSessionToken', { DurationSeconds: 900 }));
    expect(keys.accessKey).toMatch(/^ASIA[A-Z2-7]{17}$/);
    expect([await s3(keys, 'GET', '/'), await s3(keys, 'PUT', '/new-bucket')]).toEqual([200, 403]);
    expect(await call(keys, 'GetSessionToken')).toMatchObject({ status: 403, code: 'AccessDenied' });
    expect((await call(keys, 'GetCallerIdentity')).text('Arn')).toMatch(/:user\/with-token$/);
    const { expiration } = {
      expiration: Date.parse((await call(account, 'GetSessionToken')).text('Expiration') ?? ''),
    };
    expect(expiration - Date.now()).toBeLessThanOrEqual(3_600_000);
  });

  test.each([
    ['too short', { DurationSeconds: 899 }, /greater than or equal to 900/],
    ['too long', { DurationSeconds: 129_601 }, /less than or equal to 129600/],
    ['a code without a device', { TokenCode: '123456' }, /both/],
  ])('refuses what is %s', async (_, parameters, message) => {
    expect(await call(account, 'GetSessionToken', parameters)).toMatchObject({
      status: 400,
      code: 'ValidationError',
      message: expect.stringMatching(message),
    });
  });

  test('takes a code of a device once, and says in the session that it was there', async () => {
    const user = await addUser(world, account.accountId, {
      name: 'factor',
      statements: [
        {
          ...allow('s3:ListAllMyBuckets', '*'),
          Condition: { Bool: { 'aws:MultiFactorAuthPresent': 'true' } },
        },
      ],
    });
    const { serial, seed } = await addMfaDevice(world, account.accountId, { name: 'phone', owner: user.id });
    const TokenCode = codeAt(seed, stepAt(Date.now()));
    expect(await s3(user, 'GET', '/')).toBe(403);
    const wrong = TokenCode === '000000' ? '000001' : '000000';
    const refused = { status: 403, code: 'AccessDenied' };
    expect(await call(user, 'GetSessionToken', { SerialNumber: serial, TokenCode: wrong })).toMatchObject(
      refused,
    );
    expect(await call(account, 'GetSessionToken', { SerialNumber: serial, TokenCode })).toMatchObject(
      refused,
    );
    const given = await Promise.all(
      [1, 2].map(() => call(user, 'GetSessionToken', { SerialNumber: serial, TokenCode })),
    );
    expect(given.map(({ status }) => status).sort()).toEqual([200, 403]);
    const keys = keysOf(given.find(({ status }) => status === 200) as IamAnswer);
    expect(await s3(keys, 'GET', '/')).toBe(200);
  });
});

describe('AssumeRole', () => {
  const mayAssume = [allow(['sts:AssumeRole', 'sts:TagSession'], '*')];
  const arnOf = (name: string, accountId = account.accountId) => `arn:aws:iam::${accountId}:role/${name}`;
  const assume = (keys: Keys, RoleArn: string, parameters: Record<string, string | number> = {}) =>
    call(keys, 'AssumeRole', { RoleArn, RoleSessionName: 'job', ...parameters });

  test('needs the trust of the role and the right of the caller, and is never for roots', async () => {
    const statements = [allow('s3:*', '*')];
    await addRole(world, account.accountId, {
      name: 'backup',
      statements,
      trustPolicy: trust(`arn:aws:iam::${account.accountId}:root`),
    });
    await addRole(world, account.accountId, {
      name: 'closed',
      statements,
      trustPolicy: trust(partner.accountId),
    });
    const able = await addUser(world, account.accountId, { name: 'able', statements: mayAssume });
    const unable = await addUser(world, account.accountId, { name: 'unable', statements });
    const answer = await assume(able, arnOf('backup'));
    expect(answer.text('Arn')).toBe(`arn:aws:sts::${account.accountId}:assumed-role/backup/job`);
    expect(await s3(keysOf(answer), 'GET', '/')).toBe(200);
    expect((await call(keysOf(answer), 'GetCallerIdentity')).text('UserId')).toMatch(/^AROA\w+:job$/);
    for (const [keys, arn] of [
      [unable, arnOf('backup')],
      [able, arnOf('closed')],
      [able, arnOf('missing')],
      [account, arnOf('backup')],
    ] as const) {
      expect(await assume(keys, arn)).toMatchObject({ status: 403, code: 'AccessDenied' });
    }
    const [closed, missing] = [await assume(able, arnOf('closed')), await assume(able, arnOf('missing'))];
    expect(closed.message?.replace('closed', 'missing')).toBe(missing.message);
  });

  test('across accounts asks for the external id that the role wants', async () => {
    const Condition = { StringEquals: { 'sts:ExternalId': 'agreed' } };
    await addRole(world, partner.accountId, {
      name: 'shared',
      statements: [allow('s3:*', '*')],
      trustPolicy: trust(account.accountId, { Condition }),
    });
    const arn = arnOf('shared', partner.accountId);
    const user = await addUser(world, account.accountId, { name: 'visitor', statements: mayAssume });
    expect((await assume(user, arn)).status).toBe(403);
    const keys = keysOf(await assume(user, arn, { ExternalId: 'agreed' }));
    expect(await s3(keys, 'PUT', '/of-partner')).toBe(200);
    expect([await s3(partner, 'HEAD', '/of-partner'), await s3(account, 'HEAD', '/of-partner')]).toEqual([
      200, 403,
    ]);
  });

  test('hands transitive tags on, and refuses what does not fit into a token', async () => {
    const statements = [allow(['sts:AssumeRole', 'sts:TagSession'], '*')];
    const trustPolicy = trust(account.accountId);
    for (const name of ['first', 'second'])
      await addRole(world, account.accountId, { name, statements, trustPolicy });
    const user = await addUser(world, account.accountId, { name: 'chain', statements });
    const tag = { 'Tags.member.1.Key': 'team', 'Tags.member.1.Value': 'a' };
    const first = await assume(user, arnOf('first'), { ...tag, 'TransitiveTagKeys.member.1': 'team' });
    expect(await assume(keysOf(first), arnOf('second'), tag)).toMatchObject({
      status: 400,
      code: 'InvalidParameterValue',
    });
    expect((await assume(keysOf(first), arnOf('second'))).status).toBe(200);
    // They are given with each role: a role that lets nobody tag its sessions takes none of them over.
    const Statement = { Effect: 'Allow', Principal: { AWS: account.accountId }, Action: 'sts:AssumeRole' };
    const untagged = JSON.stringify({ Version: '2012-10-17', Statement });
    await addRole(world, partner.accountId, { name: 'untagged', statements, trustPolicy: untagged });
    const arn = arnOf('untagged', partner.accountId);
    expect((await assume(keysOf(first), arn)).status).toBe(403);
    expect((await assume(keysOf(await assume(user, arnOf('first'))), arn)).status).toBe(200);
    const many = Array.from({ length: 50 }, (_, at) => [
      [`Tags.member.${at + 1}.Key`, `key-${at}`],
      [`Tags.member.${at + 1}.Value`, randomBytes(120).toString('hex')],
    ]).flat();
    expect(await assume(user, arnOf('first'), Object.fromEntries(many))).toMatchObject({
      status: 400,
      code: 'PackedPolicyTooLarge',
    });
  });

  test('limits the session by its policies, tags it, and bounds its time', async () => {
    await addRole(world, account.accountId, {
      name: 'limited',
      statements: [
        {
          ...allow('s3:ListAllMyBuckets', '*'),
          Condition: { StringEquals: { 'aws:PrincipalTag/team': 'a' } },
        },
      ],
      trustPolicy: trust(account.accountId),
    });
    const user = await addUser(world, account.accountId, { name: 'tagger', statements: mayAssume });
    const arn = arnOf('limited');
    const tag = { 'Tags.member.1.Key': 'team', 'Tags.member.1.Value': 'a' };
    expect(await s3(keysOf(await assume(user, arn)), 'GET', '/')).toBe(403);
    expect(await s3(keysOf(await assume(user, arn, tag)), 'GET', '/')).toBe(200);
    const Policy = policyText([allow('s3:GetObject', '*')]);
    expect(await s3(keysOf(await assume(user, arn, { ...tag, Policy })), 'GET', '/')).toBe(403);
    const readOnly = { 'PolicyArns.member.1.arn': 'arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess' };
    expect(await s3(keysOf(await assume(user, arn, { ...tag, ...readOnly })), 'GET', '/')).toBe(200);
    expect(await assume(user, arn, { Policy: '{' })).toMatchObject({ code: 'MalformedPolicyDocument' });
    // White space counts where it does not fit into a session any more.
    expect(await assume(user, arn, { Policy: Policy + ' '.repeat(66_000) })).toMatchObject({
      status: 400,
      code: 'PackedPolicyTooLarge',
    });
    // So it does in managed ones, of which no more is read than fits.
    const long = Policy + ' '.repeat(30_000);
    const created = { Action: 'CreatePolicy', PolicyName: 'long', PolicyDocument: long };
    await callIam({ ...account, endpoint: world.endpoint }, created);
    const ofMine = (name: string) => `arn:aws:iam::${account.accountId}:policy/${name}`;
    const arns = ['long', 'long', 'long', 'missing'].map((name, at) => [
      `PolicyArns.member.${at + 1}.arn`,
      ofMine(name),
    ]);
    expect(await assume(user, arn, Object.fromEntries(arns))).toMatchObject({ code: 'PackedPolicyTooLarge' });
    expect(await assume(user, arn, { DurationSeconds: 3601 })).toMatchObject({
      code: 'ValidationError',
      message: expect.stringContaining('MaxSessionDuration'),
    });
  });
});

test('a managed policy limits a session under its own ARN alone', async () => {
  const { accountId } = account;
  // Its boundary is a managed policy.
  const boundary = [allow('s3:GetObject', '*')];
  await addRole(world, accountId, {
    name: 'bounded',
    statements: [allow('s3:*', '*')],
    boundary,
    trustPolicy: trust(accountId),
  });
  const user = await addUser(world, accountId, { name: 'limiter', statements: [allow('sts:*', '*')] });
  const assume = (policy: string) =>
    call(user, 'AssumeRole', {
      RoleArn: `arn:aws:iam::${accountId}:role/bounded`,
      RoleSessionName: 'job',
      'PolicyArns.member.1.arn': `arn:aws:iam::${accountId}:policy/${policy}`,
    });
  expect((await assume('boundary-of-bounded')).status).toBe(200);
  for (const other of ['elsewhere/boundary-of-bounded', 'Boundary-of-bounded', 'none', '//'])
    expect(await assume(other)).toMatchObject({ status: 400, code: 'ValidationError' });
});

test('the source identity of a session stays through a chain of roles', async () => {
  const { accountId } = account;
  const root = `arn:aws:iam::${accountId}:root`;
  const trustPolicy = policyText([
    { Effect: 'Allow', Principal: { AWS: root }, Action: ['sts:AssumeRole', 'sts:SetSourceIdentity'] },
  ]);
  const statements = [allow('sts:*', '*')];
  const user = await addUser(world, accountId, { name: 'chained', statements });
  for (const name of ['first', 'second']) await addRole(world, accountId, { name, statements, trustPolicy });
  const assume = (keys: Keys, name: string, SourceIdentity?: string) =>
    call(keys, 'AssumeRole', {
      RoleArn: `arn:aws:iam::${accountId}:role/${name}`,
      RoleSessionName: 'job',
      ...(SourceIdentity !== undefined && { SourceIdentity }),
    });
  const keys = keysOf(await assume(user, 'first', 'alice'));
  expect(await assume(keys, 'second', 'bob')).toMatchObject({ status: 403, code: 'AccessDenied' });
  expect((await assume(keys, 'second', 'alice')).status).toBe(200);
  expect((await assume(keys, 'second')).text('SourceIdentity')).toBe('alice');
});

test('the line of a request says what was asked for, and what refused it', async () => {
  const statements = [
    allow('sts:AssumeRole', '*'),
    { Sid: 'NotOwn', Effect: 'Deny', Action: 'iam:GetUser', Resource: '*' },
  ];
  const user = await addUser(world, account.accountId, { name: 'logged', statements });
  const RoleArn = `arn:aws:iam::${account.accountId}:role/none`;
  expect(await call(user, 'AssumeRole', { RoleArn, RoleSessionName: 'job' })).toMatchObject({ status: 403 });
  expect(world.requests().at(-1)).toMatchObject({
    action: 'sts:AssumeRole',
    errorCode: 'AccessDenied',
    refusedAction: 'sts:AssumeRole',
    refusedResource: RoleArn,
    refusedBy: 'no trust policy allows it',
  });
  expect(await callIam({ ...user, endpoint: world.endpoint }, { Action: 'GetUser' })).toMatchObject({
    status: 403,
  });
  expect(world.requests().at(-1)).toMatchObject({
    action: 'iam:GetUser',
    refusedAction: 'iam:GetUser',
    refusedResource: `arn:aws:iam::${account.accountId}:user/logged`,
    refusedBy: 'identity policy inline, statement 1 (NotOwn)',
  });
  await call(user, 'GetCallerIdentity');
  const line = world.requests().at(-1);
  expect([line?.action, line?.refusedAction]).toEqual(['sts:GetCallerIdentity', undefined]);
});

test('a session ends with the role whose session began it', async () => {
  const { accountId } = account;
  const trustPolicy = trust(`arn:aws:iam::${accountId}:root`);
  const statements = [allow(['sts:*', 's3:ListAllMyBuckets'], '*')];
  const user = await addUser(world, accountId, { name: 'going-on', statements });
  for (const name of ['entrance', 'room']) await addRole(world, accountId, { name, statements, trustPolicy });
  const assume = async (keys: Keys, name: string) =>
    keysOf(
      await call(keys, 'AssumeRole', {
        RoleArn: `arn:aws:iam::${accountId}:role/${name}`,
        RoleSessionName: 'job',
      }),
    );
  const within = await assume(await assume(user, 'entrance'), 'room');
  const again = await assume(within, 'room');
  expect([await s3(within, 'GET', '/'), await s3(again, 'GET', '/')]).toEqual([200, 200]);
  const iam = (Action: string, parameters: Record<string, string>) =>
    callIam({ ...account, endpoint: world.endpoint }, { Action, RoleName: 'entrance', ...parameters });
  expect((await iam('DeleteRolePolicy', { PolicyName: 'inline' })).status).toBe(200);
  expect((await iam('DeleteRole', {})).status).toBe(200);
  for (const keys of [within, again]) await expect.poll(() => s3(keys, 'GET', '/')).toBe(403);
});
