// DELETE of an object.
import { beforeAll, expect, test } from 'vitest';
import { expectError, expectStatus, useApi } from '../support/servers/s3-api.ts';

const api = useApi();
let bucket: string;
beforeAll(async () => {
  bucket = await api.makeBucket();
});

const remove = (path: string) => api.send({ method: 'DELETE', path: `/${bucket}/${path}` });

test('an object is deleted, and a missing one counts as deleted', async () => {
  await api.put(bucket, 'there', 'x');
  for (const key of ['there', 'there', 'never']) {
    const answer = await remove(key);
    expectStatus(answer, 204);
    expect(answer.body).toHaveLength(0);
    for (const name of ['x-amz-version-id', 'x-amz-delete-marker'])
      expect(answer.headers).not.toHaveProperty(name);
  }
  expect(await api.keysOf(bucket)).toEqual([]);
});

test('versionId=null is the object of a bucket without versions; there are no other versions', async () => {
  await api.put(bucket, 'null', 'x');
  expectStatus(await remove(`null?versionId=${'A'.repeat(32)}`), 204);
  expect(await api.keysOf(bucket)).toEqual(['null']);
  expectStatus(await remove('null?versionId=null'), 204);
  expect(await api.keysOf(bucket)).toEqual([]);
});

test.each([
  ['', 'Version id cannot be the empty string'],
  ['no', 'Invalid version id specified'],
])('versionId=%s is refused, and nothing goes', async (versionId, message) => {
  await api.put(bucket, 'stays', 'x');
  expectError(await remove(`stays?versionId=${versionId}`), {
    status: 400,
    code: 'InvalidArgument',
    Message: message,
    ArgumentName: 'versionId',
    ArgumentValue: versionId,
  });
  expect(await api.keysOf(bucket)).toEqual(['stays']);
  await remove('stays');
});

test('malformed conditions, and those of other operations, are refused', async () => {
  await api.put(bucket, 'stays', 'x');
  const send = (headers: Record<string, string>) =>
    api.send({ method: 'DELETE', path: `/${bucket}/stays`, headers });
  for (const name of ['if-match', 'x-amz-if-match-size', 'x-amz-if-match-last-modified-time']) {
    const refused = { status: 400, code: 'InvalidArgument', ArgumentName: name } as const;
    expectError(await send({ [name]: 'not one' }), refused);
  }
  const missing = { status: 501, code: 'NotImplemented' } as const;
  expectError(await send({ 'if-none-match': '"x"' }), missing);
  expect(await api.keysOf(bucket)).toEqual(['stays']);
  await remove('stays');
});

test('only the owner may delete', async () => {
  await api.put(bucket, 'mine', 'x');
  const account = await api.makeAccount();
  const path = `/${bucket}/mine`;
  const denied = { status: 403, code: 'AccessDenied' } as const;
  expectError(await api.send({ method: 'DELETE', path }, account), denied);
  expectError(await api.sendAnonymous({ method: 'DELETE', path }), denied);
  expect(await api.keysOf(bucket)).toEqual(['mine']);
  const nowhere = await api.sendAnonymous({ method: 'DELETE', path: '/no-such-bucket-here/x' });
  expectError(nowhere, { status: 404, code: 'NoSuchBucket' });
});
