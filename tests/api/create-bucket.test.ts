// CreateBucket: names, owners, bodies, and every refusal, after which no bucket is there.
import { CreateBucketCommand } from '@aws-sdk/client-s3';
import { describe, expect, test } from 'vitest';
import { grantsIn } from '../support/servers/acls.ts';
import { CREATES_LOCK } from '../support/servers/locks.ts';
import type { Access } from '../support/servers/raw-s3.ts';
import { expectError, expectStatus, fieldsOf, freshWord, useApi } from '../support/servers/s3-api.ts';
import { setVersioning } from '../support/servers/versions.ts';

const api = useApi();
const freshName = () => `fresh-${freshWord()}`;

const create = (name: string, body?: string, headers: Record<string, string> = {}, as?: Access) =>
  api.send(
    { method: 'PUT', path: `/${name}`, headers, ...(body !== undefined && { body: Buffer.from(body) }) },
    as,
  );
const exists = async (name: string) => (await api.send({ method: 'HEAD', path: `/${name}` })).status === 200;
const configuration = (inner: string) => `<CreateBucketConfiguration>${inner}</CreateBucketConfiguration>`;

test('a bucket exists at once', async () => {
  const name = freshName();
  const answer = await create(name);
  expectStatus(answer, 200);
  expect(answer.headers.location).toBe(`/${name}`);
  expect(answer.body).toHaveLength(0);
  expect(await exists(name)).toBe(true);
  expect(await api.keysOf(name)).toEqual([]);
});

test('s3-behaviour 39: creating it again is 200 and changes nothing', async () => {
  const name = freshName();
  expectStatus(await create(name), 200);
  await api.put(name, 'kept', 'x');
  expectStatus(await create(name), 200);
  expect(await api.keysOf(name)).toEqual(['kept']);
});

test.each(['eu-central-1', 'anywhere', 'us-east-1', ''])(
  'the location %j is read and ignored',
  async (location) => {
    const name = freshName();
    expectStatus(
      await create(name, configuration(`<LocationConstraint>${location}</LocationConstraint>`)),
      200,
    );
    const answer = await api.send({ method: 'GET', path: `/${name}?location` });
    expect(answer.body.toString()).toContain('>us-east<');
  },
);

test('the SDK', async () => {
  const name = freshName();
  const answer = await api.s3.send(new CreateBucketCommand({ Bucket: name, ACL: 'private' }));
  expect(answer.Location).toBe(`/${name}`);
});

test.each(['abc', 'a-b.c', '0x0', `a${'b'.repeat(61)}c`])('the name %s is taken', async (name) => {
  expectStatus(await create(name), 200);
});

test.each([
  'ab',
  `a${'b'.repeat(62)}c`,
  'Upper',
  'under_score',
  '-dash',
  'dash-',
  'a..b',
  'a.-b',
  '192.168.0.1',
  'xn--name',
  'name-s3alias',
  'name--ol-s3',
  'holdfast-own',
  'api',
])('the name %s is refused', async (name) => {
  expectError(await create(name), { status: 400, code: 'InvalidBucketName', BucketName: name });
});

test.each<[string, string, Record<string, string>, Parameters<typeof expectError>[1]]>([
  ['no XML', 'eu-central-1', {}, { status: 400, code: 'MalformedXML' }],
  ['an open element', '<CreateBucketConfiguration>', {}, { status: 400, code: 'MalformedXML' }],
  ['another root', '<Bucket/>', {}, { status: 400, code: 'MalformedXML' }],
  [
    'a lock that is neither wanted nor not',
    '',
    { 'x-amz-bucket-object-lock-enabled': 'maybe' },
    { status: 400, code: 'InvalidArgument' },
  ],
  [
    'a grant to an address of nobody',
    '',
    { 'x-amz-grant-read': 'emailAddress=no@where.example' },
    { status: 400, code: 'UnresolvableGrantByEmailAddress' },
  ],
  ['an unknown ACL', '', { 'x-amz-acl': 'public' }, { status: 400, code: 'InvalidArgument' }],
  [
    'another kind of ownership',
    '',
    { 'x-amz-object-ownership': 'BucketOwnerEnforced' },
    { status: 501, code: 'NotImplemented' },
  ],
  [
    'both kinds of ACL',
    '',
    { 'x-amz-acl': 'private', 'x-amz-grant-read': 'id="1"' },
    { status: 400, code: 'InvalidRequest' },
  ],
  [
    'too many grants',
    '',
    { 'x-amz-grant-read': Array(101).fill('id=1').join() },
    { status: 400, code: 'MalformedACLError' },
  ],
])('%s is refused', async (_name, body, headers, expected) => {
  const name = freshName();
  expectError(await create(name, body, headers), expected);
  expect(await exists(name)).toBe(false);
});

