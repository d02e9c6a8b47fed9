// Copies whose source is replaced while they are under way: what a request said of its source holds for what is read
// again, too.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type GatewayWorld, openGatewayWorld } from '../../../tests/support/objects/gateway-world.ts';
import { addUser, policyText } from '../../../tests/support/objects/identities.ts';
import { keyHeaders } from '../../../tests/support/servers/customer-keys.ts';
import { send } from '../../../tests/support/servers/raw-s3.ts';
import type { BucketName } from '../../types/names.ts';
import { identityKeys } from '../../types/records/identity-records.ts';

let world: GatewayWorld;
let racing: GatewayWorld;
/** Happens when the source has been read and judged, and nothing of it is linked yet. */
let meanwhile = async () => {};
beforeAll(async () => {
  world = await openGatewayWorld();
  const { store, metadata, keyring } = world;
  const objects: typeof store = {
    ...store,
    async copyPart(input) {
      await meanwhile();
      return store.copyPart(input);
    },
    async copyObject(input) {
      await meanwhile();
      return store.copyObject(input);
    },
  };
  racing = await openGatewayWorld({ deps: { metadata: metadata.shards, objects, keyring } });
});
afterAll(async () => {
  await Promise.all([world.close(), racing.close()]);
  expect([...world.faults(), ...racing.faults()]).toEqual([]);
});

async function openAccount(name: string) {
  const owner = await world.makeAccount(name);
  return (endpoint: string, line: string, more: { body?: string; headers?: Record<string, string> } = {}) => {
    const [method = '', path = ''] = line.split(' ');
    const { body, headers } = more;
    return send(
      { ...owner, endpoint },
      { method, path, ...(body !== undefined && { body: Buffer.from(body) }), ...(headers && { headers }) },
    );
  };
}

async function markAll(): Promise<void> {
  world.metadata.clock.advance(60_000);
  for (const shard of [0, 1, 2]) await world.metadata.markUnlinked(shard);
}

test('a part copied by ETag never comes from an object that replaced the source', async () => {
  const ask = await openAccount('owner');
  await ask(world.endpoint, 'PUT /copies');
  const etag = String((await ask(world.endpoint, 'PUT /copies/k', { body: 'first' })).headers.etag);
  const begun = await ask(world.endpoint, 'POST /copies/to?uploads');
  const uploadId = /<UploadId>(.*)<\/UploadId>/.exec(begun.body.toString())?.[1];
  meanwhile = async () => {
    await ask(world.endpoint, 'PUT /copies/k', { body: 'other' });
    await markAll();
  };
  const line = `PUT /copies/to?partNumber=1&uploadId=${uploadId}`;
  const headers = { 'x-amz-copy-source': '/copies/k', 'x-amz-copy-source-if-match': etag };
  const copied = await ask(racing.endpoint, line, { headers });
  expect(copied.status, copied.body.toString()).toBe(412);
  const anything = await ask(racing.endpoint, line, { headers: { 'x-amz-copy-source': '/copies/k' } });
  expect(anything.status).toBe(200);
});

test('s3-behaviour 34: a source that is replaced by one under a customer key asks for that key', async () => {
  const ask = await openAccount('keys');
  await ask(world.endpoint, 'PUT /sealed');
  const first = keyHeaders(Buffer.alloc(32, 1));
  const second = keyHeaders(Buffer.alloc(32, 2));
  const ofSource = keyHeaders(Buffer.alloc(32, 1), 'source');
  const begun = await ask(world.endpoint, 'POST /sealed/to?uploads');
  const uploadId = /<UploadId>(.*)<\/UploadId>/.exec(begun.body.toString())?.[1];
  const copied = { 'x-amz-copy-source': '/sealed/k' };
  for (const line of ['PUT /sealed/copy', `PUT /sealed/to?partNumber=1&uploadId=${uploadId}`]) {
    for (const [before, sent, after, status] of [
      [{}, {}, first, 400],
      [first, ofSource, second, 400],
      [first, ofSource, {}, 400],
      [first, ofSource, first, 200],
    ] as const) {
      await ask(world.endpoint, 'PUT /sealed/k', { body: 'first', headers: before });
      meanwhile = async () => {
        await ask(world.endpoint, 'PUT /sealed/k', { body: 'second', headers: after });
        await markAll();
      };
      const answer = await ask(racing.endpoint, line, { headers: { ...copied, ...sent } });
      expect(answer.status, answer.body.toString()).toBe(status);
      if (status === 400) expect(answer.body.toString()).toContain('<Code>InvalidRequest<');
    }
  }
});

test('the answer names the copied version, even if it is not the one that was found', async () => {
  const ask = await openAccount('versions');
  await ask(world.endpoint, 'PUT /named');
  const { record } = await world.metadata.query('find-name', { name: 'named' as BucketName });
  if (record === null) throw new Error('no name');
  const { bucketId, homeShard } = record;
  await world.metadata.execute(
    'set-bucket-config',
    { bucketId, kind: 'versioning', document: { status: 'enabled' } },
    homeShard,
  );
  const put = async (body: string) =>
    String((await ask(world.endpoint, 'PUT /named/k', { body })).headers['x-amz-version-id']);
  const begun = await ask(world.endpoint, 'POST /named/to?uploads');
  const uploadId = /<UploadId>(.*)<\/UploadId>/.exec(begun.body.toString())?.[1];
  for (const line of ['PUT /named/copy', `PUT /named/to?partNumber=1&uploadId=${uploadId}`]) {
    const first = await put('first');
    let second = '';
    meanwhile = async () => {
      second = await put('second');
      await ask(world.endpoint, `DELETE /named/k?versionId=${first}`);
      await markAll();
    };
    const copied = await ask(racing.endpoint, line, { headers: { 'x-amz-copy-source': '/named/k' } });
    expect(copied.status, copied.body.toString()).toBe(200);
    expect(copied.headers['x-amz-copy-source-version-id']).toBe(second);
  }
});

