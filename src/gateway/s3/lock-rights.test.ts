// Who may lock versions, see their locks and bypass them, and what policies may ask about a lock. Which actions the operations
// need is in the decision matrix; what locks do: tests/api/locked-objects.test.ts.
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type GatewayWorld, openGatewayWorld } from '../../../tests/support/objects/gateway-world.ts';
import { addUser, policyText, type TestKeys } from '../../../tests/support/objects/identities.ts';
import { type RawAnswer, send } from '../../../tests/support/servers/raw-s3.ts';
import type { MetadataPort } from '../../ports/metadata/port.ts';
import type { BucketId, BucketName } from '../../types/names.ts';

/** Called behind a bucket's creation; what it gives stands for the shard's answer. */
let onCreated:
  | ((bucketId: BucketId, shard: number) => Promise<Awaited<ReturnType<MetadataPort['execute']>>>)
  | undefined;

function intercept(shards: MetadataPort): MetadataPort {
  return {
    ...shards,
    shardCount: shards.shardCount,
    query: (target, name, query) => shards.query(target, name, query),
    async execute(target, name, command) {
      const reply = await shards.execute(target, name, command);
      if (name !== 'create-bucket' || onCreated === undefined) return reply;
      return (await onCreated((command as { bucketId: BucketId }).bucketId, target.shard)) as never;
    },
  };
}

let world: GatewayWorld;
let owner: Awaited<ReturnType<GatewayWorld['makeAccount']>>;
let userCount = 0;
let keyCount = 0;
beforeAll(async () => {
  world = await openGatewayWorld({ intercept });
  owner = await world.makeAccount('owner');
  await ask('PUT', '', { headers: { 'x-amz-bucket-object-lock-enabled': 'true' } });
});
afterAll(() => world.close());

const BYPASS = { 'x-amz-bypass-governance-retention': 'true' };
const DAY_MS = 24 * 3600 * 1000;
const inDays = (days: number) => new Date(Date.now() + days * DAY_MS).toISOString();
const retention = (days: number, mode = 'GOVERNANCE') =>
  `<Retention><Mode>${mode}</Mode><RetainUntilDate>${inDays(days)}</RetainUntilDate></Retention>`;
const lock = (days: number, mode = 'GOVERNANCE') => ({
  'x-amz-object-lock-mode': mode,
  'x-amz-object-lock-retain-until-date': inDays(days),
});

interface Asked {
  as?: TestKeys;
  headers?: Record<string, string>;
  body?: string;
}

/** `target`: behind the bucket. */
async function ask(
  method: string,
  target: string,
  { as = owner, headers = {}, body }: Asked = {},
): Promise<RawAnswer> {
  const access = { ...as, endpoint: world.endpoint };
  const sent = body === undefined ? {} : { body: Buffer.from(body) };
  return send(access, { method, path: `/lock-rights${target}`, headers, ...sent });
}
const codeOf = ({ status, body }: RawAnswer) =>
  [status, /<Code>(\w+)</.exec(String(body))?.[1]].filter(Boolean).join(' ');

const allow = (...Action: string[]) => ({ Effect: 'Allow', Action, Resource: '*' });
const userWith = (...statements: object[]) =>
  addUser(world, owner.accountId, { name: `user-${++userCount}`, statements });

/** A new object by the owner. */
async function makeObject(headers: Record<string, string> = {}) {
  const key = `/k-${++keyCount}`;
  const made = await ask('PUT', key, { headers, body: 'x' });
  expect(codeOf(made)).toBe('200');
  return { key, version: `${key}?versionId=${made.headers['x-amz-version-id']}` };
}

