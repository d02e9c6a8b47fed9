// DeleteBucket.
import { expect, test } from 'vitest';
import { beginUpload } from '../support/servers/multipart.ts';
import { expectError, expectStatus, useApi } from '../support/servers/s3-api.ts';

const api = useApi();
const remove = (name: string) => api.send({ method: 'DELETE', path: `/${name}` });

test('an empty bucket is deleted, and its name is free', async () => {
  const name = await api.makeBucket();
  const answer = await remove(name);
  expectStatus(answer, 204);
  expect(answer.body).toHaveLength(0);
  expectStatus(await api.send({ method: 'HEAD', path: `/${name}` }), 404);
  const account = await api.makeAccount();
  expectStatus(await api.send({ method: 'PUT', path: `/${name}` }, account), 200);
});

test('a bucket created again has nothing of the old one', async () => {
  const name = await api.makeBucket();
  await api.put(name, 'old', 'x');
  expectStatus(await api.send({ method: 'DELETE', path: `/${name}/old` }), 204);
  const upload = await beginUpload(api, { bucket: name, key: 'unfinished' });
  expectStatus(await remove(name), 204);
  expectStatus(await api.send({ method: 'PUT', path: `/${name}` }), 200);
  const uploads = await api.send({ method: 'GET', path: `/${name}?uploads` });
  expect(uploads.body.toString()).not.toContain(upload.uploadId);
  expect(await api.keysOf(name)).toEqual([]);
});

test('a bucket with an object is refused', async () => {
  const name = await api.makeBucket();
  await api.put(name, 'kept', 'x');
  expectError(await remove(name), { status: 409, code: 'BucketNotEmpty', BucketName: name });
  expect(await api.keysOf(name)).toEqual(['kept']);
});

test('a missing bucket', async () => {
  expectError(await remove('no-such-bucket-here'), { status: 404, code: 'NoSuchBucket' });
});

test('force_delete with any value but "true" counts as absent', async () => {
  const name = await api.makeBucket();
  await api.put(name, 'kept', 'x');
  for (const value of ['=false', '=True', '=1', '=', '']) {
    const answer = await api.send({ method: 'DELETE', path: `/${name}?force_delete${value}` });
    expectError(answer, { status: 409, code: 'BucketNotEmpty' });
  }
  expect(await api.keysOf(name)).toEqual(['kept']);
});

test('only the owner may delete', async () => {
  const name = await api.makeBucket();
  const path = `/${name}`;
  const denied = { status: 403, code: 'AccessDenied' } as const;
  expectError(await api.send({ method: 'DELETE', path }, await api.makeAccount()), denied);
  expectError(await api.sendAnonymous({ method: 'DELETE', path }), denied);
  expectStatus(await api.send({ method: 'HEAD', path }), 200);
});
