// Decisions over HTTP: who may do what, by which policies, and what the refusal says to the caller and to the operator.
import { hash } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type GatewayWorld, openGatewayWorld } from '../../../tests/support/objects/gateway-world.ts';
import {
  addRole,
  addUser,
  beginSession,
  policyText,
  type TestKeys,
} from '../../../tests/support/objects/identities.ts';
import { send } from '../../../tests/support/servers/raw-s3.ts';

let world: GatewayWorld;
let owner: Awaited<ReturnType<GatewayWorld['makeAccount']>>;
let other: typeof owner;
beforeAll(async () => {
  world = await openGatewayWorld();
  [owner, other] = [await world.makeAccount('owner'), await world.makeAccount('other')];
  await ask(owner, 'PUT', '/kept');
  await ask(owner, 'PUT', '/kept/plain');
});
afterAll(() => world.close());

type Keys = TestKeys & { token?: string };

async function ask(keys: Keys, method: string, path: string, headers: Record<string, string> = {}) {
  const { token } = keys;
  const sent = { ...headers, ...(token !== undefined && { 'x-amz-security-token': token }) };
  const answer = await send({ ...keys, endpoint: world.endpoint }, { method, path, headers: sent });
  const code = /<Code>(\w+)</.exec(String(answer.body))?.[1];
  const message = /<Message>([^<]*)</.exec(String(answer.body))?.[1] ?? '';
  return { status: answer.status, code, message: message.replaceAll('&quot;', '"') };
}

const statuses = async (keys: Keys, ...requests: [string, string][]) => {
  const found: number[] = [];
  for (const [method, path] of requests) found.push((await ask(keys, method, path)).status);
  return found;
};

async function setPolicy(bucket: string, statements: readonly object[] | null): Promise<void> {
  const { record } = await world.metadata.query('find-name', { name: bucket as never });
  if (record === null) throw new Error('no bucket');
  const document = statements === null ? null : { text: policyText(statements) };
  const command = { bucketId: record.bucketId, kind: 'policy', document } as never;
  await world.metadata.execute('set-bucket-config', command, record.homeShard);
}

const allow = (Action: string | string[], Resource: string) => ({ Effect: 'Allow', Action, Resource });

test('a user may do what its policies allow, and is told what is lacking', async () => {
  const reader = await addUser(world, owner.accountId, {
    name: 'reader',
    statements: [allow(['s3:GetObject', 's3:ListBucket'], '*')],
  });
  expect(await statuses(reader, ['GET', '/kept/plain'], ['GET', '/kept'], ['GET', '/kept/missing'])).toEqual([
    200, 200, 404,
  ]);
  const user = `arn:aws:iam::${owner.accountId}:user/reader`;
  expect(await ask(reader, 'DELETE', '/kept/plain')).toEqual({
    status: 403,
    code: 'AccessDenied',
    message: `User: ${user} is not authorized to perform: s3:DeleteObject on resource: "arn:aws:s3:::kept/plain" because no identity-based policy allows the s3:DeleteObject action`,
  });
  expect(world.requests().at(-1)).toMatchObject({
    refusedAction: 's3:DeleteObject',
    refusedResource: 'arn:aws:s3:::kept/plain',
    refusedBy: 'no identity policy allows it',
  });
  expect(await statuses(reader, ['PUT', '/kept/new'], ['PUT', '/readers'], ['GET', '/'])).toEqual([
    403, 403, 403,
  ]);
});

test('a boundary limits a user, and a session policy its session', async () => {
  const statements = [allow('s3:*', '*')];
  const bounded = await addUser(world, owner.accountId, {
    name: 'bounded',
    statements,
    boundary: [allow('s3:Get*', '*')],
  });
  expect(await statuses(bounded, ['GET', '/kept/plain'], ['PUT', '/kept/new'])).toEqual([200, 403]);
  expect((await ask(bounded, 'PUT', '/kept/new')).message).toContain('no permissions boundary allows');
  const id = await addRole(world, owner.accountId, { name: 'writer', statements });
  const base = {
    kind: 'role',
    accountId: owner.accountId,
    id,
    issuer: owner.accessKey,
    name: 'job',
  } as const;
  const whole = beginSession(world, base);
  expect(await statuses(whole, ['PUT', '/kept/of-role'], ['GET', '/kept/of-role'])).toEqual([200, 200]);
  const policies = [{ name: 'session', text: policyText([allow('s3:PutObject', '*')]) }];
  const limited = beginSession(world, { ...base, policies });
  expect(await statuses(limited, ['PUT', '/kept/of-role'], ['GET', '/kept/of-role'])).toEqual([200, 403]);
});

