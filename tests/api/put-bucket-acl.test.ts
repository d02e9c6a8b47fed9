// PutBucketAcl: canned lists, grants in headers, documents, and what is refused.
import { GetBucketAclCommand, PutBucketAclCommand } from '@aws-sdk/client-s3';
import { beforeEach, expect, test } from 'vitest';
import type { ErrorCode } from '../../src/types/errors.ts';
import { aclDocument, granteeXml, grantsIn } from '../support/servers/acls.ts';
import { type Account, expectError, expectStatus, useApi } from '../support/servers/s3-api.ts';

const api = useApi();
let owner: Account;
let other: Account;
let bucket: string;
beforeEach(async () => {
  owner ??= await api.makeAccount();
  other ??= await api.makeAccount();
  bucket = await api.makeBucket(owner);
});

const set = (headers: Record<string, string>, body?: Buffer) =>
  api.send({ method: 'PUT', path: `/${bucket}?acl`, headers, ...(body && { body }) }, owner);
const get = async () => grantsIn(await api.send({ method: 'GET', path: `/${bucket}?acl` }, owner));
const own = () => `${owner.canonicalId} FULL_CONTROL`;

test.each([
  ['public-read', ['AllUsers READ']],
  ['public-read-write', ['AllUsers READ', 'AllUsers WRITE']],
  ['authenticated-read', ['AuthenticatedUsers READ']],
  ['log-delivery-write', ['LogDelivery WRITE', 'LogDelivery READ_ACP']],
  ['aws-exec-read', []],
  ['bucket-owner-read', []],
  ['bucket-owner-full-control', []],
])('s3-behaviour 3: %s has the group grants first, and private takes them away', async (name, grants) => {
  const answer = await set({ 'x-amz-acl': name });
  expectStatus(answer, 200);
  expect(answer.body).toHaveLength(0);
  expect(await get()).toEqual([...grants, own()]);
  expectStatus(await set({ 'x-amz-acl': 'private' }), 200);
  expect(await get()).toEqual([own()]);
});

test('through the SDK, and the document that it gets can be put again', async () => {
  await owner.s3.send(new PutBucketAclCommand({ Bucket: bucket, ACL: 'public-read' }));
  const acl = await owner.s3.send(new GetBucketAclCommand({ Bucket: bucket }));
  expect(acl.Grants).toMatchObject([
    { Grantee: { Type: 'Group' }, Permission: 'READ' },
    { Grantee: { Type: 'CanonicalUser', ID: owner.canonicalId, DisplayName: owner.name } },
  ]);
  await set({ 'x-amz-acl': 'private' });
  const AccessControlPolicy = { Owner: acl.Owner, Grants: acl.Grants };
  await owner.s3.send(new PutBucketAclCommand({ Bucket: bucket, AccessControlPolicy }));
  expect(await get()).toEqual(['AllUsers READ', own()]);
});

test('s3-behaviour 5: headers give one grant each, and an e-mail grantee becomes the canonical user', async () => {
  const by = `id="${other.canonicalId}"`;
  const answer = await set({
    'x-amz-grant-read': by,
    'x-amz-grant-write': by,
    'x-amz-grant-read-acp': by,
    'x-amz-grant-write-acp': by,
    'x-amz-grant-full-control': `emailAddress="${other.email.toUpperCase()}", uri=http://acs.amazonaws.com/groups/s3/LogDelivery`,
  });
  expectStatus(answer, 200);
  const its = ['READ', 'WRITE', 'READ_ACP', 'WRITE_ACP', 'FULL_CONTROL'].map(
    (word) => `${other.canonicalId} ${word}`,
  );
  expect(await get()).toEqual(['LogDelivery FULL_CONTROL', ...its]);
});

test('a document: groups come first, nothing comes twice, addresses are resolved', async () => {
  const grants = [own(), `${other.email} READ`, `${other.canonicalId} READ`, 'AllUsers READ_ACP'];
  expectStatus(await set({}, aclDocument(owner.canonicalId, grants)), 200);
  expect(await get()).toEqual(['AllUsers READ_ACP', own(), `${other.canonicalId} READ`]);
});

test('s3-behaviour 7: an empty list is legal, and the owner can still read and write it', async () => {
  expectStatus(await set({}, aclDocument(owner.canonicalId, [])), 200);
  expect(await get()).toEqual([]);
  expectStatus(await set({}, aclDocument(owner.canonicalId, [own()])), 200);
  expect(await get()).toEqual([own()]);
});

test('100 grants are stored, one more is refused', async () => {
  const accounts = await Promise.all(Array.from({ length: 20 }, () => api.makeAccount()));
  const words = ['READ', 'WRITE', 'READ_ACP', 'WRITE_ACP', 'FULL_CONTROL'];
  const grants = accounts.flatMap(({ canonicalId }) => words.map((word) => `${canonicalId} ${word}`));
  expectStatus(await set({}, aclDocument(owner.canonicalId, grants)), 200);
  expect(await get()).toEqual(grants);
  const more = await set({}, aclDocument(owner.canonicalId, [...grants, own()]));
  expectError(more, { status: 400, code: 'MalformedACLError' });
});

