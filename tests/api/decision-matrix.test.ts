// Every operation as every kind of caller: who gets its answer, who is refused, and what a refusal tells. The requests of the
// operations, and the actions that each of them needs, are in tests/support/objects/operation-requests.ts. Each message to a shard
// is serialised, as between machines: so each operation has been served by shards that are elsewhere.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { READ_METHODS } from '../../src/gateway/s3/operation.ts';
import { OPERATIONS } from '../../src/gateway/s3/registry.ts';
import { POLICY_ACTIONS } from '../../src/types/policy/actions.ts';
import { type GatewayWorld, openGatewayWorld } from '../support/objects/gateway-world.ts';
import { addRole, addUser, beginSession, policyText, type TestKeys } from '../support/objects/identities.ts';
import {
  type Caller,
  type Fixture,
  type OperationRequest,
  REQUESTS,
  RETENTION,
} from '../support/objects/operation-requests.ts';
import { postForm, signForm } from '../support/servers/forms.ts';
import { type RawAnswer, send, sendBare } from '../support/servers/raw-s3.ts';

type Account = Awaited<ReturnType<GatewayWorld['makeAccount']>>;
type Keys = (TestKeys & { token?: string }) | 'anonymous';

let world: GatewayWorld;
let owner: Account;
let other: Account;
let role: string;
beforeAll(async () => {
  world = await openGatewayWorld({ isSerialized: true });
  [owner, other] = [await world.makeAccount('owner'), await world.makeAccount('other')];
  const statements = [allow('s3:*')];
  role = await addRole(world, owner.accountId, { name: 'worker', statements });
});
afterAll(() => world.close());

const allow = (Action: string | readonly string[]) => ({ Effect: 'Allow', Action, Resource: '*' });
const deny = (Action: string) => ({ ...allow(Action), Effect: 'Deny' });
const allBut = (NotAction: string) => ({ Effect: 'Allow', NotAction, Resource: '*' });

// ---- callers ----

const users = new Map<string, Promise<TestKeys & { arn: string }>>();

/** A user with these policies; the same one for the same policies. */
function userWith(statements: readonly object[], boundary?: readonly object[], account: Account = owner) {
  const id = JSON.stringify([account.accountId, statements, boundary]);
  const known = users.get(id);
  if (known !== undefined) return known;
  const name = `user-${users.size}`;
  const holder = { name, statements, ...(boundary && { boundary }) };
  const arn = `arn:aws:iam::${account.accountId}:user/${name}`;
  const made = addUser(world, account.accountId, holder).then((keys) => ({ ...keys, arn }));
  users.set(id, made);
  return made;
}

function sessionWithout(action: string): Keys {
  const { accountId, accessKey: issuer } = owner;
  const policies = [{ name: 'session', text: policyText([allBut(action)]) }];
  return beginSession(world, { kind: 'role', accountId, id: role, issuer, name: 'job', policies });
}

// ---- requests ----

async function ask(keys: Keys, wanted: OperationRequest): Promise<RawAnswer> {
  if (wanted.form !== undefined) return post(keys, wanted);
  const { method, path, headers = {}, body } = wanted;
  const sized = body === undefined ? {} : { 'content-length': String(body.length) };
  if (keys === 'anonymous') {
    const { endpoint } = world;
    return sendBare({ endpoint }, { method, path, headers: { ...sized, ...headers }, ...(body && { body }) });
  }
  const token = keys.token === undefined ? {} : { 'x-amz-security-token': keys.token };
  const access = { ...keys, endpoint: world.endpoint };
  return send(access, { method, path, headers: { ...headers, ...token }, ...(body && { body }) });
}

function post(keys: Keys, { path, form = [] }: OperationRequest): Promise<RawAnswer> {
  const bucket = path.slice(1);
  if (keys === 'anonymous') return postForm(world, bucket, { fields: form });
  const token = keys.token === undefined ? [] : [['x-amz-security-token', keys.token] as const];
  const access = { ...keys, endpoint: world.endpoint };
  return postForm(world, bucket, { fields: signForm(access, bucket, [...form, ...token]) });
}

