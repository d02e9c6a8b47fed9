// Decisions over HTTP: who may do what, by which policies, and what the refusal says to the caller and to the operator.
import { hash } from 'node:crypto';
import { once } from 'node:events';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type GatewayWorld, openGatewayWorld } from '../../../tests/support/objects/gateway-world.ts';
import {
  addRole,
  addUser,
  beginSession,
  policyText,
  type TestKeys,
} from '../../../tests/support/objects/identities.ts';
import { answerOf, openRequest, send, sendBare } from '../../../tests/support/servers/raw-s3.ts';
import { presign } from '../../../tests/support/servers/s3-client.ts';

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

test('an upload is not stored whose key went while it was sent, and is while other keys go', async () => {
  const [uploader, another] = [await world.makeAccount('uploader'), await world.makeAccount('another')];
  await ask(uploader, 'PUT', '/uploads');
  const begin = async (key: string) => {
    const headers = { 'content-length': '70000', expect: '100-continue' };
    const sent = openRequest(
      { ...uploader, endpoint: world.endpoint },
      { method: 'PUT', path: key, headers },
    );
    const [continued, answered] = [once(sent, 'continue'), answerOf(sent)];
    sent.flushHeaders();
    await continued;
    sent.write(Buffer.alloc(40_000));
    return { sent, answered };
  };
  const revoke = async (keys: typeof uploader) => {
    const { accountId, accessKey } = keys;
    await world.metadata.execute('change-access-key', { accountId, accessKey, change: 'disable' });
    while ((await ask(keys, 'GET', '/')).status !== 403);
  };
  const early = await begin('/uploads/early');
  await revoke(another);
  early.sent.end(Buffer.alloc(30_000));
  expect((await early.answered).statusCode).toBe(200);
  const late = await begin('/uploads/late');
  await revoke(uploader);
  late.sent.end(Buffer.alloc(30_000));
  const refused = await late.answered;
  expect([refused.statusCode, String(await buffer(refused))]).toEqual([
    403,
    expect.stringContaining('<Code>InvalidAccessKeyId</Code>'),
  ]);
  const { record } = await world.metadata.query('find-name', { name: 'uploads' as never });
  const list = { bucketId: record?.bucketId, prefix: '', max: 10 } as never;
  const { versions } = await world.metadata.query('list-versions', list, record?.homeShard);
  expect(versions.map(({ key }) => key)).toEqual(['early']);
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

test('who may write by copies alone writes nothing else, whatever headers of copies are sent', async () => {
  await ask(owner, 'PUT', '/copied');
  await ask(owner, 'PUT', '/copied/source');
  const Condition = { StringEquals: { 's3:x-amz-metadata-directive': 'COPY' } };
  const copier = await addUser(world, owner.accountId, {
    name: 'copies-only',
    statements: [allow('s3:GetObject', '*'), { ...allow('s3:PutObject', '*'), Condition }],
  });
  const asCopy = { 'x-amz-metadata-directive': 'COPY' };
  const from = { 'x-amz-copy-source': 'copied/source' };
  const write = async (method: string, path: string, headers: Record<string, string> = asCopy) =>
    (await ask(copier, method, path, headers)).status;
  expect(await write('PUT', '/copied/target', { ...from, ...asCopy })).toBe(200);
  expect(await write('PUT', '/copied/target', { ...from, 'x-amz-metadata-directive': 'REPLACE' })).toBe(403);
  expect(await write('PUT', '/copied/target')).toBe(403);
  expect(await write('POST', '/copied/target?uploads=')).toBe(403);
  expect(await write('PUT', '/copied/source?append=')).toBe(403);
  expect(await write('MOVE', '/copied/source', { ...asCopy, destination: 'moved' })).toBe(403);
});

test('a bound of how many keys are listed holds in every spelling of the number', async () => {
  const Condition = { NumericGreaterThan: { 's3:max-keys': '10' }, Null: { 's3:max-keys': 'false' } };
  const deny = (over: object) => ({
    Effect: 'Deny',
    Action: 's3:ListBucket',
    Resource: '*',
    Condition: over,
  });
  const reader = await addUser(world, owner.accountId, {
    name: 'short-pages',
    statements: [allow('s3:*', '*'), deny(Condition), deny({ Null: { 's3:max-keys': 'true' } })],
  });
  const list = async (count: string) => (await ask(reader, 'GET', `/kept?max-keys=${count}`)).status;
  expect([await list('10'), await list(`${'0'.repeat(120)}10`)]).toEqual([200, 200]);
  for (const count of ['11', '%2B11', `${'0'.repeat(120)}1000`, ''])
    expect(await list(count), count).toBe(403);
});

test('a payload that is not signed is known as such, however the request says so', async () => {
  const writer = await addUser(world, owner.accountId, {
    name: 'signs-bodies',
    statements: [
      allow('s3:*', '*'),
      {
        Effect: 'Deny',
        Action: 's3:PutObject',
        Resource: '*',
        Condition: { StringEquals: { 's3:x-amz-content-sha256': 'UNSIGNED-PAYLOAD' } },
      },
    ],
  });
  const [method, path, body] = ['PUT', '/kept/signed', Buffer.from('a')];
  const put = async (digest: string) => {
    const headers = { 'x-amz-content-sha256': digest };
    return (await send({ endpoint: world.endpoint, ...writer }, { method, path, body, headers })).status;
  };
  expect([await put(hash('sha256', body)), await put('UNSIGNED-PAYLOAD')]).toEqual([200, 403]);
  const headers = { host: new URL(world.endpoint).host };
  const link = { method, uri: path, headers, credentials: writer, nowMs: Date.now(), expiresSeconds: 60 };
  const answer = await sendBare({ endpoint: world.endpoint }, { method, path: presign(link), headers, body });
  expect(answer.status).toBe(403);
});

test('what is denied to tags that a request gives is denied to a MOVE that brings some', async () => {
  await ask(owner, 'PUT', '/brought');
  for (const key of ['a', 'b'])
    await ask(owner, 'PUT', `/brought/${key}`, { 'x-amz-tagging': 'class=secret' });
  const deny = (Condition: object) => ({
    Effect: 'Deny',
    Action: 's3:PutObject',
    Resource: 'arn:aws:s3:::brought/public/*',
    Condition,
  });
  const moverWith = (name: string, condition: object) =>
    addUser(world, owner.accountId, { name, statements: [allow('s3:*', '*'), deny(condition)] });
  const move = async (keys: Keys, from: string, to: string) =>
    (await ask(keys, 'MOVE', `/brought/${from}`, { destination: to })).status;
  const ofTag = await moverWith('by-tag', { StringEquals: { 's3:RequestObjectTag/class': 'secret' } });
  const keys = await moverWith('by-keys', {
    'ForAnyValue:StringEquals': { 's3:RequestObjectTagKeys': 'class' },
  });
  for (const mover of [ofTag, keys]) expect(await move(mover, 'a', 'public/a')).toBe(403);
  expect(await move(ofTag, 'b', 'private/b')).toBe(200);
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

test('a MOVE needs no right to read its source, but none who is denied that moves it to where he may', async () => {
  await ask(owner, 'PUT', '/kept/secret/a');
  await ask(owner, 'PUT', '/kept/secret/b');
  const open = allow(['s3:PutObject', 's3:CreateBucket'], '*');
  const deny = (Action: string) => ({ Effect: 'Deny', Action, Resource: 'arn:aws:s3:::kept/secret/*' });
  const writer = await addUser(world, owner.accountId, { name: 'only-writes', statements: [open] });
  const blinds = [
    await addUser(world, owner.accountId, { name: 'blind', statements: [open, deny('s3:GetObject')] }),
    await addUser(world, owner.accountId, {
      name: 'blind-to-all',
      statements: [open, deny('s3:GetObject*')],
    }),
  ];
  const refused = { status: 403, code: 'AccessDenied' };
  for (const blind of blinds) {
    const to = { destination: 'open/a' };
    expect(await ask(blind, 'MOVE', '/kept/secret/a', to)).toMatchObject(refused);
    expect(world.requests().at(-1)).toMatchObject({ refusedAction: 's3:GetObject' });
    const prefix = { destination: 'open/', 'x-svc-prefix': 'true' };
    expect(await ask(blind, 'MOVE', '/kept/se', prefix)).toMatchObject(refused);
    // Under another name nothing would be denied to him any more.
    expect(await ask(blind, 'MOVE', '/kept', { destination: 'kept-by-other-name' })).toMatchObject(refused);
    expect((await ask(blind, 'MOVE', '/kept/secret/a', { destination: 'secret/a' })).status).toBe(400);
  }
  expect((await ask(writer, 'MOVE', '/kept/secret/a', { destination: 'secret/c' })).status).toBe(200);
  // What the bucket's own policy denies goes along with the bucket, but not with a key.
  await ask(owner, 'PUT', '/follows');
  await ask(owner, 'PUT', '/follows/secret/a');
  const ofBucket = { Effect: 'Deny', Principal: '*', Action: 's3:GetObject' };
  await setPolicy('follows', [{ ...ofBucket, Resource: 'arn:aws:s3:::follows/secret/*' }]);
  const key = { destination: 'open/a' };
  expect(await ask(owner, 'MOVE', '/follows/secret/a', key)).toMatchObject(refused);
  expect((await ask(owner, 'MOVE', '/follows', { destination: 'followed' })).status).toBe(200);
  expect(await ask(owner, 'GET', '/followed/secret/a')).toMatchObject(refused);
});

test('older versions are denied by a right of their own, which a MOVE asks for where there may be some', async () => {
  await ask(owner, 'PUT', '/versioned');
  await ask(owner, 'PUT', '/versioned/a');
  const blind = await addUser(world, owner.accountId, {
    name: 'blind-to-versions',
    statements: [
      allow('s3:PutObject', '*'),
      { Effect: 'Deny', Action: 's3:GetObjectVersion', Resource: 'arn:aws:s3:::versioned/*' },
    ],
  });
  const move = (from: string, to: string) => ask(blind, 'MOVE', `/versioned/${from}`, { destination: to });
  expect((await move('a', 'b')).status).toBe(200);
  const { record } = await world.metadata.query('find-name', { name: 'versioned' as never });
  const document = { status: 'enabled' };
  const command = { bucketId: record?.bucketId, kind: 'versioning', document } as never;
  await world.metadata.execute('set-bucket-config', command, record?.homeShard);
  expect(await move('b', 'c')).toMatchObject({ status: 403, code: 'AccessDenied' });
});

test('who may not read an object learns nothing of it by the conditions of writes and deletions', async () => {
  await ask(owner, 'PUT', '/blind');
  const statements = [allow(['s3:PutObject', 's3:DeleteObject'], '*')];
  const user = await addUser(world, owner.accountId, { name: 'blind', statements });
  const reader = await addUser(world, owner.accountId, {
    name: 'reading',
    statements: [...statements, allow('s3:GetObject', '*')],
  });
  const etag = '"d41d8cd98f00b204e9800998ecf8427e"';
  const wrong = '"00000000000000000000000000000000"';
  await ask(owner, 'PUT', '/blind/source');
  const requests: [method: string, path: string, header: string, others?: Record<string, string>][] = [
    ['PUT', 'key', 'if-match'],
    ['PUT', 'key', 'if-none-match'],
    ['PUT', 'key?append', 'if-match'],
    ['MOVE', 'key', 'if-match', { destination: 'source' }],
    ['MOVE', 'source', 'x-svc-destination-if-match', { destination: 'key', overwrite: 'true' }],
    ['DELETE', 'key', 'if-match'],
  ];
  for (const [method, path, header, others] of requests) {
    await ask(owner, 'PUT', '/blind/key');
    const told = async (keys: Keys, tag: string) =>
      (await ask(keys, method, `/blind/${path}`, { ...others, [header]: tag })).status;
    const name = `${method} ${path} ${header}`;
    expect([await told(user, etag), await told(user, wrong)], name).toEqual([403, 403]);
    const failing = header === 'if-none-match' ? etag : wrong;
    expect(await told(reader, failing), name).toBe(412);
  }
  // Whether something is there they may ask.
  await ask(owner, 'PUT', '/blind/key');
  expect((await ask(user, 'PUT', '/blind/key', { 'if-none-match': '*' })).status).toBe(412);
  expect((await ask(user, 'PUT', '/blind/key', { 'if-match': '*' })).status).toBe(200);
  expect((await ask(user, 'DELETE', '/blind/key', { 'x-amz-if-match-size': '1' })).status).toBe(403);
  expect((await ask(user, 'DELETE', '/blind/key', { 'if-match': '*' })).status).toBe(204);
});

test('who may not read the components of a composition learns their ETags neither by conditions nor by its answer', async () => {
  await ask(owner, 'PUT', '/composing');
  await ask(owner, 'PUT', '/composing/secret');
  const statements = [allow('s3:PutObject', 'arn:aws:s3:::composing/*')];
  const [blind, reader] = [
    await addUser(world, owner.accountId, { name: 'blind-composer', statements }),
    await addUser(world, owner.accountId, {
      name: 'reading-composer',
      statements: [...statements, allow('s3:GetObject', 'arn:aws:s3:::composing/secret')],
    }),
  ];
  const compose = async (keys: Keys, its: string, headers: Record<string, string> = {}) => {
    const body = Buffer.from(
      `<ComposeRequest><Component><Key>secret</Key>${its}</Component></ComposeRequest>`,
    );
    const wanted = { method: 'PUT', path: '/composing/made?compose', body, headers };
    const answer = await send({ ...keys, endpoint: world.endpoint }, wanted);
    return [answer.status, answer.headers.etag];
  };
  const [etag, wrong] = ['d41d8cd98f00b204e9800998ecf8427e', '00000000000000000000000000000000'];
  for (const [its, status] of [
    [`<IfMatch>${etag}</IfMatch>`, 200],
    [`<IfMatch>${wrong}</IfMatch>`, 412],
    [`<IfNoneMatch>${etag}</IfNoneMatch>`, 412],
  ] as const) {
    expect(await compose(blind, its), its).toEqual([403, undefined]);
    expect((await compose(reader, its))[0], its).toBe(status);
  }
  const token = { 'x-svc-idempotency-token': 'once' };
  for (const told of [await compose(blind, '', token), await compose(blind, '', token)])
    expect(told).toEqual([200, undefined]);
  expect(await compose(reader, '')).toEqual([200, expect.stringMatching(/-1"$/)]);
});

test('conditions of policies are met by what a request does, not by headers that it passes over', async () => {
  await ask(owner, 'PUT', '/meets');
  const statements = [
    allow('s3:PutObject', 'arn:aws:s3:::meets/free/*'),
    {
      ...allow(['s3:PutObject', 's3:DeleteObject'], 'arn:aws:s3:::meets/bound/*'),
      Condition: { Null: { 's3:if-match': 'false' } },
    },
    {
      ...allow('s3:PutObject', 'arn:aws:s3:::meets/new/*'),
      Condition: { StringEquals: { 's3:if-none-match': '*' } },
    },
    {
      ...allow(['s3:PutObject', 's3:PutObjectTagging'], 'arn:aws:s3:::meets/private/*'),
      Condition: { StringEquals: { 's3:x-amz-acl': 'private' } },
    },
    allow(['s3:PutObjectTagging', 's3:GetObject'], '*'),
  ];
  const user = await addUser(world, owner.accountId, { name: 'meets', statements });
  const etag = '"d41d8cd98f00b204e9800998ecf8427e"';
  for (const key of ['free/a', 'free/b', 'bound/a', 'private/a']) await ask(owner, 'PUT', `/meets/${key}`);
  const move = async (from: string, headers: Record<string, string>) =>
    (await ask(user, 'MOVE', `/meets/${from}`, headers)).status;
  const over = { overwrite: 'true', destination: 'bound/a' };
  // The condition is on the source: what is at the destination would be replaced whatever it is.
  expect(await move('free/a', { ...over, 'if-match': etag })).toBe(403);
  expect(await move('free/a', { ...over, 'x-svc-destination-if-match': etag })).toBe(200);
  const fresh = { destination: 'new/a' };
  expect(await move('free/b', { ...fresh, 'if-none-match': '"other"' })).toBe(403);
  expect(await move('free/b', { ...fresh, 'x-svc-destination-if-none-match': '*' })).toBe(200);

  // DeleteObjects has its conditions in its document.
  const remove = async (element: string, headers: Record<string, string> = {}) => {
    const body = `<Delete><Object><Key>bound/a</Key>${element}</Object></Delete>`;
    const digest = hash('md5', body, 'base64');
    const sent = { ...headers, 'content-md5': digest };
    const request = { method: 'POST', path: '/meets?delete', headers: sent, body: Buffer.from(body) };
    const answer = await send({ ...user, endpoint: world.endpoint }, request);
    return /<(Code|Deleted)>(\w*)/.exec(String(answer.body))?.slice(1).join(' ');
  };
  expect(await remove('', { 'if-match': etag })).toBe('Code AccessDenied');
  expect(await remove('<ETag>"d41d8cd98f00b204e9800998ecf8427e"</ETag>')).toBe('Deleted ');

  // An append leaves the list of the object as it is, and its tags.
  const acl = { 'x-amz-acl': 'private' };
  expect((await ask(user, 'PUT', '/meets/private/new', acl)).status).toBe(200);
  expect((await ask(user, 'PUT', '/meets/private/a?append', acl)).status).toBe(403);
  for (const offset of ['0', '1']) {
    const headers = { ...acl, 'x-amz-write-offset-bytes': offset };
    expect((await ask(user, 'PUT', '/meets/private/a', headers)).status).toBe(403);
  }
  const created = { ...acl, 'x-amz-write-offset-bytes': '0' };
  expect((await ask(user, 'PUT', '/meets/private/newer', created)).status).toBe(200);
});

test('who may append, and not read, learns nothing of what was there', async () => {
  await ask(owner, 'PUT', '/appended');
  await ask(owner, 'PUT', '/appended/log', { 'x-amz-checksum-crc32': 'AAAAAA==' });
  const writer = await addUser(world, owner.accountId, {
    name: 'appends',
    statements: [allow('s3:PutObject', 'arn:aws:s3:::appended/*')],
  });
  const append = (keys: Keys, headers: Record<string, string> = {}) =>
    send({ ...keys, endpoint: world.endpoint }, { method: 'PUT', path: '/appended/log?append', headers });
  const told = ['etag', 'x-amz-object-size', 'x-amz-checksum-crc32', 'x-amz-checksum-type'];
  const toldTo = ({ headers }: Awaited<ReturnType<typeof append>>) =>
    told.filter((name) => headers[name] !== undefined);
  const [ofOwner, ofWriter] = [await append(owner), await append(writer)];
  expect([ofOwner.status, ofWriter.status]).toEqual([200, 200]);
  expect(toldTo(ofOwner)).toEqual(told);
  expect(toldTo(ofWriter)).toEqual([]);
  const wrong = { 'x-amz-write-offset-bytes': '7' };
  for (const [keys, tells] of [
    [owner, true],
    [writer, false],
  ] as const) {
    const refused = String((await append(keys, wrong)).body);
    expect(refused).toContain('<Code>InvalidWriteOffset</Code>');
    expect(refused.includes('<ObjectSize>')).toBe(tells);
  }
});

test('a header is compared as the text that it says, and a digest in one spelling', async () => {
  const page = 'https://b\u00fccher.example/';
  const digest = hash('sha256', '');
  const deny = (key: string, value: string) => ({
    Effect: 'Deny',
    Action: '*',
    Resource: '*',
    Condition: { StringEquals: { [key]: value } },
  });
  const user = await addUser(world, owner.accountId, {
    name: 'texts',
    statements: [
      allow('*', '*'),
      deny('aws:Referer', page),
      deny('aws:UserAgent', page),
      deny('s3:x-amz-content-sha256', digest),
    ],
  });
  const statusOf = async (headers: Record<string, string>) =>
    (await ask(user, 'GET', '/kept/plain', headers)).status;
  const sent = Buffer.from(page).toString('latin1');
  expect(await statusOf({ referer: sent })).toBe(403);
  expect(await statusOf({ 'user-agent': sent })).toBe(403);
  // Bytes that are no UTF-8 are a text all the same.
  expect(await statusOf({ referer: page })).toBe(403);
  expect(await statusOf({ referer: `${sent}x` })).toBe(200);
  expect(await statusOf({ 'x-amz-content-sha256': digest })).toBe(403);
  expect(await statusOf({ 'x-amz-content-sha256': digest.toUpperCase() })).toBe(403);
});
