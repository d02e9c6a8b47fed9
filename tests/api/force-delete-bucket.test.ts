// ForceDeleteBucket (service 3, 4.1; extensions 2.5): the bucket goes with all that is in it, at once for everybody.
// That it is refused whole when something has to stay, and what happens between its steps: forced-deletions.test.ts.
import { expect, test } from 'vitest';
import { beginUpload, putPart, uploadPath } from '../support/servers/multipart.ts';
import type { Access } from '../support/servers/raw-s3.ts';
import { expectError, expectStatus, fieldsOf, useApi } from '../support/servers/s3-api.ts';
import { listVersions, makeVersionedBucket, versionsIn } from '../support/servers/versions.ts';

const api = useApi();
const remove = (name: string, as?: Access) =>
  api.send({ method: 'DELETE', path: `/${name}?force_delete=true` }, as);
const statusOf = async (line: string) => {
  const [method = '', path = ''] = line.split(' ');
  return (await api.send({ method, path })).status;
};

test('service 4.1, force_delete: objects, versions, markers and open uploads are deleted, and the name is free at once', async () => {
  const name = await makeVersionedBucket(api);
  for (const body of ['one', 'two']) await api.put(name, 'k', body);
  await api.put(name, 'large', Buffer.alloc(3 * 2 ** 20, 'l'));
  expect(await statusOf(`DELETE /${name}/k`)).toBe(204);
  const upload = await beginUpload(api, { bucket: name, key: 'unfinished' });
  await putPart(api, upload, { partNumber: 1, body: Buffer.from('p') });
  const answer = await remove(name);
  expectStatus(answer, 204);
  expect(answer.body).toHaveLength(0);
  for (const line of [`HEAD /${name}`, `GET /${name}/large`, `PUT /${name}/k`, `GET /${name}?versions`]) {
    expect(await statusOf(line), line).toBe(404);
  }
  expect((await api.send({ method: 'GET', path: '/' })).body.toString()).not.toContain(name);
  const account = await api.makeAccount();
  expectStatus(await api.send({ method: 'PUT', path: `/${name}` }, account), 200);
  const list = await api.send({ method: 'GET', path: `/${name}?versions` }, account);
  expect(versionsIn(list)).toEqual([]);
});

test('a bucket created again by the same owner has nothing of the old one', async () => {
  const name = await api.makeBucket();
  await api.put(name, 'old', 'x');
  const upload = await beginUpload(api, { bucket: name, key: 'unfinished' });
  expectStatus(await remove(name), 204);
  expectStatus(await api.send({ method: 'PUT', path: `/${name}` }), 200);
  expect(versionsIn(await listVersions(api, name))).toEqual([]);
  expectError(await api.send({ method: 'GET', path: uploadPath(upload) }), {
    status: 404,
    code: 'NoSuchUpload',
  });
});

test('an empty bucket', async () => {
  const name = await api.makeBucket();
  expectStatus(await remove(name), 204);
  expect(await statusOf(`HEAD /${name}`)).toBe(404);
});

test('copies of its objects in other buckets stay complete', async () => {
  const [name, other] = [await api.makeBucket(), await api.makeBucket()];
  const body = Buffer.alloc(2 * 2 ** 20, 'c');
  await api.put(name, 'original', body);
  const headers = { 'x-amz-copy-source': `/${name}/original` };
  expectStatus(await api.send({ method: 'PUT', path: `/${other}/copy`, headers }), 200);
  expectStatus(await remove(name), 204);
  expect((await api.send({ method: 'GET', path: `/${other}/copy` })).body.equals(body)).toBe(true);
});

test('a missing bucket', async () => {
  expectError(await remove('no-such-bucket-here'), { status: 404, code: 'NoSuchBucket' });
});

test('only the owner may delete', async () => {
  const name = await api.makeBucket();
  await api.put(name, 'kept', 'x');
  const denied = { status: 403, code: 'AccessDenied' } as const;
  expectError(await remove(name, await api.makeAccount()), denied);
  const path = `/${name}?force_delete=true`;
  expectError(await api.sendAnonymous({ method: 'DELETE', path }), denied);
  expect(await api.keysOf(name)).toEqual(['kept']);
});

test('of racing deletions one or more are answered 204, the others are refused or find nothing', async () => {
  const codes = new Set<string | undefined>();
  for (let round = 0; round < 20 && !codes.has('OperationAborted'); round++) {
    const name = await api.makeBucket();
    await api.put(name, 'k', 'x');
    const answers = await Promise.all(Array.from({ length: 6 }, () => remove(name)));
    expect(answers.filter(({ status }) => status === 204).length).toBeGreaterThan(0);
    for (const answer of answers) if (answer.status !== 204) codes.add(fieldsOf(answer).Code);
    expect(await statusOf(`HEAD /${name}`)).toBe(404);
  }
  expect([...codes].filter((code) => code !== 'NoSuchBucket')).toEqual(['OperationAborted']);
});