async function asOwner(method: string, path: string, more: Partial<OperationRequest> = {}) {
  const answer = await ask(owner, { method, path, ...more });
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.body}`);
  return answer;
}

const codeOf = ({ body }: RawAnswer) => /<Code>(\w+)</.exec(String(body))?.[1];
const messageOf = ({ body }: RawAnswer) => /<Message>([^<]*)</.exec(String(body))?.[1];
/** `403 AccessDenied`, `200`; of DeleteObjects what happened to its keys: `200 AccessDenied`. */
const outcomeOf = (answer: RawAnswer) => [answer.status, codeOf(answer)].filter(Boolean).join(' ');

// ---- fixtures ----

let bucketCount = 0;
const STORED = Buffer.from('what is stored');

/** A bucket with an object of two versions, another one beside it, and an upload of a part. */
async function makeFixture({ isLocked = false }: { isLocked?: boolean | undefined } = {}): Promise<Fixture> {
  const bucket = `fixture-${++bucketCount}`;
  const at = `/${bucket}`;
  await asOwner('PUT', at, isLocked ? { headers: { 'x-amz-bucket-object-lock-enabled': 'true' } } : {});
  const enabled = '<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>';
  await asOwner('PUT', `${at}?versioning`, { body: Buffer.from(enabled) });
  const written = await asOwner('PUT', `${at}/secret-plan`, { body: STORED });
  await asOwner('PUT', `${at}/secret-plan`, { body: STORED, headers: { 'x-amz-tagging': 'keep=yes' } });
  await asOwner('PUT', `${at}/beside`, { body: STORED });
  const begun = await asOwner('POST', `${at}/secret-plan?uploads`);
  const uploadId = /<UploadId>([^<]+)</.exec(String(begun.body))?.[1] ?? '';
  const part = await asOwner('PUT', `${at}/secret-plan?partNumber=1&uploadId=${uploadId}`, { body: STORED });
  const versionId = String(written.headers['x-amz-version-id']);
  if (isLocked) {
    await asOwner('PUT', `${at}/secret-plan?retention&versionId=${versionId}`, { body: RETENTION });
    const body = Buffer.from('<LegalHold><Status>ON</Status></LegalHold>');
    await asOwner('PUT', `${at}/secret-plan?legal-hold`, { body });
  }
  return { bucket, key: 'secret-plan', versionId, uploadId, etag: String(part.headers.etag) };
}

/** The same requests for what is not there. */
function absent(fixture: Fixture): Fixture {
  const turned = (id: string) => [...id].reverse().join('');
  const { versionId, uploadId } = fixture;
  return { ...fixture, key: 'absent-plan', versionId: turned(versionId), uploadId: turned(uploadId) };
}

/** Of requests that read, one for all. */
let shared: { plain: Fixture; locked: Fixture };
let sharedContents: string[];
beforeAll(async () => {
  shared = { plain: await makeFixture(), locked: await makeFixture({ isLocked: true }) };
  sharedContents = await contentsOfShared();
});
const contentsOfShared = async () => [
  ...(await contentsOf(shared.plain)),
  ...(await contentsOf(shared.locked)),
];

/** All that requests may change of a fixture. */
async function contentsOf({ bucket, key, versionId, uploadId }: Fixture): Promise<string[]> {
  const at = `/${bucket}`;
  const paths = [
    `${at}?versions`,
    `${at}?uploads`,
    `${at}?versioning`,
    `${at}?acl`,
    `${at}/${key}?tagging`,
    `${at}/${key}?acl`,
    `${at}/${key}?uploadId=${uploadId}`,
  ];
  const contents: string[] = [];
  for (const path of paths) contents.push(String((await asOwner('GET', path)).body));
  const mayBeNone = [
    `${at}?policy`,
    `${at}?object-lock`,
    ...['retention', 'legal-hold'].flatMap((query) => [
      `${at}/${key}?${query}`,
      `${at}/${key}?${query}&versionId=${versionId}`,
    ]),
  ];
  for (const path of mayBeNone) {
    const answer = await ask(owner, { method: 'GET', path });
    contents.push(answer.status === 200 ? String(answer.body) : 'none');
  }
  return contents;
}

/** The bucket's policy, of statements about all of it. */
async function setPolicy({ bucket }: Fixture, statements: readonly object[]): Promise<void> {
  const Resource = [`arn:aws:s3:::${bucket}`, `arn:aws:s3:::${bucket}/*`];
  const sent = statements.map((statement) => ({ ...statement, Resource }));
  await asOwner('PUT', `/${bucket}?policy`, { body: Buffer.from(policyText(sent)) });
}

// ---- what refusals tell ----

const TOLD = new Set(['Error', 'Code', 'Message', 'Resource', 'RequestId', 'HostId']);

/** A refusal that says that it is one, and where, and nothing else. */
function expectSilence(answer: RawAnswer, { method, path }: OperationRequest): void {
  if (method === 'HEAD') return void expect(answer.body).toHaveLength(0);
  const body = String(answer.body).replaceAll(path.replaceAll('&', '&amp;'), '');
  expect(messageOf(answer)).toBe('Access Denied');
  expect(
    [...body.matchAll(/<(\w+)>/g)].map(([, name]) => name).filter((name) => !TOLD.has(name ?? '')),
  ).toEqual([]);
  for (const secret of [owner.accountId, owner.canonicalId, owner.accessKey, 'arn:', 'beside', 'owner'])
    expect(body).not.toContain(secret);
}