describe('the bypass', () => {
  const DELETES = ['s3:DeleteObjectVersion', 's3:DeleteObject'];

  test('without the right to it deletions go as without the header', async () => {
    const as = await userWith(allow(...DELETES));
    const free = await makeObject();
    const governed = await makeObject(lock(1));
    expect(codeOf(await ask('DELETE', free.version, { as, headers: BYPASS }))).toBe('204');
    expect(codeOf(await ask('DELETE', governed.version, { as, headers: BYPASS }))).toBe('403 AccessDenied');
    const able = await userWith(allow(...DELETES, 's3:BypassGovernanceRetention'));
    expect(codeOf(await ask('DELETE', governed.version, { as: able }))).toBe('403 AccessDenied');
    expect(codeOf(await ask('DELETE', governed.version, { as: able, headers: BYPASS }))).toBe('204');
  });

  test('is for the keys that it is allowed for', async () => {
    const [mine, other] = [await makeObject(lock(1)), await makeObject(lock(1))];
    const Resource = `arn:aws:s3:::lock-rights${mine.key}`;
    const bypass = { Effect: 'Allow', Action: 's3:BypassGovernanceRetention', Resource };
    const as = await userWith(allow(...DELETES), bypass);
    const objects = [mine, other].map(({ key, version }) => {
      const id = version.split('=')[1];
      return `<Object><Key>${key.slice(1)}</Key><VersionId>${id}</VersionId></Object>`;
    });
    const body = `<Delete>${objects.join('')}</Delete>`;
    const digest = { 'content-md5': createHash('md5').update(body).digest('base64') };
    const answer = await ask('POST', '?delete', { as, headers: { ...BYPASS, ...digest }, body });
    expect(String(answer.body)).toContain(`<Deleted><Key>${mine.key.slice(1)}</Key>`);
    expect(String(answer.body)).toContain(`<Error><Key>${other.key.slice(1)}</Key>`);
  });

  test('of retention: what needs none succeeds without the right', async () => {
    const as = await userWith(allow('s3:PutObjectRetention'));
    const { key } = await makeObject(lock(5));
    const put = (body: string, by: TestKeys = as) =>
      ask('PUT', `${key}?retention`, { as: by, headers: BYPASS, body });
    expect(codeOf(await put(retention(6)))).toBe('200');
    expect(codeOf(await put(retention(4)))).toBe('403 AccessDenied');
    const able = await userWith(allow('s3:PutObjectRetention', 's3:BypassGovernanceRetention'));
    expect(codeOf(await put(retention(4), able))).toBe('200');
    expect(codeOf(await put('<Retention/>', able))).toBe('200');
  });
});

test('GET and HEAD show what the caller could ask for by itself', async () => {
  const { key } = await makeObject({ ...lock(1), 'x-amz-object-lock-legal-hold': 'ON' });
  const shownTo = async (...actions: string[]) => {
    const as = await userWith(allow('s3:GetObject', ...actions));
    const { headers } = await ask('HEAD', key, { as });
    return Object.keys(headers)
      .filter((name) => name.startsWith('x-amz-object-lock-'))
      .sort();
  };
  const ofRetention = ['x-amz-object-lock-mode', 'x-amz-object-lock-retain-until-date'];
  expect(await shownTo()).toEqual([]);
  expect(await shownTo('s3:GetObjectRetention')).toEqual(ofRetention);
  expect(await shownTo('s3:GetObjectLegalHold')).toEqual(['x-amz-object-lock-legal-hold']);
  expect(await shownTo('s3:GetObjectRetention', 's3:GetObjectLegalHold')).toEqual([
    'x-amz-object-lock-legal-hold',
    ...ofRetention,
  ]);
});

