// What others may do by ACLs and bucket policies: the rules of s3-behaviour about access, by number. How lists and policies are
// set is in put-bucket-acl, put-object-acl and put-bucket-policy.
import { createHash } from 'node:crypto';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { AccountState } from '../../src/types/records/rows.ts';
import { aclDocument, grantsIn } from '../support/servers/acls.ts';
import { type Form, postForm } from '../support/servers/forms.ts';
import { pathOf, type RawAnswer } from '../support/servers/raw-s3.ts';
import {
  type Account,
  callOperator,
  expectError,
  expectStatus,
  fieldsOf,
  useApi,
} from '../support/servers/s3-api.ts';
import { setVersioning, versionOf } from '../support/servers/versions.ts';

const api = useApi();
let owner: Account;
let other: Account;
let third: Account;
let bucket: string;
beforeAll(async () => {
  owner = await api.makeAccount();
  other = await api.makeAccount();
  third = await api.makeAccount();
});

type Who = 'owner' | 'other' | 'third' | 'anonymous';
interface Wanted {
  headers?: Record<string, string>;
  body?: string | Buffer;
}

function send(
  who: Who,
  method: string,
  target: string,
  { headers = {}, body }: Wanted = {},
): Promise<RawAnswer> {
  const wanted = { method, path: `/${bucket}${target}`, headers };
  if (who === 'anonymous') return api.sendAnonymous(wanted);
  return api.send(
    { ...wanted, ...(body !== undefined && { body: Buffer.from(body) }) },
    { owner, other, third }[who],
  );
}

const statusOf = async (...request: Parameters<typeof send>) => (await send(...request)).status;

/** A new bucket, with an object `k` in it. */
async function prepare(bucketAcl: string, objectAcl = 'private'): Promise<void> {
  bucket = await api.makeBucket(owner);
  expectStatus(await send('owner', 'PUT', '?acl', { headers: { 'x-amz-acl': bucketAcl } }), 200);
  expectStatus(await send('owner', 'PUT', '/k', { headers: { 'x-amz-acl': objectAcl }, body: 'data' }), 200);
}

async function setPolicy(...statements: object[]): Promise<void> {
  const text = JSON.stringify({ Version: '2012-10-17', Statement: statements });
  const body = text.replaceAll('BUCKET', `arn:aws:s3:::${bucket}`);
  expectStatus(await send('owner', 'PUT', '?policy', { body }), 204);
}

const allow = (Action: string | string[], Resource: string, more: object = {}) => ({
  Effect: 'Allow',
  Principal: { AWS: other.id },
  Action,
  Resource,
  ...more,
});
const deny = (Action: string | string[], Resource: string, more: object = {}) => ({
  ...allow(Action, Resource, more),
  Effect: 'Deny',
});
const own = ({ canonicalId }: Account) => `${canonicalId} FULL_CONTROL`;

