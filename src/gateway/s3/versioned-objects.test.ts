// Objects in buckets with versions, over HTTP: versions and markers in answers. Versioning is set directly in the shard.
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type GatewayWorld, openGatewayWorld } from '../../../tests/support/objects/gateway-world.ts';
import { type RawAnswer, send } from '../../../tests/support/servers/raw-s3.ts';
import { expectError, expectStatus, fieldsOf, xmlOf } from '../../../tests/support/servers/s3-api.ts';
import { must } from '../../base/assert.ts';
import type { BucketName } from '../../types/names.ts';

const md5 = (text: string) => createHash('md5').update(text).digest('base64');

let world: GatewayWorld;
let bucket: string;
let counter = 0;

beforeAll(async () => {
  world = await openGatewayWorld();
});
afterAll(async () => {
  await world.close();
  expect(world.faults()).toEqual([]);
});
beforeEach(async () => {
  bucket = `versions-${counter++}`;
  expectStatus(await request('PUT', `/${bucket}`), 200);
  await setVersioning('enabled');
});

async function setVersioning(versioning: 'enabled' | 'suspended'): Promise<void> {
  const { record } = await world.metadata.query('find-name', { name: bucket as BucketName });
  const { bucketId, homeShard } = must(record, 'the bucket is there');
  await world.metadata.execute(
    'set-bucket-config',
    { bucketId, kind: 'versioning', document: { status: versioning } },
    homeShard,
  );
}

function request(
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body?: string,
): Promise<RawAnswer> {
  const access = { endpoint: world.endpoint, ...world.root };
  return send(access, { method, path, headers, ...(body !== undefined && { body: Buffer.from(body) }) });
}

/** The id of the version that a PUT of the key makes. */
async function put(body: string, key = 'key'): Promise<string> {
  const answer = await request('PUT', `/${bucket}/${key}`, {}, body);
  expectStatus(answer, 200);
  return String(answer.headers['x-amz-version-id']);
}
const get = (query = '', method = 'GET') => request(method, `/${bucket}/key${query}`);
const remove = (query = '') => request('DELETE', `/${bucket}/key${query}`);

test('each PUT makes a version, which can be read by its id', async () => {
  const [first, second] = [await put('one'), await put('two')];
  expect(first).toMatch(/^[\w-]{32}$/);
  const current = await get();
  expect([current.body.toString(), current.headers['x-amz-version-id']]).toEqual(['two', second]);
  const earlier = await get(`?versionId=${first}`);
  expect([earlier.body.toString(), earlier.headers['x-amz-version-id']]).toEqual(['one', first]);
  expect((await get(`?versionId=${first}`, 'HEAD')).headers['content-length']).toBe('3');
});

test('a simple delete writes a marker', async () => {
  const version = await put('one');
  const deleted = await remove();
  expectStatus(deleted, 204);
  const marker = String(deleted.headers['x-amz-version-id']);
  expect(deleted.headers['x-amz-delete-marker']).toBe('true');

  const current = await get();
  expectError(current, { status: 404, code: 'NoSuchKey' });
  expect(current.headers).toMatchObject({ 'x-amz-delete-marker': 'true', 'x-amz-version-id': marker });
  for (const method of ['GET', 'HEAD']) {
    const byId = await get(`?versionId=${marker}`, method);
    expectStatus(byId, 405);
    expect(byId.headers).toMatchObject({ allow: 'DELETE', 'x-amz-delete-marker': 'true' });
    expect(byId.headers['last-modified']).toBeDefined();
  }
  expect((await get(`?versionId=${version}`)).body.toString()).toBe('one');

  const undone = await remove(`?versionId=${marker}`);
  expect(undone.headers).toMatchObject({ 'x-amz-delete-marker': 'true', 'x-amz-version-id': marker });
  expect((await get()).body.toString()).toBe('one');
});

test('a version that is deleted by its id is gone', async () => {
  const [first, second] = [await put('one'), await put('two')];
  const deleted = await remove(`?versionId=${second}`);
  expect(deleted.headers['x-amz-version-id']).toBe(second);
  expect(deleted.headers).not.toHaveProperty('x-amz-delete-marker');
  expect((await get()).headers['x-amz-version-id']).toBe(first);
  expectError(await get(`?versionId=${second}`), { status: 404, code: 'NoSuchVersion', VersionId: second });
});

