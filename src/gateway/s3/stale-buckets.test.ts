// Two gateways over the same shards: what one of them has cached of a bucket may have changed through the other (R45).
import { hash } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type GatewayWorld, openGatewayWorld } from '../../../tests/support/objects/gateway-world.ts';
import { type Access, type RawAnswer, send } from '../../../tests/support/servers/raw-s3.ts';
import { must } from '../../base/assert.ts';
import { createOutboxDelivery } from '../../metadata/jobs/deliver-outbox.ts';
import type { BucketName } from '../../types/names.ts';

const nothing = () => {};
const quiet = { debug: nothing, info: nothing, warn: nothing, error: nothing };

let one: GatewayWorld;
let two: GatewayWorld;
beforeAll(async () => {
  one = await openGatewayWorld();
  two = await openGatewayWorld({
    deps: { metadata: one.metadata.shards, objects: one.store, keyring: one.keyring },
  });
});
afterAll(async () => {
  await Promise.all([one.close(), two.close()]);
  expect([...one.faults(), ...two.faults()]).toEqual([]);
});

/** The same account at both. */
async function account(name: string): Promise<{ one: Access; two: Access }> {
  const keys = await one.makeAccount(name);
  return { one: { ...keys, endpoint: one.endpoint }, two: { ...keys, endpoint: two.endpoint } };
}

const ask = async (
  access: Access,
  line: string,
  body?: string,
  headers?: Record<string, string>,
): Promise<RawAnswer> => {
  const [method = '', path = ''] = line.split(' ');
  return send(access, {
    method,
    path,
    ...(body !== undefined && { body: Buffer.from(body) }),
    ...(headers && { headers }),
  });
};
const statusOf = async (access: Access, line: string, body?: string) =>
  (await ask(access, line, body)).status;

test('a bucket that was deleted elsewhere is gone for every operation', async () => {
  const owner = await account('owner');
  for (const line of [
    'HEAD /gone',
    'GET /gone',
    'GET /gone?location',
    'GET /gone?versioning',
    'GET /gone/k',
    'PUT /gone/k',
    'DELETE /gone/k',
    'DELETE /gone',
    'GET /gone?uploads',
    'POST /gone/k?uploads',
  ]) {
    expect(await statusOf(owner.one, 'PUT /gone')).toBe(200);
    expect(await statusOf(owner.two, 'HEAD /gone')).toBe(200);
    expect(await statusOf(owner.one, 'DELETE /gone')).toBe(204);
    expect(await statusOf(owner.two, line, line.startsWith('PUT') ? 'x' : undefined), line).toBe(404);
  }
  const anonymous = await fetch(`${two.endpoint}/gone/k`);
  expect(anonymous.status).toBe(404);
});

test('a bucket whose deletion was cut short is created again', async () => {
  const owner = await account('cut-short');
  expect(await statusOf(owner.one, 'PUT /cut-short')).toBe(200);
  const { shards, clock } = one.metadata;
  const { record } = await one.metadata.query('find-name', { name: 'cut-short' as BucketName });
  const { bucketId, homeShard } = must(record, 'a name');
  await shards.execute({ shard: homeShard }, 'delete-bucket', { bucketId });
  expect(await statusOf(owner.one, 'HEAD /cut-short')).toBe(404);
  expect(await statusOf(owner.one, 'PUT /cut-short')).toBe(200);
  const deliver = createOutboxDelivery({ metadata: shards, shards: () => [homeShard], clock, log: quiet });
  await deliver.work(new AbortController().signal);
  expect(await statusOf(owner.two, 'HEAD /cut-short')).toBe(200);
});

test('a name that another account has taken is served as theirs, at once', async () => {
  const [before, after] = [await account('before'), await account('after')];
  expect(await statusOf(before.one, 'PUT /taken')).toBe(200);
  expect(await statusOf(before.two, 'PUT /taken/k', 'old')).toBe(200);
  expect(await statusOf(before.one, 'DELETE /taken/k')).toBe(204);
  expect(await statusOf(before.one, 'DELETE /taken')).toBe(204);
  expect(await statusOf(after.one, 'PUT /taken')).toBe(200);
  // The other gateway still believes in the old bucket: it must neither refuse the new owner nor serve the old one.
  expect(await statusOf(after.two, 'PUT /taken/k', 'new')).toBe(200);
  expect((await ask(after.two, 'GET /taken/k')).body.toString()).toBe('new');
  expect(await statusOf(before.two, 'GET /taken/k')).toBe(403);
  expect(await statusOf(before.two, 'PUT /taken/k', 'old')).toBe(403);
});

test('a request of the old owner is refused by the new row, and nothing is stored', async () => {
  const [before, after] = [await account('first'), await account('second')];
  expect(await statusOf(before.one, 'PUT /swapped')).toBe(200);
  expect(await statusOf(before.two, 'HEAD /swapped')).toBe(200);
  expect(await statusOf(before.one, 'DELETE /swapped')).toBe(204);
  expect(await statusOf(after.one, 'PUT /swapped')).toBe(200);
  expect([403, 503]).toContain(await statusOf(before.two, 'PUT /swapped/k', 'old'));
  expect((await ask(after.one, 'GET /swapped')).body.toString()).not.toContain('<Key>');
});