describe('access control lists', () => {
  test.each(['other', 'anonymous'] as const)(
    's3-behaviour 1: %s reads a public-read object in a private bucket, and nothing else',
    async (who) => {
      await prepare('private', 'public-read');
      await send('owner', 'PUT', '/closed', { body: 'data' });
      expect((await send(who, 'GET', '/k')).body.toString()).toBe('data');
      expect(await statusOf(who, 'HEAD', '/k')).toBe(200);
      for (const [method, target] of [
        ['GET', ''],
        ['GET', '?versions'],
        ['GET', '/closed'],
        ['HEAD', '/closed'],
        ['GET', '/none'],
        ['GET', '/k?acl'],
        ['GET', '?acl'],
        ['PUT', '/k'],
        ['PUT', '/new'],
        ['DELETE', '/k'],
        ['POST', '/new?uploads'],
      ] as const)
        expect([method, target, await statusOf(who, method, target)]).toEqual([method, target, 403]);
      expect(await statusOf(who, 'PUT', '/k?acl', { headers: { 'x-amz-acl': 'private' } })).toBe(403);
    },
  );

  test('s3-behaviour 2: the bucket’s WRITE decides, covers overwriting and deleting, and the writer becomes the owner', async () => {
    await prepare('private', 'public-read-write');
    expect(await statusOf('other', 'PUT', '/k', { body: 'x' })).toBe(403);
    await prepare('public-read-write');
    expectStatus(await send('other', 'PUT', '/k', { body: 'theirs' }), 200);
    expect(await statusOf('other', 'GET', '/k')).toBe(200);
    // The bucket's owner has nothing of it, and may remove it.
    expect(await statusOf('owner', 'GET', '/k')).toBe(403);
    expect(grantsIn(await send('other', 'GET', '/k?acl'))).toEqual([own(other)]);
    expect((await send('owner', 'GET', '?fetch-owner=true&list-type=2')).body.toString()).toContain(
      other.canonicalId,
    );
    expectStatus(await send('third', 'DELETE', '/k'), 204);
    expectStatus(await send('anonymous', 'PUT', '/by-nobody'), 200);
    expect(await statusOf('owner', 'GET', '/by-nobody')).toBe(200);
    expectStatus(await send('anonymous', 'DELETE', '/by-nobody'), 204);
    // Listing is READ, and versions by their ids are for policies alone.
    expect(await statusOf('third', 'GET', '')).toBe(200);
    expect(await statusOf('third', 'DELETE', '/k?versionId=null')).toBe(403);
  });

  test.each([
    ['bucket-owner-read', 'READ', [200, 403]],
    ['bucket-owner-full-control', 'FULL_CONTROL', [200, 200]],
  ])(
    's3-behaviour 4: %s adds a grant to the bucket owner; the uploader stays owner',
    async (name, word, statuses) => {
      await prepare('public-read-write');
      const headers = { 'x-amz-acl': name };
      expectStatus(await send('other', 'PUT', '/theirs', { headers, body: 'x' }), 200);
      const list = await send('other', 'GET', '/theirs?acl');
      expect(grantsIn(list)).toEqual([`${owner.canonicalId} ${word}`, own(other)]);
      expect(list.body.toString()).toContain(`<Owner><ID>${other.canonicalId}</ID>`);
      const seen = [await statusOf('owner', 'GET', '/theirs'), await statusOf('owner', 'GET', '/theirs?acl')];
      expect(seen).toEqual(statuses);
    },
  );

  const OBJECT_RIGHTS = {
    READ: ['GET /k'],
    WRITE: [],
    READ_ACP: ['GET /k?acl'],
    WRITE_ACP: ['PUT /k?acl'],
    FULL_CONTROL: ['GET /k', 'GET /k?acl', 'PUT /k?acl'],
  };
  test.each(Object.entries(OBJECT_RIGHTS))(
    's3-behaviour 5: %s of an object gives exactly that',
    async (word, rights) => {
      await prepare('private');
      const list = aclDocument(owner.canonicalId, [`${other.canonicalId} ${word}`, own(owner)]);
      expectStatus(await send('owner', 'PUT', '/k?acl', { body: list }), 200);
      const may: string[] = [];
      for (const [method, target] of [
        ['GET', '/k'],
        ['GET', '/k?acl'],
        ['PUT', '/k'],
        ['DELETE', '/k'],
        ['GET', '/k?tagging'],
        ['PUT', '/k?acl'],
      ] as const) {
        const body = target === '/k?acl' ? list : 'x';
        const status = await statusOf('other', method, target, method === 'PUT' ? { body } : {});
        if (status < 300) may.push(`${method} ${target}`);
        else expect(status).toBe(403);
      }
      expect(may).toEqual(rights);
      expect(await statusOf('third', 'GET', '/k')).toBe(403);
    },
  );

  const BUCKET_RIGHTS = {
    READ: ['GET ', 'GET ?versions', 'GET ?uploads'],
    WRITE: ['PUT /new', 'DELETE /k'],
    READ_ACP: ['GET ?acl'],
    WRITE_ACP: ['PUT ?acl'],
    FULL_CONTROL: ['GET ', 'GET ?versions', 'GET ?uploads', 'PUT /new', 'DELETE /k', 'GET ?acl', 'PUT ?acl'],
  };
  test.each(Object.entries(BUCKET_RIGHTS))(
    's3-behaviour 5: %s of a bucket gives exactly that',
    async (word, rights) => {
      await prepare('private');
      const list = aclDocument(owner.canonicalId, [`${other.canonicalId} ${word}`, own(owner)]);
      expectStatus(await send('owner', 'PUT', '?acl', { body: list }), 200);
      const may: string[] = [];
      for (const [method, target] of [
        ['GET', ''],
        ['GET', '?versions'],
        ['GET', '?uploads'],
        ['GET', '/k'],
        ['GET', '?policy'],
        ['GET', '?versioning'],
        ['PUT', '/new'],
        ['DELETE', '/k'],
        ['GET', '?acl'],
        ['PUT', '?acl'],
      ] as const) {
        const body = target === '?acl' ? list : 'x';
        const status = await statusOf('other', method, target, method === 'PUT' ? { body } : {});
        if (status < 300) may.push(`${method} ${target}`);
        else expect(status).toBe(403);
      }
      expect(may).toEqual(rights);
    },
  );

  test('s3-behaviour 7: an owner without grants can still read and write the list', async () => {
    await prepare('public-read-write');
    await send('other', 'PUT', '/theirs', { body: 'x' });
    expectStatus(
      await send('other', 'PUT', '/theirs?acl', { body: aclDocument(other.canonicalId, []) }),
      200,
    );
    expect(await statusOf('other', 'GET', '/theirs')).toBe(403);
    expect(grantsIn(await send('other', 'GET', '/theirs?acl'))).toEqual([]);
    expect(await statusOf('owner', 'PUT', '/theirs?acl', { headers: { 'x-amz-acl': 'private' } })).toBe(403);
    expectStatus(await send('other', 'PUT', '/theirs?acl', { headers: { 'x-amz-acl': 'private' } }), 200);
    expect(await statusOf('other', 'GET', '/theirs')).toBe(200);
  });

  test('s3-behaviour 8: each version is read by its own list', async () => {
    await prepare('private');
    await setVersioning({ ...api, send: (wanted) => api.send(wanted, owner) }, bucket, 'Enabled');
    const headers = { 'x-amz-acl': 'public-read' };
    const first = versionOf(await send('owner', 'PUT', '/v', { headers, body: 'first' }));
    const second = versionOf(await send('owner', 'PUT', '/v', { body: 'second' }));
    expect(await statusOf('anonymous', 'GET', `/v?versionId=${first}`)).toBe(200);
    expect(await statusOf('anonymous', 'GET', `/v?versionId=${second}`)).toBe(403);
    expect(await statusOf('anonymous', 'GET', '/v')).toBe(403);
  });

  test('s3-behaviour 9: authenticated-read is for signed requests of any account', async () => {
    await prepare('authenticated-read', 'authenticated-read');
    for (const target of ['', '/k']) {
      expect(await statusOf('other', 'GET', target)).toBe(200);
      expect(await statusOf('anonymous', 'GET', target)).toBe(403);
    }
  });

  test('s3-behaviour 10: a wrong expected owner is refused, of anonymous requests too', async () => {
    await prepare('public-read', 'public-read');
    for (const who of ['owner', 'anonymous'] as const) {
      const wrong = { headers: { 'x-amz-expected-bucket-owner': other.id } };
      expectError(await send(who, 'GET', '/k', wrong), { status: 403, code: 'AccessDenied' });
      const right = { headers: { 'x-amz-expected-bucket-owner': owner.id } };
      expect(await statusOf(who, 'GET', '/k', right)).toBe(200);
    }
  });

  test('s3-behaviour 11: who may list learns that a key is missing', async () => {
    await prepare('public-read');
    expectError(await send('anonymous', 'GET', '/none'), { status: 404, code: 'NoSuchKey' });
    await prepare('private');
    expectError(await send('anonymous', 'GET', '/none'), { status: 403, code: 'AccessDenied' });
    bucket = 'no-such-bucket-here';
    for (const method of ['GET', 'DELETE'])
      expectError(await send('anonymous', method, '/k'), { status: 404, code: 'NoSuchBucket' });
  });

  test('s3-behaviour 17: forms of nobody known go where everybody may write, and may name a list', async () => {
    await prepare('private');
    const post = (form: Form) => postForm(api.server, bucket, form);
    expect((await post({ fields: [['key', 'f']] })).status).toBe(403);
    await prepare('public-read-write');
    expect(
      (
        await post({
          fields: [
            ['key', 'f'],
            ['acl', 'public-read'],
          ],
        })
      ).status,
    ).toBe(204);
    expect(grantsIn(await send('owner', 'GET', '/f?acl'))).toEqual(['AllUsers READ', own(owner)]);
    const refused = async (name: string, value: string) =>
      fieldsOf(
        await post({
          fields: [
            ['key', 'g'],
            [name, value],
          ],
        }),
      ).Code;
    expect(await refused('acl', 'nonsense')).toBe('InvalidArgument');
    const nobody = 'emailAddress=no@where.example';
    expect(await refused('x-amz-grant-read', nobody)).toBe('UnresolvableGrantByEmailAddress');
    const many = Array(101).fill('id=1').join();
    expect(await refused('x-amz-grant-read', many)).toBe('MalformedACLError');
  });

  test('multipart uploads of others: the list is given at the beginning, and the owner is who began', async () => {
    await prepare('public-read-write');
    const headers = { 'x-amz-acl': 'bucket-owner-full-control' };
    const { UploadId } = fieldsOf(await send('other', 'POST', '/m?uploads', { headers }));
    const part = await send('other', 'PUT', `/m?partNumber=1&uploadId=${UploadId}`, { body: 'part' });
    const body = `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>${part.headers.etag}</ETag></Part></CompleteMultipartUpload>`;
    expectStatus(await send('other', 'POST', `/m?uploadId=${UploadId}`, { body }), 200);
    expect(grantsIn(await send('owner', 'GET', '/m?acl'))).toEqual([own(owner), own(other)]);
  });

  test('a copy is the copier’s, and a rename leaves owner and list', async () => {
    await prepare('public-read-write', 'public-read');
    const headers = { 'x-amz-copy-source': `/${bucket}/k`, 'x-amz-acl': 'bucket-owner-full-control' };
    expectStatus(await send('other', 'PUT', '/copy', { headers }), 200);
    expectStatus(await send('owner', 'MOVE', '/copy', { headers: { Destination: 'moved' } }), 200);
    expect(grantsIn(await send('owner', 'GET', '/moved?acl'))).toEqual([own(owner), own(other)]);
  });
});

