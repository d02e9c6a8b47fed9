// Users and roles that are deleted and made again under the same name: policies that named the old ones do not mean them.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type GatewayWorld, openGatewayWorld } from '../../../tests/support/objects/gateway-world.ts';
import { callIam } from '../../../tests/support/servers/iam-api.ts';
import { send } from '../../../tests/support/servers/raw-s3.ts';
import { compilePolicy } from '../../policy/documents/compile-policy.ts';
import { findPrincipalIds } from './principal-ids.ts';

let world: GatewayWorld;
let owner: Awaited<ReturnType<GatewayWorld['makeAccount']>>;
beforeAll(async () => {
  world = await openGatewayWorld();
  owner = await world.makeAccount('owner');
});
afterAll(() => world.close());

interface Keys {
  accessKey: string;
  secretKey: string;
  token?: string;
}

async function iam(Action: string, parameters: Record<string, string> = {}) {
  const answer = await callIam({ ...owner, endpoint: world.endpoint }, { Action, ...parameters });
  expect([Action, answer.status, answer.message]).toEqual([Action, 200, undefined]);
  return answer;
}

async function makeUser(UserName: string): Promise<Keys> {
  await iam('CreateUser', { UserName });
  const made = await iam('CreateAccessKey', { UserName });
  return { accessKey: made.text('AccessKeyId') ?? '', secretKey: made.text('SecretAccessKey') ?? '' };
}

async function makeAgain(UserName: string, { accessKey: AccessKeyId }: Keys): Promise<Keys> {
  await iam('DeleteAccessKey', { UserName, AccessKeyId });
  await iam('DeleteUser', { UserName });
  return makeUser(UserName);
}

async function s3(keys: Keys, method: string, path: string, body = ''): Promise<number> {
  const headers: Record<string, string> =
    keys.token === undefined ? {} : { 'x-amz-security-token': keys.token };
  const request = { method, path, headers, body: Buffer.from(body) };
  return (await send({ ...keys, endpoint: world.endpoint }, request)).status;
}

const userArn = (name: string) => `arn:aws:iam::${owner.accountId}:user/${name}`;
const policy = (...Statement: object[]) => JSON.stringify({ Version: '2012-10-17', Statement });
const putPolicy = async (bucket: string, ...statements: object[]) =>
  expect(await s3(owner, 'PUT', `/${bucket}?policy`, policy(...statements))).toBe(204);
const statement = (bucket: string, name: string, Effect: 'Allow' | 'Deny' = 'Allow') => ({
  Effect,
  Principal: { AWS: userArn(name) },
  Action: 's3:ListBucket',
  Resource: `arn:aws:s3:::${bucket}`,
});

test('a bucket policy means the user that it named, not the next one of that name', async () => {
  const ann = await makeUser('ann');
  await s3(owner, 'PUT', '/named');
  await putPolicy('named', statement('named', 'ann'));
  expect(await s3(ann, 'GET', '/named')).toBe(200);
  const again = await makeAgain('ann', ann);
  expect(await s3(again, 'GET', '/named')).toBe(403);
  await putPolicy('named', statement('named', 'ann'));
  expect(await s3(again, 'GET', '/named')).toBe(200);
});

test('the same after the bucket was renamed', async () => {
  const bea = await makeUser('bea');
  await s3(owner, 'PUT', '/before');
  await putPolicy('before', statement('before', 'bea'));
  const headers = { destination: 'behind' };
  const moved = await send(
    { ...owner, endpoint: world.endpoint },
    { method: 'MOVE', path: '/before', headers },
  );
  expect(moved.status).toBe(200);
  expect(await s3(bea, 'GET', '/behind')).toBe(200);
  expect(await s3(await makeAgain('bea', bea), 'GET', '/behind')).toBe(403);
});

test('what denies by a name denies whoever has it', async () => {
  const cat = await makeUser('cat');
  await s3(owner, 'PUT', '/denied');
  await putPolicy('denied', statement('denied', 'cat', 'Deny'), {
    ...statement('denied', 'cat'),
    Principal: { AWS: '*' },
    Condition: { StringEquals: { 'aws:PrincipalAccount': owner.accountId } },
  });
  expect(await s3(cat, 'GET', '/denied')).toBe(403);
  expect(await s3(await makeAgain('cat', cat), 'GET', '/denied')).toBe(403);
});

test('a name that nobody has yet means whoever gets it', async () => {
  await s3(owner, 'PUT', '/early');
  await putPolicy('early', statement('early', 'dan'));
  const dan = await makeUser('dan');
  expect(await s3(dan, 'GET', '/early')).toBe(200);
});