describe('tags that a copy takes along', () => {
  async function openTagged(name: string) {
    const owner = await world.makeAccount(name);
    const statements = [{ Effect: 'Allow', Action: 's3:*', Resource: '*' }];
    const user = await addUser(world, owner.accountId, { name: 'copier', statements });
    const [source, target] = [`${name}-source`, `${name}-target`];
    const ask = (
      method: string,
      path: string,
      more: { body?: string; headers?: Record<string, string> } = {},
    ) => {
      const { body, headers = {} } = more;
      const wanted = { method, path, headers, ...(body !== undefined && { body: Buffer.from(body) }) };
      return send({ ...owner, endpoint: world.endpoint }, wanted);
    };
    for (const bucket of [source, target]) await ask('PUT', `/${bucket}`);
    const copy = () =>
      send(
        { ...user, endpoint: racing.endpoint },
        { method: 'PUT', path: `/${target}/copy`, headers: { 'x-amz-copy-source': `/${source}/k` } },
      );
    const deny = (bucket: string, Action: string) => {
      const Resource = `arn:aws:s3:::${bucket}/*`;
      const body = policyText([{ Effect: 'Deny', Principal: '*', Action, Resource }]);
      return ask('PUT', `/${bucket}?policy`, { body });
    };
    // So long that it is linked to, and not copied.
    const body = 'k'.repeat(200_000);
    const put = (tagging: string) =>
      ask('PUT', `/${source}/k`, { body, headers: tagging === '' ? {} : { 'x-amz-tagging': tagging } });
    return { ask, copy, deny, put, source, target };
  }

  test.each([
    ['set by the target', 'target', 's3:PutObjectTagging'],
    ['read by the source', 'source', 's3:GetObjectTagging'],
  ] as const)('may not be %s any more: the copy is refused', async (_, which, action) => {
    const { copy, deny, put, ask, ...buckets } = await openTagged(`of-${which}`);
    await put('a=b');
    meanwhile = async () => {};
    expect((await copy()).status).toBe(200);
    await put('a=b');
    meanwhile = async () => {
      await deny(buckets[which], action);
      // What was found is gone: the source is read again, as it is now.
      await put('a=b');
      await markAll();
    };
    const refused = await copy();
    expect([refused.status, refused.body.toString()]).toEqual([
      403,
      expect.stringContaining(`${action} on resource`),
    ]);
    // Without tags nothing of it is asked.
    await put('');
    meanwhile = async () => {};
    expect((await copy()).status).toBe(200);
  });

  test('of a version that came meanwhile were not judged: nothing is copied', async () => {
    const { copy, deny, put, ask, source, target } = await openTagged('meanwhile');
    await put('');
    await deny(source, 's3:GetObjectTagging');
    meanwhile = async () => {
      await put('secret=tag');
      await markAll();
    };
    expect((await copy()).status).toBe(503);
    expect((await ask('GET', `/${target}/copy`)).status).toBe(404);
    expect((await copy()).status).toBe(403);
  });
});

describe('whose rights go while the data is read', () => {
  const allow = (Action: string) => ({ Effect: 'Allow', Action, Resource: '*' });

  test.each(['CopyObject', 'UploadPartCopy', 'CopyObject of a user without the right to read'])(
    '%s',
    async (what) => {
      const owner = await world.makeAccount(what);
      const bucket = `going-${what.length}`;
      const line = (method: string, path: string, body?: string) =>
        send(
          { ...owner, endpoint: world.endpoint },
          { method, path, ...(body && { body: Buffer.from(body) }) },
        );
      await line('PUT', `/${bucket}`);
      await line('PUT', `/${bucket}/k`, 'data');
      const begun = await line('POST', `/${bucket}/to?uploads`);
      const uploadId = /<UploadId>(.*)<\/UploadId>/.exec(begun.body.toString())?.[1];
      const target = what === 'UploadPartCopy' ? `to?partNumber=1&uploadId=${uploadId}` : 'copy';
      const user = await addUser(world, owner.accountId, { name: 'goes', statements: [allow('s3:*')] });
      const copy = () =>
        send(
          { ...user, endpoint: racing.endpoint },
          { method: 'PUT', path: `/${bucket}/${target}`, headers: { 'x-amz-copy-source': `/${bucket}/k` } },
        );
      meanwhile = async () => {};
      expect((await copy()).status).toBe(200);
      const key = identityKeys.user('goes');
      meanwhile = async () => {
        const { revision, rows } = await world.metadata.query('read-identities', {
          accountId: owner.accountId,
          keys: [key],
        });
        const left = what.includes('read') ? [allow('s3:PutObject')] : [];
        const policies = left.length === 0 ? [] : [{ name: 'inline', text: policyText(left) }];
        const change = {
          accountId: owner.accountId,
          ifRevision: revision,
          rows: [{ key, record: { ...rows[0], inlinePolicies: policies } }],
          isSeen: true,
        };
        expect((await world.metadata.execute('change-identities', change as never)).kind).toBe('changed');
        // Known to the gateway: a revocation is not answered before.
        const reads = () =>
          send({ ...user, endpoint: racing.endpoint }, { method: 'HEAD', path: `/${bucket}/k` });
        await expect.poll(async () => (await reads()).status, { timeout: 10_000 }).toBe(403);
      };
      expect((await copy()).status).toBe(403);
    },
  );
});