describe('conditions', () => {
  /** A user who may do everything but what `condition` is met by. */
  const denied = (Action: string, Condition: object) =>
    userWith(allow('s3:*'), { Effect: 'Deny', Action, Resource: '*', Condition });
  const putLocked = (as: TestKeys, headers: Record<string, string>) =>
    ask('PUT', `/k-${++keyCount}`, { as, headers, body: 'x' }).then(codeOf);
  const putRetention = async (as: TestKeys, body: string) =>
    codeOf(await ask('PUT', `${(await makeObject()).key}?retention`, { as, body }));

  test.each(['s3:PutObjectRetention', 's3:PutObject'])(
    'no more than so many days: denied of %s',
    async (action) => {
      const greater = { NumericGreaterThan: { 's3:object-lock-remaining-retention-days': '10' } };
      const as = await denied(action, greater);
      expect(await putLocked(as, lock(9.5))).toBe('200');
      expect(await putLocked(as, lock(10.5))).toBe('403 AccessDenied');
      expect(await putLocked(as, {})).toBe('200');
      const ofDocument = action === 's3:PutObjectRetention' ? '403 AccessDenied' : '200';
      expect(await putRetention(as, retention(9.5))).toBe('200');
      expect(await putRetention(as, retention(10.5))).toBe(ofDocument);
    },
  );

  test('no less than so many days, by the policy of the bucket', async () => {
    const as = await userWith(allow('s3:*'));
    const Condition = { NumericLessThan: { 's3:object-lock-remaining-retention-days': '10' } };
    const text = policyText([
      {
        Effect: 'Deny',
        Principal: '*',
        Action: 's3:PutObjectRetention',
        Resource: 'arn:aws:s3:::lock-rights/*',
        Condition,
      },
    ]);
    expect(codeOf(await ask('PUT', '?policy', { body: text }))).toBe('204');
    expect(await putRetention(as, retention(5))).toBe('403 AccessDenied');
    expect(await putRetention(as, retention(12))).toBe('200');
    expect(await putLocked(as, lock(5))).toBe('403 AccessDenied');
    expect(await putLocked(as, lock(12))).toBe('200');
    expect(codeOf(await ask('DELETE', '?policy'))).toBe('204');
  });

  test('the mode', async () => {
    const as = await denied('s3:PutObjectRetention', {
      StringEquals: { 's3:object-lock-mode': 'COMPLIANCE' },
    });
    expect(await putLocked(as, lock(1))).toBe('200');
    expect(await putLocked(as, lock(1, 'COMPLIANCE'))).toBe('403 AccessDenied');
    expect(await putRetention(as, retention(1))).toBe('200');
    expect(await putRetention(as, retention(1, 'COMPLIANCE'))).toBe('403 AccessDenied');
  });

  test('the date', async () => {
    const limit = { DateGreaterThan: { 's3:object-lock-retain-until-date': inDays(10) } };
    const as = await denied('s3:PutObjectRetention', limit);
    expect(await putLocked(as, lock(9))).toBe('200');
    expect(await putLocked(as, lock(11))).toBe('403 AccessDenied');
    const dayOnly = { ...lock(1), 'x-amz-object-lock-retain-until-date': inDays(20).slice(0, 10) };
    expect(await putLocked(as, dayOnly)).toBe('403 AccessDenied');
    expect(await putRetention(as, retention(11))).toBe('403 AccessDenied');
  });

  test('the legal hold', async () => {
    const as = await denied('s3:PutObjectLegalHold', {
      StringEquals: { 's3:object-lock-legal-hold': 'OFF' },
    });
    const hold = (status: string) => `<LegalHold><Status>${status}</Status></LegalHold>`;
    const { key } = await makeObject();
    expect(codeOf(await ask('PUT', `${key}?legal-hold`, { as, body: hold('ON') }))).toBe('200');
    expect(codeOf(await ask('PUT', `${key}?legal-hold`, { as, body: hold('OFF') }))).toBe('403 AccessDenied');
    expect(await putLocked(as, { 'x-amz-object-lock-legal-hold': 'ON' })).toBe('200');
    expect(await putLocked(as, { 'x-amz-object-lock-legal-hold': 'OFF' })).toBe('403 AccessDenied');
  });
});

test('a bucket whose gateway is lost behind its creation has its lock and its list, and is given to whoever asks again', async () => {
  const name = 'half-made' as BucketName;
  const create = (headers: Record<string, string>) =>
    send({ ...owner, endpoint: world.endpoint }, { method: 'PUT', path: `/${name}`, headers }).then(codeOf);
  const lock = { 'x-amz-bucket-object-lock-enabled': 'true' };
  const readings: (() => ReturnType<typeof readBucket>)[] = [];
  const readBucket = (bucketId: BucketId, shard: number) =>
    world.metadata.query('get-bucket', { bucketId }, shard);
  // The outbox brings the creation to its end.
  onCreated = async (bucketId, shard) => {
    readings.push(() => readBucket(bucketId, shard));
    await world.metadata.execute('activate-name', { name, bucketId });
    return { kind: 'unknown' };
  };
  expect(await create({ ...lock, 'x-amz-acl': 'authenticated-read' })).toBe('503 ServiceUnavailable');
  onCreated = undefined;
  expect(await create(lock)).toBe('200');
  const found = await Promise.all(readings.map((read) => read()));
  expect(found).toMatchObject([{ bucket: { versioning: 'enabled', objectLock: {}, mayProtect: true } }]);
  expect(found.flatMap(({ configs }) => Object.keys(configs))).toEqual(['versioning', 'acl', 'objectLock']);
});

test('a bucket that is made without a lock is not taken for locked', async () => {
  const create = (headers: Record<string, string>) =>
    send({ ...owner, endpoint: world.endpoint }, { method: 'PUT', path: '/plain', headers }).then(codeOf);
  expect(await create({})).toBe('200');
  expect(await create({ 'x-amz-bucket-object-lock-enabled': 'true' })).toBe('409 BucketAlreadyOwnedByYou');
});
