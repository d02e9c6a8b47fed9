// What a MOVE must not give: what another account may not read stays out of its reach, and what a user is denied under one name,
// of a bucket or of a key, it does not get under another one.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type GatewayWorld, openGatewayWorld } from '../../../../tests/support/objects/gateway-world.ts';
import { addUser, policyText, type TestKeys } from '../../../../tests/support/objects/identities.ts';
import { send, sendBare } from '../../../../tests/support/servers/raw-s3.ts';

let world: GatewayWorld;
let owner: Awaited<ReturnType<GatewayWorld['makeAccount']>>;
let other: typeof owner;
beforeAll(async () => {
  world = await openGatewayWorld();
  [owner, other] = [await world.makeAccount('owner'), await world.makeAccount('other')];
});
afterAll(() => world.close());

type Headers = Record<string, string>;

async function ask(keys: TestKeys | undefined, line: string, headers: Headers = {}, text?: string) {
  const [method = '', path = ''] = line.split(' ');
  const { endpoint } = world;
  const body = text === undefined ? undefined : Buffer.from(text);
  const wanted = { method, path, headers, ...(body && { body }) };
  return keys === undefined ? sendBare({ endpoint }, wanted) : send({ ...keys, endpoint }, wanted);
}

const statusOf = async (...asked: Parameters<typeof ask>) => (await ask(...asked)).status;

async function done(...asked: Parameters<typeof ask>) {
  const answer = await ask(...asked);
  if (answer.status >= 300) throw new Error(`${asked[1]}: ${answer.status} ${answer.body}`);
  return answer;
}

const VERSIONING = '<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>';

/** A bucket that keeps versions. */
async function makeBucket(name: string): Promise<void> {
  await done(owner, `PUT /${name}`);
  await done(owner, `PUT /${name}?versioning`, {}, VERSIONING);
}

const write = async (path: string, headers: Headers = {}) =>
  String((await done(owner, `PUT ${path}`, headers, 'secret')).headers['x-amz-version-id']);
const allow = (Action: string | string[], Resource: string | string[]) => ({
  Effect: 'Allow',
  Action,
  Resource,
});
const deny = (Action: string, Resource: string | string[]) => ({
  ...allow(Action, Resource),
  Effect: 'Deny',
});
const EVERYTHING = allow('s3:*', '*');

let userCount = 0;
const userWith = (statements: readonly object[], boundary?: readonly object[]) =>
  addUser(world, owner.accountId, {
    name: `user-${++userCount}`,
    statements,
    ...(boundary && { boundary }),
  });

test.each(['another account', 'nobody known'])(
  '%s moves nothing that it may not read to where it may',
  async (who) => {
    const bucket = who === 'nobody known' ? 'open-to-all' : 'open-to-other';
    const [stranger, Principal] =
      who === 'nobody known' ? [undefined, '*'] : [other, { AWS: other.accountId }];
    await makeBucket(bucket);
    const arn = `arn:aws:s3:::${bucket}`;
    const statements = [
      allow(['s3:PutObject', 's3:DeleteObject', 's3:DeleteObjectVersion'], `${arn}/*`),
      allow('s3:ListBucket', arn),
      allow(['s3:GetObject', 's3:GetObjectVersion'], `${arn}/shared/*`),
      // What moves brings its tags along.
      allow(['s3:Get*Tagging', 's3:PutObjectTagging'], `${arn}/shared/*`),
    ];
    const policy = policyText(statements.map((statement) => ({ ...statement, Principal })));
    await done(owner, `PUT /${bucket}?policy`, {}, policy);
    await write(`/${bucket}/private/there`);
    await write(`/${bucket}/private/gone`);
    await done(owner, `DELETE /${bucket}/private/gone`);
    const whole = { destination: 'shared/', 'x-svc-prefix': 'true' };
    expect(await statusOf(stranger, `MOVE /${bucket}/private/`, whole)).toBe(403);
    // No object has this key.
    expect(await statusOf(stranger, `MOVE /${bucket}/priv`, whole)).toBe(403);
    for (const key of ['there', 'gone', 'never-was'])
      expect(
        await statusOf(stranger, `MOVE /${bucket}/private/${key}`, { destination: `shared/${key}` }),
        key,
      ).toBe(403);
    await write(`/${bucket}/shared/a`);
    expect(await statusOf(stranger, `MOVE /${bucket}/shared/a`, { destination: 'shared/b' })).toBe(200);
    expect(await statusOf(stranger, `MOVE /${bucket}/shared/`, { ...whole, destination: 'shared/c/' })).toBe(
      200,
    );
  },
);