test('s3-behaviour 39: the bucket of another account', async () => {
  const name = await api.makeBucket(await api.makeAccount());
  expectError(await create(name), { status: 409, code: 'BucketAlreadyExists', BucketName: name });
});

test('anonymous callers may not create', async () => {
  const name = freshName();
  expectError(await api.sendAnonymous({ method: 'PUT', path: `/${name}` }), {
    status: 403,
    code: 'AccessDenied',
  });
  expect(await exists(name)).toBe(false);
});

test('no more buckets than the account may own', async () => {
  const account = await api.makeAccount({ bucketsMax: 2 });
  await api.makeBucket(account);
  const last = await api.makeBucket(account);
  const name = freshName();
  expectError(await create(name, undefined, {}, account), { status: 400, code: 'TooManyBuckets' });
  expect(await exists(name)).toBe(false);
  expectStatus(await api.send({ method: 'DELETE', path: `/${last}` }, account), 204);
  expectStatus(await create(name, undefined, {}, account), 200);
});

test('of many at once for one name, one account wins', async () => {
  const accounts = await Promise.all(Array.from({ length: 6 }, () => api.makeAccount()));
  const name = freshName();
  const answers = await Promise.all(accounts.map((account) => create(name, undefined, {}, account)));
  const statuses = answers.map(({ status }) => status).sort();
  expect(statuses[0]).toBe(200);
  expect(statuses.slice(1)).toEqual([409, 409, 409, 409, 409]);
});

test('with an access control list, and with the kind of ownership that all buckets have', async () => {
  const owner = await api.makeAccount();
  const name = `acl-${freshWord()}`;
  const headers = { 'x-amz-acl': 'public-read', 'x-amz-object-ownership': 'ObjectWriter' };
  const put = (given: Record<string, string>) =>
    api.send({ method: 'PUT', path: `/${name}`, headers: given }, owner);
  expectStatus(await put(headers), 200);
  const get = async () => grantsIn(await api.send({ method: 'GET', path: `/${name}?acl` }, owner));
  const grants = ['AllUsers READ', `${owner.canonicalId} FULL_CONTROL`];
  expect(await get()).toEqual(grants);
  // Made again it stays as it is.
  expectStatus(await put({ 'x-amz-acl': 'public-read-write' }), 200);
  expect(await get()).toEqual(grants);
  const trial = await api.makeAccount({ state: 'trial' });
  const refused = { method: 'PUT', path: `/acl-${freshWord()}`, headers };
  expectError(await api.send(refused, trial), { status: 403, code: 'AccessDenied' });
});

describe('with an object lock', () => {
  const lockOf = (name: string) => api.send({ method: 'GET', path: `/${name}?object-lock` });
  const versioningOf = async (name: string) =>
    fieldsOf(await api.send({ method: 'GET', path: `/${name}?versioning` }));

  test.each(['true', 'True'])('%s: the bucket has versions and a lock, and no default', async (value) => {
    const name = freshName();
    const answer = await create(name, undefined, { 'x-amz-bucket-object-lock-enabled': value });
    expectStatus(answer, 200);
    expect(fieldsOf(await lockOf(name))).toEqual({ ObjectLockEnabled: 'Enabled' });
    expect(await versioningOf(name)).toEqual({ Status: 'Enabled' });
  });

  test('created again it is 200, and keeps its default', async () => {
    const name = freshName();
    expectStatus(await create(name, undefined, CREATES_LOCK), 200);
    const rule = '<Rule><DefaultRetention><Mode>GOVERNANCE</Mode><Days>1</Days></DefaultRetention></Rule>';
    const body = `<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled>${rule}</ObjectLockConfiguration>`;
    const path = `/${name}?object-lock`;
    expectStatus(await api.send({ method: 'PUT', path, body: Buffer.from(body) }), 200);
    expectStatus(await create(name, undefined, CREATES_LOCK), 200);
    expectStatus(await create(name), 200);
    expect(String((await lockOf(name)).body)).toContain(rule);
  });

  test('one of before that has none is not taken for locked', async () => {
    const name = freshName();
    expectStatus(await create(name), 200);
    const refused = { status: 409, code: 'BucketAlreadyOwnedByYou', BucketName: name } as const;
    expectError(await create(name, undefined, CREATES_LOCK), refused);
    expectStatus(await lockOf(name), 404);
    await setVersioning(api, name, 'Enabled');
    expectError(await create(name, undefined, CREATES_LOCK), refused);
  });

  test('the SDK, with an ACL', async () => {
    const name = freshName();
    const wanted = { Bucket: name, ACL: 'public-read', ObjectLockEnabledForBucket: true } as const;
    await api.s3.send(new CreateBucketCommand(wanted));
    expect(fieldsOf(await lockOf(name))).toEqual({ ObjectLockEnabled: 'Enabled' });
    expect(await grantsIn(await api.send({ method: 'GET', path: `/${name}?acl` }))).toHaveLength(2);
  });
});