describe('bucket policies', () => {
  test('allow another account what they say, and a denial goes before a list', async () => {
    await prepare('private');
    await setPolicy(allow(['s3:GetObject', 's3:PutObject'], 'BUCKET/*'), allow('s3:ListBucket', 'BUCKET'));
    expect(await statusOf('other', 'GET', '/k')).toBe(200);
    expect(await statusOf('other', 'GET', '')).toBe(200);
    expectStatus(await send('other', 'PUT', '/new', { body: 'x' }), 200);
    expect(await statusOf('other', 'DELETE', '/k')).toBe(403);
    expect(await statusOf('third', 'GET', '/k')).toBe(403);
    await send('owner', 'PUT', '/k?acl', { headers: { 'x-amz-acl': 'public-read' } });
    await setPolicy(deny('s3:GetObject', 'BUCKET/*'));
    expect(await statusOf('other', 'GET', '/k')).toBe(403);
    expect(await statusOf('third', 'GET', '/k')).toBe(200);
  });

  test('a list of its own needs s3:PutObjectAcl, but for private', async () => {
    await prepare('private');
    await setPolicy(allow('s3:PutObject', 'BUCKET/*'));
    const put = (name: string) =>
      statusOf('other', 'PUT', '/new', { headers: { 'x-amz-acl': name }, body: 'x' });
    expect([await put('private'), await put('bucket-owner-full-control')]).toEqual([200, 403]);
    await setPolicy(allow(['s3:PutObject', 's3:PutObjectAcl'], 'BUCKET/*'));
    expect(await put('bucket-owner-full-control')).toBe(200);
    expect(await statusOf('owner', 'GET', '/new')).toBe(200);
  });

  test('s3-behaviour 21: a condition on x-amz-acl', async () => {
    await prepare('private');
    const held = { Condition: { StringEquals: { 's3:x-amz-acl': 'bucket-owner-full-control' } } };
    await setPolicy(allow(['s3:PutObject', 's3:PutObjectAcl'], 'BUCKET/*', held));
    const put = (headers: Record<string, string>) => statusOf('other', 'PUT', '/new', { headers, body: 'x' });
    expect(await put({})).toBe(403);
    expect(await put({ 'x-amz-acl': 'public-read' })).toBe(403);
    expect(await put({ 'x-amz-acl': 'bucket-owner-full-control' })).toBe(200);
  });

  test('s3-behaviour 22: statements are per resource', async () => {
    await prepare('private');
    await setPolicy(allow('s3:ListBucket', 'BUCKET'), allow('s3:PutObject', 'BUCKET/only-here/*'));
    expect(await statusOf('other', 'PUT', '/only-here/x', { body: 'x' })).toBe(200);
    expect(await statusOf('other', 'PUT', '/elsewhere', { body: 'x' })).toBe(403);
    expect(await statusOf('other', 'POST', '/elsewhere?uploads')).toBe(403);
    const headers = { 'x-amz-copy-source': `/${bucket}/k` };
    expect(await statusOf('other', 'PUT', '/only-here/copy', { headers })).toBe(403);
  });

  test('s3-behaviour 23: HEAD of a missing key tells that only to who may list it', async () => {
    await prepare('private');
    const held = { Condition: { StringLike: { 's3:prefix': 'seen/*' } } };
    await setPolicy(allow('s3:GetObject', 'BUCKET/*'), allow('s3:ListBucket', 'BUCKET', held));
    expect(await statusOf('other', 'HEAD', '/seen/none')).toBe(404);
    expect(await statusOf('other', 'HEAD', '/none')).toBe(403);
  });

  test('the policy itself is for the bucket’s account alone, whatever it allows', async () => {
    await prepare('private');
    const actions = ['s3:GetBucketPolicy', 's3:PutBucketPolicy', 's3:DeleteBucketPolicy'];
    await setPolicy(allow(actions, 'BUCKET'));
    const body = (await send('owner', 'GET', '?policy')).body;
    for (const method of ['GET', 'PUT', 'DELETE']) {
      const wanted = method === 'PUT' ? { body } : {};
      expectError(await send('other', method, '?policy', wanted), { status: 405, code: 'MethodNotAllowed' });
      expectError(await send('third', method, '?policy', wanted), { status: 403, code: 'AccessDenied' });
    }
  });

  test('objects of other accounts: a policy of the bucket denies, and does not allow', async () => {
    await prepare('private');
    await setPolicy(allow('s3:PutObject', 'BUCKET/*'), allow('s3:GetObject', 'BUCKET/*', { Principal: '*' }));
    expectStatus(await send('other', 'PUT', '/theirs', { body: 'x' }), 200);
    expect(await statusOf('anonymous', 'GET', '/k')).toBe(200);
    expect(await statusOf('anonymous', 'GET', '/theirs')).toBe(403);
    expect(await statusOf('other', 'GET', '/theirs')).toBe(200);
    await setPolicy(deny('s3:GetObject', 'BUCKET/theirs'));
    expect(await statusOf('other', 'GET', '/theirs')).toBe(403);
  });
});