test('tags that a user may not read, or not give, are neither read nor given by renaming', async () => {
  await makeBucket('tagged');
  await write('/tagged/hidden/k', { 'x-amz-tagging': 'secret=yes' });
  const arn = (prefix: string) => `arn:aws:s3:::tagged/${prefix}/*`;
  for (const [denied, from, to] of [
    ['s3:GetObjectTagging', 'hidden', 'open'],
    ['s3:GetObjectVersionTagging', 'hidden', 'open'],
    ['s3:PutObjectTagging', 'open', 'hidden'],
  ] as const) {
    const user = await userWith([EVERYTHING, deny(denied, arn('hidden'))]);
    if (from === 'open') await done(owner, 'MOVE /tagged/hidden/k', { destination: 'open/k' });
    expect(await statusOf(user, `MOVE /tagged/${from}/k`, { destination: `${to}/k` }), denied).toBe(403);
  }
});

test('an access control list that a user may not give where it comes to stays, and so does what has it', async () => {
  await makeBucket('listed');
  const open = { 'x-amz-acl': 'authenticated-read' };
  const move = (user: TestKeys, from: string, to: string, headers: Headers = {}) =>
    ask(user, `MOVE /listed/${from}`, { destination: to, ...headers });
  const target = 'arn:aws:s3:::listed/out/*';
  const given = { StringLike: { 's3:x-amz-acl': '*' } };
  const guards = [
    deny('s3:PutObjectAcl', target),
    {
      ...deny('s3:PutObjectAcl', target),
      Condition: { StringEquals: { 's3:x-amz-acl': 'authenticated-read' } },
    },
    { ...deny('s3:PutObject', target), Condition: given },
    { ...deny('s3:PutObject', target), Condition: { Null: { 's3:x-amz-grant-read': 'false' } } },
  ];
  for (const [at, guard] of guards.entries()) {
    const user = await userWith([EVERYTHING, guard]);
    const name = (key: string) => `${at}/${key}`;
    await write(`/listed/${name('plain')}`);
    await write(`/listed/${name('open')}`, open);
    // Its older version is open.
    await write(`/listed/${name('was-open')}`, open);
    await write(`/listed/${name('was-open')}`, { 'x-amz-acl': 'private' });
    expect((await move(user, name('plain'), `out/${name('plain')}`)).status, JSON.stringify(guard)).toBe(200);
    for (const key of ['open', 'was-open']) {
      const refused = await move(user, name(key), `out/${name(key)}`);
      expect([refused.status, String(refused.body)]).toEqual([
        403,
        expect.stringContaining('s3:PutObjectAcl'),
      ]);
      expect(await statusOf(user, `HEAD /listed/${name(key)}`)).toBe(200);
      // Elsewhere it may.
      expect((await move(user, name(key), `elsewhere/${name(key)}`)).status).toBe(200);
      expect((await move(user, `elsewhere/${name(key)}`, name(key))).status).toBe(200);
    }
    await write(`/listed/${name('more')}`);
    const whole = await move(user, `${at}/`, `out/whole-${at}/`, { 'x-svc-prefix': 'true' });
    const text = String(whole.body);
    expect([...text.matchAll(/<Code>(\w+)</g)].map(([, code]) => code)).toEqual([
      'AccessDenied',
      'AccessDenied',
    ]);
    expect(await statusOf(user, `HEAD /listed/out/whole-${at}/more`)).toBe(200);
    expect(await statusOf(user, `HEAD /listed/${name('open')}`)).toBe(200);
  }
});