test('suspended: the null version is written, listed and marked', async () => {
  const kept = await put('kept');
  await setVersioning('suspended');
  expect(await put('one')).toBe('null');
  expect(await put('two')).toBe('null');
  expect((await get('?versionId=null')).body.toString()).toBe('two');
  const deleted = await remove();
  expect(deleted.headers).toMatchObject({ 'x-amz-delete-marker': 'true', 'x-amz-version-id': 'null' });
  expect((await get()).headers['x-amz-delete-marker']).toBe('true');
  expect((await get(`?versionId=${kept}`)).body.toString()).toBe('kept');
});

test('DeleteObjects reports markers and versions', async () => {
  const version = await put('one');
  await put('other', 'other');
  const list = (inner: string) =>
    request(
      'POST',
      `/${bucket}?delete`,
      { 'content-md5': md5(`<Delete>${inner}</Delete>`) },
      `<Delete>${inner}</Delete>`,
    );
  const marked = await list('<Object><Key>key</Key></Object><Object><Key>never</Key></Object>');
  for (const deleted of xmlOf(marked).children) {
    const fields = Object.fromEntries(deleted.children.map(({ name, text }) => [name, text]));
    expect(fields).toMatchObject({
      DeleteMarker: 'true',
      DeleteMarkerVersionId: expect.stringMatching(/^.{32}$/),
    });
    expect(fields).not.toHaveProperty('VersionId');
  }
  const gone = await list(`<Object><Key>key</Key><VersionId>${version}</VersionId></Object>`);
  const [deleted] = xmlOf(gone).children;
  expect(deleted?.children.map(({ name, text }) => [name, text])).toEqual([
    ['Key', 'key'],
    ['VersionId', version],
  ]);
});

describe('copies', () => {
  const copy = (source: string) =>
    request('PUT', `/${bucket}/copy`, { 'x-amz-copy-source': `${bucket}/${source}` });

  test('of the current version and of an earlier one', async () => {
    const [first, second] = [await put('one'), await put('two')];
    const current = await copy('key');
    expectStatus(current, 200);
    expect(current.headers['x-amz-copy-source-version-id']).toBe(second);
    expect(current.headers['x-amz-version-id']).toMatch(/^[\w-]{32}$/);
    const earlier = await copy(`key?versionId=${first}`);
    expect(earlier.headers['x-amz-copy-source-version-id']).toBe(first);
    expect((await request('GET', `/${bucket}/copy`)).body.toString()).toBe('one');
  });

  test('an earlier version onto its own key makes it current again', async () => {
    const first = await put('one');
    await put('two');
    const source = { 'x-amz-copy-source': `${bucket}/key?versionId=${first}` };
    expectStatus(await request('PUT', `/${bucket}/key`, source), 200);
    expect((await get()).body.toString()).toBe('one');
    const onto = { 'x-amz-copy-source': `${bucket}/key` };
    expectError(await request('PUT', `/${bucket}/key`, onto), { status: 400, code: 'InvalidRequest' });
  });

  test('onto itself with a change makes a version', async () => {
    const first = await put('one');
    const answer = await request('PUT', `/${bucket}/key`, {
      'x-amz-copy-source': `${bucket}/key`,
      'x-amz-metadata-directive': 'REPLACE',
      'x-amz-meta-a': '1',
    });
    expectStatus(answer, 200);
    expect(answer.headers['x-amz-version-id']).not.toBe(first);
    expect((await get()).headers['x-amz-meta-a']).toBe('1');
    expect((await get(`?versionId=${first}`)).body.toString()).toBe('one');
  });

  test('of a marker is refused', async () => {
    await put('one');
    const marker = (await remove()).headers['x-amz-version-id'];
    const current = await copy('key');
    expectError(current, { status: 404, code: 'NoSuchKey' });
    expectError(await copy(`key?versionId=${marker}`), { status: 400, code: 'InvalidRequest' });
  });

  test('as a part', async () => {
    const version = await put('one');
    const begun = await request('POST', `/${bucket}/assembled?uploads`);
    const { UploadId = '' } = fieldsOf(begun);
    const part = await request('PUT', `/${bucket}/assembled?partNumber=1&uploadId=${UploadId}`, {
      'x-amz-copy-source': `${bucket}/key?versionId=${version}`,
    });
    expect(part.headers['x-amz-copy-source-version-id']).toBe(version);
    const list = `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>${fieldsOf(part).ETag}</ETag></Part></CompleteMultipartUpload>`;
    const path = `/${bucket}/assembled?uploadId=${UploadId}`;
    const completed = await request('POST', path, {}, list);
    expectStatus(completed, 200);
    expect(completed.headers['x-amz-version-id']).toMatch(/^[\w-]{32}$/);
    const again = await request('POST', path, {}, list);
    expect(again.headers['x-amz-version-id']).toBe(completed.headers['x-amz-version-id']);
  });
});