const id = 'f'.repeat(64);
test.each<[string, Record<string, string>, ErrorCode, Record<string, string>]>([
  [
    'an unknown canned name',
    { 'x-amz-acl': 'public' },
    'InvalidArgument',
    { ArgumentName: 'x-amz-acl', ArgumentValue: 'public' },
  ],
  ['an empty canned name', { 'x-amz-acl': '' }, 'InvalidArgument', {}],
  ['both kinds of headers', { 'x-amz-acl': 'private', 'x-amz-grant-read': `id=${id}` }, 'InvalidRequest', {}],
  [
    'an unknown id',
    { 'x-amz-grant-read': `id=${id}` },
    'InvalidArgument',
    { ArgumentName: 'CanonicalUser/ID', ArgumentValue: id },
  ],
  [
    'an unknown address',
    { 'x-amz-grant-read': 'emailAddress=no@where.example' },
    'UnresolvableGrantByEmailAddress',
    {},
  ],
  [
    'an unknown group',
    { 'x-amz-grant-read': 'uri="http://acs.amazonaws.com/groups/global/All"' },
    'InvalidArgument',
    { ArgumentName: 'uri' },
  ],
  [
    'a grantee of no kind',
    { 'x-amz-grant-read': 'name=x' },
    'InvalidArgument',
    { ArgumentName: 'x-amz-grant-read' },
  ],
  [
    'an empty grantee',
    { 'x-amz-grant-read': `id=${id},` },
    'InvalidArgument',
    { ArgumentName: 'x-amz-grant-read' },
  ],
  ['neither header nor body', {}, 'MissingSecurityHeader', { MissingHeaderName: 'x-amz-acl' }],
])('s3-behaviour 6: %s is refused', async (_name, headers, code, fields) => {
  expectError(await set(headers), { status: 400, code, ...fields });
  expect(await get()).toEqual([own()]);
});

const grant = (inner: string) =>
  `<AccessControlPolicy><Owner><ID>OWNER</ID></Owner><AccessControlList>${inner}</AccessControlList></AccessControlPolicy>`;
const permission = '<Permission>READ</Permission>';
test.each<[string, string, ErrorCode]>([
  ['no XML', 'public-read', 'MalformedACLError'],
  ['another root', '<Acl/>', 'MalformedACLError'],
  ['no owner', '<AccessControlPolicy><AccessControlList/></AccessControlPolicy>', 'MalformedACLError'],
  [
    'no list',
    '<AccessControlPolicy><Owner><ID>OWNER</ID></Owner></AccessControlPolicy>',
    'MalformedACLError',
  ],
  [
    'an unknown permission',
    grant(`<Grant>${granteeXml(id)}<Permission>ALL</Permission></Grant>`),
    'MalformedACLError',
  ],
  ['no grantee', grant(`<Grant>${permission}</Grant>`), 'MalformedACLError'],
  [
    'a grantee of no type',
    grant(`<Grant><Grantee><ID>${id}</ID></Grantee>${permission}</Grant>`),
    'MalformedACLError',
  ],
  [
    'a grantee without its name',
    grant(`<Grant>${granteeXml('AllUsers').replace(/URI/g, 'ID')}${permission}</Grant>`),
    'MalformedACLError',
  ],
  ['something beside grants', grant('<Owner/>'), 'MalformedACLError'],
  ['an unknown id', grant(`<Grant>${granteeXml(id)}${permission}</Grant>`), 'InvalidArgument'],
  ['an id that is none', grant(`<Grant>${granteeXml('x')}${permission}</Grant>`), 'InvalidArgument'],
  [
    'an unknown address',
    grant(`<Grant>${granteeXml('no@where.example')}${permission}</Grant>`),
    'UnresolvableGrantByEmailAddress',
  ],
])('a document with %s is refused', async (_name, text, code) => {
  const body = Buffer.from(text.replace('OWNER', owner.canonicalId));
  expectError(await set({}, body), { status: 400, code });
  expect(await get()).toEqual([own()]);
});

test('a header and a body together, and a document of another owner', async () => {
  const body = aclDocument(owner.canonicalId, [own()]);
  expectError(await set({ 'x-amz-acl': 'public-read' }, body), { status: 400, code: 'UnexpectedContent' });
  const foreign = await set({}, aclDocument(other.canonicalId, ['AllUsers READ']));
  expectError(foreign, { status: 403, code: 'AccessDenied' });
  expect(await get()).toEqual([own()]);
});

test('only the owner may set it, and only of an existing bucket', async () => {
  const headers = { 'x-amz-acl': 'public-read' };
  const denied = { status: 403, code: 'AccessDenied' } as const;
  expectError(await api.send({ method: 'PUT', path: `/${bucket}?acl`, headers }, other), denied);
  expectError(await api.sendAnonymous({ method: 'PUT', path: `/${bucket}?acl`, headers }), denied);
  const nowhere = await api.send({ method: 'PUT', path: '/no-such-bucket-here?acl', headers });
  expectError(nowhere, { status: 404, code: 'NoSuchBucket' });
  expect(await get()).toEqual([own()]);
});