test('conditions on the source of a copy hold for what is composed, appended to and renamed', async () => {
  await makeBucket('copied');
  for (const key of ['public/a', 'public/b', 'secret/a', 'in/a']) await write(`/copied/${key}`);
  const all = 'arn:aws:s3:::copied/*';
  const source = 's3:x-amz-copy-source';
  const guards: [what: string, guard: object, onlyCopies: boolean][] = [
    ['no secret', { StringLike: { [source]: 'copied/secret/*' } }, false],
    [
      'public alone',
      { StringNotLikeIfExists: { [source]: 'copied/public/*' }, Null: { [source]: 'false' } },
      false,
    ],
    ['public alone, and no plain writes', { StringNotLike: { [source]: 'copied/public/*' } }, true],
  ];
  for (const [what, Condition, onlyCopies] of guards) {
    const user = await userWith([
      EVERYTHING,
      { ...deny('s3:PutObject', 'arn:aws:s3:::copied/to/*'), Condition },
    ]);
    const compose = (...keys: string[]) => {
      const parts = keys.map((key) => `<Component><Key>${key}</Key></Component>`).join('');
      return statusOf(user, 'PUT /copied/to/k?compose', {}, `<ComposeRequest>${parts}</ComposeRequest>`);
    };
    expect(await compose('public/a', 'public/b'), what).toBe(200);
    expect(await compose('public/a', 'secret/a'), what).toBe(403);
    expect(await statusOf(user, 'PUT /copied/to/k?append', {}, 'more'), what).toBe(onlyCopies ? 403 : 200);
    const move = (from: string, headers: Headers = {}) =>
      statusOf(user, `MOVE /copied/${from}`, { destination: `to/${from}`, ...headers });
    expect(await move('secret/a'), what).toBe(403);
    expect(await move('public/b'), what).toBe(200);
    await done(owner, 'MOVE /copied/to/public/b', { destination: 'public/b' });
    // Of a prefix nobody names the sources.
    for (const prefix of ['secret/', 'public/'])
      expect(await move(prefix, { 'x-svc-prefix': 'true' }), what).toBe(403);
  }
  const copier = await userWith([
    allow(['s3:GetObject', 's3:DeleteObject*'], all),
    { ...allow('s3:PutObject', all), Condition: { StringEquals: { [source]: 'copied/public/a' } } },
  ]);
  const body = (key: string) => `<ComposeRequest><Component><Key>${key}</Key></Component></ComposeRequest>`;
  expect(await statusOf(copier, 'PUT /copied/x?compose', {}, body('public/a'))).toBe(200);
  expect(await statusOf(copier, 'PUT /copied/x?compose', {}, body('public/b'))).toBe(403);
});

test('a MOVE encrypts nothing: the header of a key of a customer does not meet a condition that asks for one', async () => {
  await makeBucket('sealed');
  await write('/sealed/plain');
  const algorithm = 's3:x-amz-server-side-encryption-customer-algorithm';
  const target = 'arn:aws:s3:::sealed/safe/*';
  const header = { 'x-amz-server-side-encryption-customer-algorithm': 'AES256' };
  const denied = {
    ...deny('s3:PutObject', target),
    Condition: { StringNotEquals: { [algorithm]: 'AES256' } },
  };
  const allowed = {
    ...allow('s3:PutObject', target),
    Condition: { StringEquals: { [algorithm]: 'AES256' } },
  };
  for (const statements of [
    [EVERYTHING, denied],
    [allow('s3:PutObject', 'arn:aws:s3:::sealed/plain*'), allowed],
  ]) {
    const user = await userWith(statements);
    for (const whole of [{}, { 'x-svc-prefix': 'true' }]) {
      const headers = { destination: 'safe/plain', ...header, ...whole };
      expect(await statusOf(user, 'MOVE /sealed/plain', headers)).toBe(403);
    }
    expect(await statusOf(user, 'MOVE /sealed/plain', { destination: 'plain2', ...header })).toBe(200);
    await done(owner, 'MOVE /sealed/plain2', { destination: 'plain' });
  }
});

test('what a user is denied in a bucket by its own policies it is not allowed by renaming the bucket', async () => {
  await makeBucket('guarded');
  await write('/guarded/k');
  const [arn, all] = ['arn:aws:s3:::guarded', 'arn:aws:s3:::guarded/*'];
  const guards = [
    deny('s3:DeleteObject*', all),
    deny('s3:PutLifecycleConfiguration', arn),
    deny('s3:BypassGovernanceRetention', 'arn:aws:s3:::g*'),
    { Effect: 'Deny', NotAction: 's3:Get*', Resource: all },
  ];
  const rename = { destination: 'unguarded' };
  for (const guard of guards) {
    const users = [await userWith([EVERYTHING, guard]), await userWith([EVERYTHING], [EVERYTHING, guard])];
    for (const user of users) expect(await statusOf(user, 'MOVE /guarded', rename)).toBe(403);
  }
  expect(world.requests().at(-1)).toMatchObject({ refusedAction: 's3:DeleteBucket' });
  // What is denied under every name is denied under the new one, too.
  const follows = await userWith([
    EVERYTHING,
    deny('s3:DeleteObject*', '*'),
    deny('s3:PutObject', '*/keep/*'),
  ]);
  expect(await statusOf(follows, 'MOVE /guarded', rename)).toBe(200);
  expect(await statusOf(follows, 'DELETE /unguarded/k')).toBe(403);
});

test('who may make buckets of any name gets at no other by giving it the name of one of its own', async () => {
  await makeBucket('of-another');
  await write('/of-another/k');
  const makes = allow('s3:CreateBucket', '*');
  const own = (name: string) => allow('s3:*', [`arn:aws:s3:::${name}`, `arn:aws:s3:::${name}/*`]);
  const rename = { destination: 'own-1' };
  for (const user of [
    await userWith([makes, own('own-*')]),
    await userWith([EVERYTHING], [makes, own('own-*')]),
  ])
    expect(await statusOf(user, 'MOVE /of-another', rename)).toBe(403);
  for (const [user, to] of [
    [await userWith([makes]), 'own-1'],
    [await userWith([makes, own('own-*')]), 'own-2'],
    [await userWith([EVERYTHING, own('own-*')]), 'own-3'],
  ] as const) {
    const from = to === 'own-1' ? 'of-another' : `own-${Number(to.slice(-1)) - 1}`;
    expect(await statusOf(user, `MOVE /${from}`, { destination: to }), to).toBe(200);
  }
});

