// GetObjectAcl: the list of a private object, per version.
import { GetObjectAclCommand } from '@aws-sdk/client-s3';
import { beforeAll, expect, test } from 'vitest';
import { type Account, expectError, expectStatus, useApi } from '../support/servers/s3-api.ts';
import { setVersioning, versionOf } from '../support/servers/versions.ts';

const api = useApi();
let owner: Account;
let bucket: string;
beforeAll(async () => {
  owner = await api.makeAccount();
  bucket = await api.makeBucket(owner);
});

const send = (method: string, target: string, headers = {}) =>
  api.send({ method, path: `/${bucket}/${target}`, headers }, owner);
const ask = (target: string) => send('GET', target);

test('the owner, and its one grant, of the current version and of one by its id', async () => {
  expectStatus(await send('PUT', 'k'), 200);
  const answer = await ask('k?acl');
  expectStatus(answer, 200);
  expect(answer.headers).not.toHaveProperty('x-amz-version-id');
  const identity = `<ID>${owner.canonicalId}</ID><DisplayName>${owner.name}</DisplayName>`;
  const text = answer.body.toString();
  expect(text).toContain(`<Owner>${identity}</Owner><AccessControlList><Grant><Grantee `);
  expect(text).toContain(
    `xsi:type="CanonicalUser">${identity}</Grantee><Permission>FULL_CONTROL</Permission>`,
  );
  const viaSdk = await owner.s3.send(new GetObjectAclCommand({ Bucket: bucket, Key: 'k' }));
  expect(viaSdk.Grants).toMatchObject([{ Grantee: { ID: owner.canonicalId }, Permission: 'FULL_CONTROL' }]);
  await setVersioning({ ...api, send: (wanted) => api.send(wanted, owner) }, bucket, 'Enabled');
  const versionId = versionOf(await send('PUT', 'k'));
  for (const id of ['null', versionId]) {
    const byId = await ask(`k?acl&versionId=${id}`);
    expectStatus(byId, 200);
    expect(byId.headers['x-amz-version-id']).toBe(id);
    expect(byId.body.toString()).toBe(text);
  }
});

test('of a missing key, version, or a marker', async () => {
  await setVersioning({ ...api, send: (wanted) => api.send(wanted, owner) }, bucket, 'Enabled');
  const missing = await ask('none?acl');
  expectError(missing, { status: 404, code: 'NoSuchKey' });
  expect(missing.headers['x-amz-delete-marker']).toBe('false');
  expectError(await ask('k?acl&versionId='), { status: 400, code: 'InvalidArgument' });
  const gone = 'A'.repeat(32);
  expectError(await ask(`k?acl&versionId=${gone}`), { status: 404, code: 'NoSuchVersion' });
  expectStatus(await send('PUT', 'deleted'), 200);
  const marker = versionOf(await send('DELETE', 'deleted'));
  const current = await ask('deleted?acl');
  expectError(current, { status: 404, code: 'NoSuchKey' });
  expect(current.headers['x-amz-delete-marker']).toBe('true');
  expectError(await ask(`deleted?acl&versionId=${marker}`), { status: 405, code: 'MethodNotAllowed' });
});

test('only the owner may read', async () => {
  expectStatus(await send('PUT', 'own'), 200);
  const denied = { status: 403, code: 'AccessDenied' } as const;
  const path = `/${bucket}/own?acl`;
  expectError(await api.send({ method: 'GET', path }), denied);
  expectError(await api.sendAnonymous({ method: 'GET', path }), denied);
  expectError(await send('GET', 'own?acl', { 'x-amz-expected-bucket-owner': '000000000000' }), denied);
});