test('a session needs its own token, and ends with its time, its key and its user', async () => {
  const user = await addUser(world, owner.accountId, { name: 'brief', statements: [allow('s3:*', '*')] });
  const base = { kind: 'user', accountId: owner.accountId, id: user.id, issuer: user.accessKey } as const;
  const session = beginSession(world, base);
  expect((await ask(session, 'GET', '/kept/plain')).status).toBe(200);
  const [first, second] = [session, beginSession(world, base)];
  expect(await ask({ ...first, token: second.token }, 'GET', '/kept/plain')).toMatchObject({
    status: 400,
    code: 'InvalidToken',
  });
  expect((await ask({ ...first, token: 'bm90IG91cnM=' }, 'GET', '/kept')).code).toBe('InvalidToken');
  expect((await ask({ accessKey: first.accessKey, secretKey: first.secretKey }, 'GET', '/kept')).code).toBe(
    'InvalidAccessKeyId',
  );
  const ended = beginSession(world, { ...base, expiresAtMs: Date.now() - 1 });
  expect((await ask(ended, 'GET', '/kept')).code).toBe('ExpiredToken');
  const orphan = beginSession(world, { ...base, id: 'AIDAGONE' });
  expect((await ask(orphan, 'GET', '/kept')).code).toBe('InvalidAccessKeyId');
});

test('where a bucket may be made is a condition on its document', async () => {
  const condition = { Condition: { StringEquals: { 's3:LocationConstraint': 'eu-west-1' } } };
  const statements = [{ ...allow('s3:CreateBucket', '*'), ...condition }];
  const user = await addUser(world, owner.accountId, { name: 'settler', statements });
  const make = (place: string) => {
    const text = `<CreateBucketConfiguration><LocationConstraint>${place}</LocationConstraint></CreateBucketConfiguration>`;
    const request = { method: 'PUT', path: '/settled', body: Buffer.from(text) };
    return send({ ...user, endpoint: world.endpoint }, request);
  };
  expect([(await make('us-west-2')).status, (await ask(user, 'PUT', '/settled')).status]).toEqual([403, 403]);
  expect((await make('eu-west-1')).status).toBe(200);
});

test("a bucket's policy opens it to others and closes it to its own account, but for repair by its root", async () => {
  await ask(owner, 'PUT', '/shared');
  await ask(owner, 'PUT', '/shared/open');
  const user = await addUser(world, owner.accountId, { name: 'everyday', statements: [allow('s3:*', '*')] });
  const guest = await addUser(world, other.accountId, {
    name: 'guest',
    statements: [allow('s3:GetObject', 'arn:aws:s3:::shared/*')],
  });
  const stranger = await addUser(world, other.accountId, { name: 'stranger' });
  expect(await statuses(other, ['GET', '/shared/open'])).toEqual([403]);
  const Principal = { AWS: `arn:aws:iam::${other.accountId}:root` };
  const objects = 'arn:aws:s3:::shared/*';
  await setPolicy('shared', [
    { ...allow('s3:GetObject', objects), Principal },
    { Effect: 'Deny', Principal: '*', Action: 's3:DeleteObject', Resource: objects },
  ]);
  expect(await statuses(other, ['GET', '/shared/open'], ['PUT', '/shared/x'])).toEqual([200, 403]);
  expect(await statuses(guest, ['GET', '/shared/open'])).toEqual([200]);
  expect(await statuses(stranger, ['GET', '/shared/open'])).toEqual([403]);
  expect((await ask(stranger, 'GET', '/shared/open')).message).toBe('Access Denied');
  expect((await ask(user, 'DELETE', '/shared/open')).message).toContain(
    'with an explicit deny in a resource-based policy',
  );
  expect(await statuses(owner, ['DELETE', '/shared/open'])).toEqual([403]);
  await setPolicy('shared', null);
  expect(await statuses(owner, ['DELETE', '/shared/open'])).toEqual([204]);
});