test('a version that a user is denied, or may not delete, it does not move to another key', async () => {
  await makeBucket('versions');
  const old = await write('/versions/in/k', { 'x-amz-tagging': 'secret=yes' });
  await write('/versions/in/k');
  const inside = 'arn:aws:s3:::versions/in/*';
  const byVersion = { StringEquals: { 's3:VersionId': old } };
  const byTag = { StringEquals: { 's3:ExistingObjectTag/secret': 'yes' } };
  const guards = [
    { ...deny('s3:GetObjectVersion', inside), Condition: byVersion },
    { ...deny('s3:GetObject*', inside), Condition: byTag },
    { ...deny('s3:DeleteObjectVersion', inside), Condition: byVersion },
    deny('s3:DeleteObjectVersion', inside),
  ];
  const to = { destination: 'out/k' };
  for (const guard of guards) {
    const user = await userWith([EVERYTHING, guard]);
    expect(await statusOf(user, 'MOVE /versions/in/k', to), JSON.stringify(guard)).toBe(403);
  }
  expect(await statusOf(await userWith([EVERYTHING]), 'MOVE /versions/in/k', to)).toBe(200);
});

test('who may not list a prefix learns no key of it by renaming it', async () => {
  await makeBucket('names');
  for (const key of ['in/a', 'in/b', 'in/c', 'out/c']) await write(`/names/${key}`);
  const list = (Action = 's3:ListBucket') => deny(Action, 'arn:aws:s3:::names');
  const blind = await userWith([
    EVERYTHING,
    { ...list(), Condition: { StringLike: { 's3:prefix': 'in/*' } } },
  ]);
  const move = async (user: TestKeys, from: string, to: string, headers: Headers = {}) =>
    String(
      (await ask(user, `MOVE /names/${from}`, { destination: to, 'x-svc-prefix': 'true', ...headers })).body,
    );
  const keysIn = (body: string) => [...body.matchAll(/<SourceKey>([^<]*)</g)].map(([, key]) => key);
  const token = { 'x-svc-idempotency-token': 'names' };
  for (const body of [await move(blind, 'in/', 'out/', token), await move(blind, 'in/', 'out/', token)]) {
    expect(keysIn(body)).toEqual([]);
    expect(body).toContain('<UnlistedErrorCount>1</UnlistedErrorCount><MoveCount>2</MoveCount>');
  }
  const told = await move(blind, 'out/', 'on/');
  expect([...new Set(keysIn(told))].sort()).toEqual(['out/a', 'out/b', 'out/c']);
  expect(keysIn(await move(await userWith([allow('s3:PutObject', '*')]), 'in/', 'over/'))).toEqual(['in/c']);
});

test('tags that come between the decision about a MOVE and its commit are not passed by', async () => {
  let between = async (): Promise<void> => {};
  const meanwhile = await openGatewayWorld({
    intercept: (shards) => ({
      ...shards,
      async execute(target, name, command) {
        if (name === 'move-key') await between();
        return shards.execute(target, name, command);
      },
    }),
  });
  try {
    const { endpoint } = meanwhile;
    const account = await meanwhile.makeAccount('tags');
    const put = (path: string, text: string) =>
      send({ ...account, endpoint }, { method: 'PUT', path, body: Buffer.from(text) });
    const tags = '<Tagging><TagSet><Tag><Key>secret</Key><Value>yes</Value></Tag></TagSet></Tagging>';
    await put('/late', '');
    await put('/late/k', 'secret');
    const tagged = { StringEquals: { 's3:ExistingObjectTag/secret': 'yes' } };
    const statements = [EVERYTHING, { ...deny('s3:GetObject', '*'), Condition: tagged }];
    const user = await addUser(meanwhile, account.accountId, { name: 'mover', statements });
    const move = async () => {
      const headers = { destination: 'moved' };
      return (await send({ ...user, endpoint }, { method: 'MOVE', path: '/late/k', headers })).status;
    };
    between = async () => {
      between = async () => {};
      expect((await put('/late/k?tagging', tags)).status).toBe(200);
    };
    expect(await move()).toBe(503);
    expect(await move()).toBe(403);
    await put('/late/k', 'open');
    expect(await move()).toBe(200);
  } finally {
    await meanwhile.close();
  }
});
