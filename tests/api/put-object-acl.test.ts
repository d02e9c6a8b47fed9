// PutObjectAcl, and the lists that requests give to the objects they make.
import { GetObjectAclCommand, PutObjectAclCommand } from '@aws-sdk/client-s3';
import { beforeAll, expect, test } from 'vitest';
import { aclDocument, grantsIn } from '../support/servers/acls.ts';
import { type Account, expectError, expectStatus, fieldsOf, useApi } from '../support/servers/s3-api.ts';
import { setVersioning, versionOf } from '../support/servers/versions.ts';

const api = useApi();
let owner: Account;
let other: Account;
let bucket: string;
beforeAll(async () => {
  owner = await api.makeAccount();
  other = await api.makeAccount();
  bucket = await api.makeBucket(owner);
});

const send = (method: string, target: string, headers: Record<string, string> = {}, body?: Buffer) =>
  api.send({ method, path: `/${bucket}/${target}`, headers, ...(body && { body }) }, owner);
const put = async (target: string, headers: Record<string, string> = {}) => {
  const answer = await send('PUT', target, headers, Buffer.from('data'));
  expectStatus(answer, 200);
  return answer;
};
const get = async (target: string) => grantsIn(await send('GET', target));
const own = () => `${owner.canonicalId} FULL_CONTROL`;

test('canned lists and grants, and private takes them away', async () => {
  await put('k');
  expectStatus(await send('PUT', 'k?acl', { 'x-amz-acl': 'public-read-write' }), 200);
  expect(await get('k?acl')).toEqual(['AllUsers READ', 'AllUsers WRITE', own()]);
  expectStatus(await send('PUT', 'k?acl', { 'x-amz-grant-read': `id=${other.canonicalId}` }), 200);
  expect(await get('k?acl')).toEqual([`${other.canonicalId} READ`]);
  expectStatus(await send('PUT', 'k?acl', {}, aclDocument(owner.canonicalId, [])), 200);
  expect(await get('k?acl')).toEqual([]);
  const answer = await send('PUT', 'k?acl', { 'x-amz-acl': 'private' });
  expectStatus(answer, 200);
  expect(answer.headers).not.toHaveProperty('x-amz-version-id');
  expect(await get('k?acl')).toEqual([own()]);
  expect((await send('GET', 'k')).body.toString()).toBe('data');
});

test('through the SDK', async () => {
  await put('sdk');
  const address = { Bucket: bucket, Key: 'sdk' };
  await owner.s3.send(new PutObjectAclCommand({ ...address, ACL: 'authenticated-read' }));
  const acl = await owner.s3.send(new GetObjectAclCommand(address));
  expect(acl.Grants?.map(({ Permission }) => Permission)).toEqual(['READ', 'FULL_CONTROL']);
  const AccessControlPolicy = { Owner: acl.Owner, Grants: acl.Grants?.slice(1) };
  await owner.s3.send(new PutObjectAclCommand({ ...address, AccessControlPolicy }));
  expect(await get('sdk?acl')).toEqual([own()]);
});

test('s3-behaviour 8: lists are per version, and a new version has the default one', async () => {
  bucket = await api.makeBucket(owner);
  await setVersioning({ ...api, send: (wanted) => api.send(wanted, owner) }, bucket, 'Enabled');
  const first = versionOf(await put('v', { 'x-amz-acl': 'public-read' }));
  const second = versionOf(await put('v'));
  expect(await get('v?acl')).toEqual([own()]);
  expect(await get(`v?acl&versionId=${first}`)).toEqual(['AllUsers READ', own()]);
  const set = await send('PUT', `v?acl&versionId=${first}`, { 'x-amz-acl': 'authenticated-read' });
  expectStatus(set, 200);
  expect(set.headers['x-amz-version-id']).toBe(first);
  const current = await send('PUT', 'v?acl', { 'x-amz-acl': 'public-read' });
  expect(current.headers['x-amz-version-id']).toBe(second);
  expect(await get(`v?acl&versionId=${first}`)).toEqual(['AuthenticatedUsers READ', own()]);
  expect(await get(`v?acl&versionId=${second}`)).toEqual(['AllUsers READ', own()]);
  const marker = versionOf(await send('DELETE', 'v'));
  const headers = { 'x-amz-acl': 'private' };
  expectError(await send('PUT', 'v?acl', headers), { status: 404, code: 'NoSuchKey' });
  const ofMarker = await send('PUT', `v?acl&versionId=${marker}`, headers);
  expectError(ofMarker, { status: 405, code: 'MethodNotAllowed' });
  const gone = await send('PUT', `v?acl&versionId=${'A'.repeat(32)}`, headers);
  expectError(gone, { status: 404, code: 'NoSuchVersion' });
  expectError(await send('PUT', 'v?acl&versionId=', headers), { status: 400, code: 'InvalidArgument' });
});