test('conditions see the request and the stored tags', async () => {
  await ask(owner, 'PUT', '/judged');
  await ask(owner, 'PUT', '/judged/tagged', { 'x-amz-tagging': 'keep=yes' });
  await ask(owner, 'PUT', '/judged/plain');
  await setPolicy('judged', [
    {
      Effect: 'Deny',
      Principal: '*',
      Action: 's3:GetObject',
      Resource: 'arn:aws:s3:::judged/*',
      Condition: {
        StringEquals: { 's3:ExistingObjectTag/keep': 'yes' },
        StringNotLike: { 'aws:UserAgent': 'archive*' },
      },
    },
    {
      Effect: 'Allow',
      Principal: '*',
      Action: 's3:GetObject',
      Resource: 'arn:aws:s3:::judged/p*',
      Condition: { IpAddress: { 'aws:SourceIp': '127.0.0.0/8' }, Bool: { 'aws:SecureTransport': 'false' } },
    },
  ]);
  expect((await ask(owner, 'GET', '/judged/tagged')).status).toBe(403);
  expect((await ask(owner, 'GET', '/judged/tagged', { 'user-agent': 'archiver/1' })).status).toBe(200);
  expect((await fetch(`${world.endpoint}/judged/plain`)).status).toBe(200);
  expect((await fetch(`${world.endpoint}/judged/tagged`)).status).toBe(403);
  expect((await fetch(`${world.endpoint}/judged/plain`, { method: 'DELETE' })).status).toBe(403);
});

test('of a copy the version that it takes is judged, not the current one; of a list its own versions', async () => {
  await ask(owner, 'PUT', '/several');
  const body = Buffer.from('<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>');
  await send(
    { ...owner, endpoint: world.endpoint },
    { method: 'PUT', path: '/several?versioning', body, headers: {} },
  );
  const put = async (kind: string) => {
    const { headers } = await send(
      { ...owner, endpoint: world.endpoint },
      { method: 'PUT', path: '/several/key', headers: { 'x-amz-tagging': `kind=${kind}` } },
    );
    return String(headers['x-amz-version-id']);
  };
  const [secret, open] = [await put('secret'), await put('open')];
  const reader = await addUser(world, owner.accountId, {
    name: 'reader-of-open',
    statements: [
      allow('s3:*', 'arn:aws:s3:::several/mine/*'),
      allow(['s3:PutObject', 's3:DeleteObject*'], 'arn:aws:s3:::several/key'),
      {
        ...allow(['s3:GetObject*', 's3:DeleteObjectVersion'], 'arn:aws:s3:::several/key'),
        Condition: { StringEquals: { 's3:ExistingObjectTag/kind': 'open' } },
      },
      {
        ...allow('s3:DeleteObjectVersion', 'arn:aws:s3:::several/key'),
        Effect: 'Deny',
        Condition: { StringNotEquals: { 's3:VersionId': open } },
      },
    ],
  });
  const copy = async (path: string, versionId: string) => {
    const headers = { 'x-amz-copy-source': `/several/key?versionId=${versionId}` };
    return (await ask(reader, 'PUT', path, headers)).status;
  };
  expect(await copy('/several/mine/copy', open)).toBe(200);
  expect(await copy('/several/mine/copy', secret)).toBe(403);
  const remove = async (versionId: string) => {
    const list = `<Delete><Object><Key>key</Key><VersionId>${versionId}</VersionId></Object></Delete>`;
    const headers = { 'content-md5': hash('md5', list, 'base64') };
    const request = {
      method: 'POST',
      path: '/several?delete',
      body: Buffer.from(list),
      headers,
    };
    const { body: answer } = await send({ ...reader, endpoint: world.endpoint }, request);
    return /<(Deleted|Code)>/.exec(String(answer))?.[1];
  };
  expect(await remove(secret)).toBe('Code');
  expect(await remove(open)).toBe('Deleted');
});