test('NotPrincipal spares the user that it named, not the next one of that name', async () => {
  const eve = await makeUser('eve');
  const Resource = 'arn:aws:s3:::spared';
  await s3(owner, 'PUT', '/spared');
  const NotPrincipal = { AWS: [userArn('eve'), `arn:aws:iam::${owner.accountId}:root`] };
  const everybody = { ...statement('spared', 'eve'), Principal: { AWS: '*' } };
  await putPolicy(
    'spared',
    { Effect: 'Deny', NotPrincipal, Action: 's3:ListBucket', Resource },
    { ...everybody, Condition: { StringEquals: { 'aws:PrincipalAccount': owner.accountId } } },
  );
  expect(await s3(eve, 'GET', '/spared')).toBe(200);
  expect(await s3(await makeAgain('eve', eve), 'GET', '/spared')).toBe(403);
});

async function assume(keys: Keys, role: string): Promise<Keys | string> {
  const RoleArn = `arn:aws:iam::${owner.accountId}:role/${role}`;
  const answer = await callIam(
    { ...keys, endpoint: world.endpoint },
    { Action: 'AssumeRole', RoleArn, RoleSessionName: 'session' },
    { service: 'sts', ...(keys.token !== undefined && { token: keys.token }) },
  );
  const [accessKey, secretKey, token] = ['AccessKeyId', 'SecretAccessKey', 'SessionToken'].map(answer.text);
  if (!accessKey || !secretKey || !token) return answer.code ?? '';
  return { accessKey, secretKey, token };
}

const trust = (AWS: string) => policy({ Effect: 'Allow', Principal: { AWS }, Action: 'sts:AssumeRole' });

test('a trust policy means the user and the role that it named, when it was put last', async () => {
  const fay = await makeUser('fay');
  const makeOuter = () =>
    iam('CreateRole', { RoleName: 'outer', AssumeRolePolicyDocument: trust(userArn('fay')) });
  await makeOuter();
  const outerArn = `arn:aws:iam::${owner.accountId}:role/outer`;
  await iam('CreateRole', { RoleName: 'inner', AssumeRolePolicyDocument: trust(outerArn) });
  const session = (await assume(fay, 'outer')) as Keys;
  expect(await assume(session, 'inner')).toMatchObject({ token: expect.any(String) });

  await iam('DeleteRole', { RoleName: 'outer' });
  await makeOuter();
  const again = (await assume(fay, 'outer')) as Keys;
  expect(await assume(again, 'inner')).toBe('AccessDenied');
  await iam('UpdateAssumeRolePolicy', { RoleName: 'inner', PolicyDocument: trust(outerArn) });
  expect(await assume(again, 'inner')).toMatchObject({ token: expect.any(String) });

  const next = await makeAgain('fay', fay);
  expect(await assume(next, 'outer')).toBe('AccessDenied');
  await iam('UpdateAssumeRolePolicy', { RoleName: 'outer', PolicyDocument: trust(userArn('fay')) });
  expect(await assume(next, 'outer')).toMatchObject({ token: expect.any(String) });
});

test('a policy may name a session, which is one of the role that it named', async () => {
  const gus = await makeUser('gus');
  const make = () => iam('CreateRole', { RoleName: 'job', AssumeRolePolicyDocument: trust(userArn('gus')) });
  await make();
  await s3(owner, 'PUT', '/sessions');
  const AWS = `arn:aws:sts::${owner.accountId}:assumed-role/job/session`;
  await putPolicy('sessions', { ...statement('sessions', ''), Principal: { AWS } });
  expect(await s3((await assume(gus, 'job')) as Keys, 'GET', '/sessions')).toBe(200);
  await iam('DeleteRole', { RoleName: 'job' });
  await make();
  expect(await s3((await assume(gus, 'job')) as Keys, 'GET', '/sessions')).toBe(403);
});

test('of many names some are looked up in each turn of the loop', async () => {
  const AWS = Array.from({ length: 60 }, (_, at) => `arn:aws:iam::${owner.accountId}:role/r${at}`);
  const text = policy({ ...statement('many', ''), Principal: { AWS } });
  const compiled = compilePolicy(text, { type: 'resource', bucket: 'many' });
  if (compiled.kind !== 'compiled') throw new Error(compiled.message);
  let hasTurned = false;
  const hadTurns: boolean[] = [];
  await findPrincipalIds(compiled.policy, async (_account, keys) => {
    hadTurns.push(hasTurned);
    hasTurned = false;
    setImmediate(() => {
      hasTurned = true;
    });
    return keys.map(() => null);
  });
  expect(hadTurns).toEqual([false, true, true]);
});