test('PutObject, CopyObject and multipart uploads take a list; a copy does not take the source’s', async () => {
  const shared = { 'x-amz-acl': 'public-read' };
  const byGrant = { 'x-amz-grant-read-acp': `emailAddress=${other.email}` };
  await put('made', shared);
  expect(await get('made?acl')).toEqual(['AllUsers READ', own()]);
  await put('made', byGrant);
  expect(await get('made?acl')).toEqual([`${other.canonicalId} READ_ACP`]);
  const copyOf = { 'x-amz-copy-source': `/${bucket}/made` };
  expectStatus(await send('PUT', 'copy', copyOf), 200);
  expect(await get('copy?acl')).toEqual([own()]);
  expectStatus(await send('PUT', 'copy', { ...copyOf, ...shared }), 200);
  expect(await get('copy?acl')).toEqual(['AllUsers READ', own()]);
  const ontoItself = { ...copyOf, 'x-amz-metadata-directive': 'REPLACE', ...shared };
  expectStatus(await send('PUT', 'made', ontoItself), 200);
  expect(await get('made?acl')).toEqual(['AllUsers READ', own()]);

  for (const [key, headers, grants] of [
    ['parts', shared, ['AllUsers READ', own()]],
    ['private-parts', {}, [own()]],
  ] as const) {
    const { UploadId } = fieldsOf(await send('POST', `${key}?uploads`, headers));
    const part = await put(`${key}?partNumber=1&uploadId=${UploadId}`);
    const list = `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>${part.headers.etag}</ETag></Part></CompleteMultipartUpload>`;
    expectStatus(await send('POST', `${key}?uploadId=${UploadId}`, {}, Buffer.from(list)), 200);
    expect(await get(`${key}?acl`)).toEqual(grants);
  }
});

test('a rename, tags and appends keep the list; a composition has the default one', async () => {
  await put('a', { 'x-amz-acl': 'public-read' });
  const tags = Buffer.from('<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>');
  expectStatus(await send('PUT', 'a?tagging', {}, tags), 200);
  expectStatus(await send('PUT', 'a?append', {}, Buffer.from('more')), 200);
  expectStatus(await send('MOVE', 'a', { Destination: 'b' }), 200);
  expect(await get('b?acl')).toEqual(['AllUsers READ', own()]);
  const parts = Buffer.from('<ComposeRequest><Component><Key>b</Key></Component></ComposeRequest>');
  expectStatus(await send('PUT', 'c?compose', {}, parts), 200);
  expect(await get('c?acl')).toEqual([own()]);
  // What is appended to keeps its list, so none is taken.
  const append = { 'x-amz-write-offset-bytes': '8', 'x-amz-acl': 'authenticated-read' };
  expectError(await send('PUT', 'b', append, Buffer.from('x')), { status: 501, code: 'NotImplemented' });
});

test.each(['PutObject', 'CopyObject', 'CreateMultipartUpload', 'PutObjectAcl'])(
  's3-behaviour 6: %s refuses lists that mean nobody',
  async (operation) => {
    await put('source');
    const copy: Record<string, string> =
      operation === 'CopyObject' ? { 'x-amz-copy-source': `/${bucket}/source` } : {};
    const [method, target] =
      operation === 'CreateMultipartUpload'
        ? ['POST', 'refused?uploads']
        : ['PUT', operation === 'PutObjectAcl' ? 'source?acl' : 'refused'];
    const refused = async (headers: Record<string, string>) =>
      fieldsOf(await send(method, target, { ...copy, ...headers })).Code;
    const id = 'f'.repeat(64);
    expect(await refused({ 'x-amz-acl': 'nonsense' })).toBe('InvalidArgument');
    expect(await refused({ 'x-amz-grant-read': `id=${id}` })).toBe('InvalidArgument');
    expect(await refused({ 'x-amz-acl': 'private', 'x-amz-grant-read': `id=${id}` })).toBe('InvalidRequest');
    const nobody = { 'x-amz-grant-write': 'emailAddress=no@where.example' };
    expect(await refused(nobody)).toBe('UnresolvableGrantByEmailAddress');
    const many = { 'x-amz-grant-read': Array(101).fill(`id=${owner.canonicalId}`).join(',') };
    expect(await refused(many)).toBe('MalformedACLError');
    if (operation !== 'PutObjectAcl') expect((await send('GET', 'refused')).status).toBe(404);
    else expect(await refused({})).toBe('MissingSecurityHeader');
  },
);

test('a header and a body together, another owner, and what is not XML', async () => {
  await put('both');
  const body = aclDocument(owner.canonicalId, [own()]);
  const both = await send('PUT', 'both?acl', { 'x-amz-acl': 'private' }, body);
  expectError(both, { status: 400, code: 'UnexpectedContent' });
  const foreign = await send('PUT', 'both?acl', {}, aclDocument(other.canonicalId, [own()]));
  expectError(foreign, { status: 403, code: 'AccessDenied' });
  const text = await send('PUT', 'both?acl', {}, Buffer.from('private'));
  expectError(text, { status: 400, code: 'MalformedACLError' });
});

test('only the owner may set it', async () => {
  await put('own');
  const path = `/${bucket}/own?acl`;
  const headers = { 'x-amz-acl': 'public-read' };
  const denied = { status: 403, code: 'AccessDenied' } as const;
  expectError(await api.send({ method: 'PUT', path, headers }, other), denied);
  expectError(await api.sendAnonymous({ method: 'PUT', path, headers }), denied);
  expect(await get('own?acl')).toEqual([own()]);
});