describe('an account that is suspended', () => {
  const setState = (state: AccountState) =>
    callOperator(api.server, 'PATCH', `/accounts/${owner.id}`, { state, mayBePublic: true });
  afterEach(() => setState('paid'));

  test('serves nothing to others, whatever its policies and lists say to them by name or to everybody', async () => {
    await prepare('private');
    const headers = { 'x-amz-grant-read': `id=${other.canonicalId}` };
    expectStatus(await send('owner', 'PUT', '/k?acl', { headers }), 200);
    await setPolicy(allow('s3:*', 'BUCKET/*'), { ...allow('s3:GetObject', 'BUCKET/*'), Principal: '*' });
    const answers = async () => [
      await statusOf('anonymous', 'GET', '/k'),
      await statusOf('other', 'GET', '/k'),
      (await send('other', 'PUT', '/new', { body: 'x' })).status,
      await statusOf('other', 'DELETE', '/new'),
    ];
    expect(await answers()).toEqual([200, 200, 200, 204]);
    await setState('suspended');
    expect(await answers()).toEqual([403, 403, 403, 403]);
    expect(api.server.logs().at(-1)).toMatchObject({
      refusedBy: 'no resource policy allows it, and its account is suspended',
    });
    const list = '<Delete><Object><Key>k</Key></Object></Delete>';
    const md5 = { 'content-md5': createHash('md5').update(list).digest('base64') };
    expect((await send('other', 'POST', '?delete', { body: list, headers: md5 })).status).toBe(403);
    const copied = { 'x-amz-copy-source': `/${bucket}/k` };
    const target = pathOf(await api.makeBucket(other), 'copy');
    expect((await api.send({ method: 'PUT', path: target, headers: copied }, other)).status).toBe(403);
    await setState('paid');
    expect(await answers()).toEqual([200, 200, 200, 204]);
  });
});