test('a condition on what is copied holds in every spelling of it', async () => {
  await ask(owner, 'PUT', '/sources');
  for (const key of ['open/a', 'secret/a']) await ask(owner, 'PUT', `/sources/${key}`);
  const writer = await addUser(world, owner.accountId, {
    name: 'copier',
    statements: [
      allow('s3:*', '*'),
      {
        Effect: 'Deny',
        Action: 's3:PutObject',
        Resource: '*',
        Condition: { StringLike: { 's3:x-amz-copy-source': 'sources/secret/*' } },
      },
    ],
  });
  const copy = async (source: string) =>
    (await ask(writer, 'PUT', '/sources/copy', { 'x-amz-copy-source': source })).status;
  expect([await copy('sources/open/a'), await copy('/sources/open/a')]).toEqual([200, 200]);
  for (const source of [
    'sources/secret/a',
    '/sources/secret/a',
    '/sources/%73ecret/a',
    'sources%2Fsecret%2Fa',
  ])
    expect(await copy(source), source).toBe(403);
});

test('tags that a request does not give count as none', async () => {
  await ask(owner, 'PUT', '/marked');
  await ask(owner, 'PUT', '/marked/source', { 'x-amz-tagging': 'project=other' });
  const own = { StringEquals: { 's3:RequestObjectTag/project': 'own' } };
  const writer = await addUser(world, owner.accountId, {
    name: 'writer-of-own',
    statements: [
      { ...allow(['s3:PutObject', 's3:PutObjectTagging'], 'arn:aws:s3:::marked/*'), Condition: own },
      allow('s3:GetObject*', 'arn:aws:s3:::marked/*'),
    ],
  });
  const tagged = { 'x-amz-tagging': 'project=own' };
  const put = async (path: string, headers: Record<string, string>) =>
    (await ask(writer, 'PUT', path, headers)).status;
  expect(await put('/marked/key', tagged)).toBe(200);
  expect(await put('/marked/key', {})).toBe(403);
  const source = { ...tagged, 'x-amz-copy-source': '/marked/source' };
  expect(await put('/marked/copy', { ...source, 'x-amz-tagging-directive': 'REPLACE' })).toBe(200);
  expect(await put('/marked/copy', source)).toBe(403);
  expect(await put('/marked/source?append', tagged)).toBe(403);
  const tagging = (value: string) =>
    `<Tagging><TagSet><Tag><Key>project</Key><Value>${value}</Value></Tag></TagSet></Tagging>`;
  const setTags = (value: string) =>
    send(
      { ...writer, endpoint: world.endpoint },
      { method: 'PUT', path: '/marked/key?tagging', body: Buffer.from(tagging(value)), headers: tagged },
    );
  expect((await setTags('own')).status).toBe(200);
  expect((await setTags('other')).status).toBe(403);
  const noTags = tagging('x').replace(/<Tag>.*<\/Tag>/, '');
  const emptied = await send(
    { ...writer, endpoint: world.endpoint },
    { method: 'PUT', path: '/marked/key?tagging', body: Buffer.from(noTags), headers: tagged },
  );
  expect(emptied.status).toBe(403);
});

test('who may do everything under some names takes over no other bucket by renaming it', async () => {
  await ask(owner, 'PUT', '/payroll');
  await ask(owner, 'PUT', '/team-one');
  const team = ['arn:aws:s3:::team-*', 'arn:aws:s3:::team-*/*'];
  const member = await addUser(world, owner.accountId, {
    name: 'member',
    statements: [{ Effect: 'Allow', Action: 's3:*', Resource: team }],
  });
  const rename = async (from: string, to: string) =>
    (await ask(member, 'MOVE', `/${from}`, { destination: to })).status;
  expect(await rename('payroll', 'team-payroll')).toBe(403);
  expect(await rename('team-one', 'mine')).toBe(403);
  expect(await rename('team-one', 'team-two')).toBe(200);
});