/** What of an answer may depend on whether there is such a key: nothing, for who may not know. */
function comparable(answer: RawAnswer, { bucket, key, versionId, uploadId }: Fixture): object {
  const { date: _, ...headers } = answer.headers;
  const shown = Object.entries(headers).filter(
    ([name]) => !name.startsWith('x-amz-id') && name !== 'x-amz-request-id',
  );
  const body = String(answer.body)
    .replace(/<(RequestId|HostId)>[^<]*/g, '<$1>')
    .replaceAll(versionId, 'VERSION')
    .replaceAll(uploadId, 'UPLOAD')
    .replaceAll(key, 'KEY')
    .replaceAll(bucket, 'BUCKET');
  const sized = shown.filter(([name]) => name !== 'content-length');
  return { status: answer.status, headers: Object.fromEntries(sized), body };
}

// ---- the matrix ----

test('every operation is in the matrix', () => {
  const named = new Set<string>(REQUESTS.map(({ operation }) => operation));
  expect([...named].sort()).toEqual(OPERATIONS.map(({ name }) => name).sort());
});

const NO_BODY = /^\d+/;
const ofHead = (outcome: string) => NO_BODY.exec(outcome)?.[0] ?? '';

test('the actions of the matrix are those that operations ask for', () => {
  const named = new Set(REQUESTS.flatMap(({ needs, othersNeed = [] }) => [...needs, ...othersNeed]));
  expect([...named].sort()).toEqual([...POLICY_ACTIONS].sort());
});