describe('an account that may share with everybody no more', () => {
  const setPublic = (account: Account, mayBePublic: boolean) =>
    callOperator(api.server, 'PATCH', `/accounts/${account.id}`, { mayBePublic });
  const reads = () =>
    Promise.all((['owner', 'other', 'anonymous'] as const).map((who) => statusOf(who, 'GET', '/k')));
  afterEach(async () => {
    for (const account of [owner, other]) await setPublic(account, true);
  });

  test.each([
    ['a list for all', 'public-read', 200],
    ['a list for all accounts', 'authenticated-read', 403],
  ])('shares nothing by %s, also with signed requests of others', async (_, acl, anonymous) => {
    await prepare(acl, acl);
    expect(await reads()).toEqual([200, 200, anonymous]);
    await setPublic(owner, false);
    expect(await reads()).toEqual([200, 403, 403]);
    expect([await statusOf('other', 'GET', ''), await statusOf('anonymous', 'GET', '')]).toEqual([403, 403]);
    expect(api.server.logs().at(-1)).toMatchObject({
      refusedBy: 'no resource policy allows it, and its account may not share with everybody',
    });
    // Whom it names it still shares with.
    const headers = { 'x-amz-grant-read': `id=${other.canonicalId}` };
    expectStatus(await send('owner', 'PUT', '/k?acl', { headers }), 200);
    expect(await reads()).toEqual([200, 200, 403]);
  });

  test('shares nothing by what a policy says to everybody, and goes on with what it says to some, and to known addresses', async () => {
    await prepare('private');
    const open = { ...allow('s3:GetObject', 'BUCKET/*'), Principal: '*' };
    await setPolicy(open);
    expect(await reads()).toEqual([200, 200, 200]);
    await setPublic(owner, false);
    expect(await reads()).toEqual([200, 403, 403]);
    await setPublic(owner, true);
    await setPolicy(open, allow('s3:GetObject', 'BUCKET/*'));
    await setPublic(owner, false);
    expect(await reads()).toEqual([200, 200, 403]);
    await setPolicy({ ...open, Condition: { IpAddress: { 'aws:SourceIp': '127.0.0.0/24' } } });
    expect(await reads()).toEqual([200, 200, 200]);
    await setPolicy({ ...open, Condition: { IpAddress: { 'aws:SourceIp': '192.0.2.0/24' } } });
    expect(await reads()).toEqual([200, 403, 403]);
  });

  test("in another account's bucket, its objects are shared with those alone whom they name", async () => {
    await prepare('public-read-write');
    const headers = { 'x-amz-acl': 'public-read' };
    expectStatus(await send('other', 'PUT', '/k', { headers, body: 'theirs' }), 200);
    expect(await reads()).toEqual([200, 200, 200]);
    await setPublic(other, false);
    expect(await reads()).toEqual([403, 200, 403]);
  });
});