test('a change of settings applies in the middle of a request', async () => {
  const owner = await account('settings');
  expect(await statusOf(owner.one, 'PUT /settings')).toBe(200);
  expect(await statusOf(owner.two, 'HEAD /settings')).toBe(200);
  const { record } = await one.metadata.query('find-name', { name: 'settings' as BucketName });
  if (record === null) throw new Error('no name');
  await one.metadata.execute(
    'set-bucket-config',
    { bucketId: record.bucketId, kind: 'versioning', document: { status: 'enabled' } },
    record.homeShard,
  );
  const put = await ask(owner.two, 'PUT /settings/k', 'x');
  expect([put.status, put.headers['x-amz-version-id']]).toEqual([200, expect.any(String)]);
  expect((await ask(owner.two, 'GET /settings?versioning')).body.toString()).toContain('Enabled');
});

test('each key of a list is judged by the policy as it is now', async () => {
  const owner = await account('lists');
  expect(await statusOf(owner.one, 'PUT /lists')).toBe(200);
  expect(await statusOf(owner.one, 'PUT /lists/k', 'kept')).toBe(200);
  expect(await statusOf(owner.two, 'HEAD /lists')).toBe(200);
  const denial = {
    Effect: 'Deny',
    Principal: '*',
    Action: 's3:DeleteObject',
    Resource: 'arn:aws:s3:::lists/*',
  };
  const policy = JSON.stringify({ Version: '2012-10-17', Statement: denial });
  const remove = async () => {
    const list = '<Delete><Object><Key>k</Key></Object></Delete>';
    const answer = await ask(owner.two, 'POST /lists?delete', list, {
      'content-md5': hash('md5', list, 'base64'),
    });
    return [answer.status, /<(Code>\w+|Deleted)/.exec(String(answer.body))?.[1]];
  };
  expect(await statusOf(owner.one, 'PUT /lists?policy', policy)).toBe(204);
  expect(await remove()).toEqual([200, 'Code>AccessDenied']);
  expect(await statusOf(owner.one, 'GET /lists/k')).toBe(200);
  expect(await statusOf(owner.one, 'DELETE /lists?policy')).toBe(204);
  expect(await remove()).toEqual([200, 'Deleted']);
});

test('access to a copy source depends on its present owner', async () => {
  const [before, after] = [await account('source'), await account('thief')];
  expect(await statusOf(before.one, 'PUT /source')).toBe(200);
  expect(await statusOf(before.two, 'PUT /target')).toBe(200);
  expect(await statusOf(before.two, 'HEAD /source')).toBe(200);
  expect(await statusOf(before.one, 'DELETE /source')).toBe(204);
  const copy = () => ask(before.two, 'PUT /target/k', '', { 'x-amz-copy-source': '/source/k' });
  expect((await copy()).status).toBe(404);
  expect(await statusOf(after.one, 'PUT /source')).toBe(200);
  expect(await statusOf(after.one, 'PUT /source/k', 'theirs')).toBe(200);
  expect((await copy()).status).toBe(403);
});

test('a source that its owner created again is copied, one that changed owners is not', async () => {
  const [owner, other] = [await account('again'), await account('other')];
  expect(await statusOf(owner.one, 'PUT /again')).toBe(200);
  expect(await statusOf(owner.two, 'PUT /copies')).toBe(200);
  const copy = () => ask(owner.two, 'PUT /copies/k', '', { 'x-amz-copy-source': '/again/k' });
  for (const [present, status] of [
    [owner, 200],
    [other, 403],
    [owner, 200],
  ] as const) {
    // The other gateway has the old one cached.
    expect([200, 403]).toContain(await statusOf(owner.two, 'HEAD /again'));
    await ask(owner.one, 'DELETE /again/k');
    await ask(other.one, 'DELETE /again/k');
    expect([
      await statusOf(owner.one, 'DELETE /again'),
      await statusOf(other.one, 'DELETE /again'),
    ]).toContain(204);
    expect(await statusOf(present.one, 'PUT /again')).toBe(200);
    expect(await statusOf(present.one, 'PUT /again/k', 'body')).toBe(200);
    expect((await copy()).status).toBe(status);
  }
});

test('the answer to a copy describes the present source', async () => {
  const owner = await account('renewed');
  expect(await statusOf(owner.one, 'PUT /renewed')).toBe(200);
  expect(await statusOf(owner.two, 'PUT /renewed/k', 'body')).toBe(200);
  const { record } = await one.metadata.query('find-name', { name: 'renewed' as BucketName });
  const { bucketId, homeShard } = must(record, 'a name');
  await one.metadata.execute(
    'set-bucket-config',
    { bucketId, kind: 'versioning', document: { status: 'enabled' } },
    homeShard,
  );
  const copy = await ask(owner.two, 'PUT /renewed/copy', '', { 'x-amz-copy-source': '/renewed/k' });
  expect(copy.status).toBe(200);
  expect(copy.headers['x-amz-copy-source-version-id']).toBe('null');
});

test('an account that was suspended elsewhere is refused within a second', async () => {
  const keys = await one.makeAccount('suspended');
  const access = { ...keys, endpoint: two.endpoint };
  expect(await statusOf(access, 'GET /')).toBe(200);
  await one.setState(keys.accountId, 'suspended');
  await expect.poll(() => statusOf(access, 'GET /'), { timeout: 3000 }).toBe(403);
});