describe.each(
  REQUESTS.map((each) => ({ ...each, title: [each.operation, each.form].filter(Boolean).join(' ') })),
)('$title', (row) => {
  const {
    needs,
    othersNeed = [],
    notOfBucket = [],
    answer = '200',
    refusal = '403 AccessDenied',
    answers = {},
  } = row;
  const { isLocked } = row;
  const fixtureOf = async () => {
    if (!isRead) return makeFixture({ isLocked });
    return isLocked ? shared.locked : shared.plain;
  };
  const match = OPERATIONS.find(({ name }) => name === row.operation)?.match;
  const isRead = READ_METHODS.has(match?.method ?? '');
  const isHead = match?.method === 'HEAD';
  const all = [...needs, ...othersNeed];
  const ofBucket = all.filter((action) => !notOfBucket.includes(action));
  /** Of those that read it is looked at once, in the end. */
  const look = (fixture: Fixture) => (isRead ? [] : contentsOf(fixture));
  const expected = (outcome: string) => (isHead ? ofHead(outcome) : outcome);

  test('whoever is not allowed is refused, learns nothing, and changes nothing', async () => {
    const fixture = await fixtureOf();
    const before = await look(fixture);
    const wanted = row.request(fixture);
    const found: Record<string, string> = {};
    const wished: Record<string, string> = {};
    const judge = async (cell: string, keys: Keys, told: string) => {
      const given = await ask(keys, wanted);
      found[cell] = outcomeOf(given);
      wished[cell] = expected(told);
      return given;
    };
    for (const action of all) {
      const denied = await userWith([allow('s3:*'), deny(action)]);
      const given = await judge(`identity policy denies ${action}`, denied, refusal);
      const told = `User: ${denied.arn} is not authorized to perform: ${action} on resource: `;
      if (given.status === 403 && !isHead && !row.unnamed?.includes(action))
        expect(messageOf(given)).toContain(told);
    }
    for (const action of needs) {
      const bounded = await userWith([allow('s3:*')], [allBut(action)]);
      await judge(`boundary lacks ${action}`, bounded, refusal);
      await judge(`session policy lacks ${action}`, sessionWithout(action), refusal);
    }
    for (const [caller, keys] of [
      ['stranger', other],
      ['anybody', 'anonymous'],
    ] as const) {
      const given = await judge(caller, keys, answers[caller] ?? refusal);
      if (given.status !== 403) continue;
      expectSilence(given, wanted);
      const missing = absent(fixture);
      const unknown = await ask(keys, row.request(missing));
      expect(comparable(unknown, missing)).toEqual(comparable(given, fixture));
    }
    expect(found).toEqual(wished);
    expect(await look(fixture)).toEqual(before);
  });

  test.runIf(ofBucket.length > 0)('whom the policy of the bucket denies it is refused', async () => {
    const fixture = await fixtureOf();
    const denied = await userWith([allow('s3:*')]);
    for (const action of ofBucket) {
      await setPolicy(fixture, [{ Effect: 'Deny', Principal: { AWS: denied.arn }, Action: action }]);
      const before = await look(fixture);
      expect(outcomeOf(await ask(denied, row.request(fixture))), action).toBe(expected(refusal));
      expect(await look(fixture)).toEqual(before);
    }
    await asOwner('DELETE', `/${fixture.bucket}?policy`);
  });

  test('whoever is allowed just that may', async () => {
    const found: Record<string, string> = {};
    const wished: Record<string, string> = {};
    const judge = async (caller: Caller, keys: Keys, principal?: unknown) => {
      const fixture = await fixtureOf();
      const isShared = principal !== undefined && ofBucket.length > 0;
      if (isShared) await setPolicy(fixture, [{ Effect: 'Allow', Principal: principal, Action: ofBucket }]);
      found[caller] = outcomeOf(await ask(keys, row.request(fixture)));
      wished[caller] = expected(
        answers[caller] ?? (caller === 'powerless' && all.length > 0 ? refusal : answer),
      );
      if (isShared && isRead) await asOwner('DELETE', `/${fixture.bucket}?policy`);
    };
    await judge('root', owner);
    await judge('allowed', needs.length === 0 ? await userWith([]) : await userWith([allow(needs)]));
    await judge('guest', other, { AWS: other.accountId });
    await judge('powerless', await userWith([], undefined, other), { AWS: other.accountId });
    await judge('public', 'anonymous', '*');
    expect(found).toEqual(wished);
  });
});

test('requests that read have changed nothing', async () => {
  expect(await contentsOfShared()).toEqual(sharedContents);
});
