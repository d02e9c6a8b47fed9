// PutObjectTagging: what a version keeps and what it keeps unchanged; sets that are none; and tags that come with the
// object itself.
import { createHash } from 'node:crypto';
import { PutObjectCommand, PutObjectTaggingCommand } from '@aws-sdk/client-s3';
import { beforeAll, describe, expect, test } from 'vitest';
import { beginUpload, putPart, sendComplete } from '../support/servers/multipart.ts';
import { pathOf } from '../support/servers/raw-s3.ts';
import { expectError, expectStatus, useApi } from '../support/servers/s3-api.ts';
import {
  manyTags,
  sendTags,
  type Tags,
  taggingPath,
  taggingXml,
  tagsOf,
} from '../support/servers/tagging.ts';
import { listVersions, makeVersionedBucket, versionOf, versionsIn } from '../support/servers/versions.ts';

const api = useApi();
let bucket: string;
beforeAll(async () => {
  bucket = await api.makeBucket();
});

const BOTH: Tags = [
  ['colour', 'dark red'],
  ['größe/@:=+-._', ''],
];
const head = (key: string) => api.send({ method: 'HEAD', path: pathOf(bucket, key) });
const put = (key: string, tagging: string) =>
  api.send({
    method: 'PUT',
    path: pathOf(bucket, key),
    headers: { 'x-amz-tagging': tagging },
    body: Buffer.from('x'),
  });

test('sets tags, and changes nothing else of the object', async () => {
  await api.put(bucket, 'plain', 'bytes', { 'x-amz-meta-a': '1' });
  const before = await head('plain');
  expect(before.headers).not.toHaveProperty('x-amz-tagging-count');
  const answer = await sendTags(api, { bucket, key: 'plain' }, BOTH);
  expectStatus(answer, 200);
  expect(answer.body).toHaveLength(0);
  expect(answer.headers).not.toHaveProperty('x-amz-version-id');
  expect(await tagsOf(api, { bucket, key: 'plain' })).toEqual(BOTH);
  const after = await head('plain');
  expect(after.headers['x-amz-tagging-count']).toBe('2');
  for (const name of ['etag', 'last-modified', 'x-amz-meta-a', 'content-length']) {
    expect(after.headers[name], name).toBe(before.headers[name]);
  }
  const got = await api.send({ method: 'GET', path: pathOf(bucket, 'plain') });
  expect([got.headers['x-amz-tagging-count'], got.body.toString()]).toEqual(['2', 'bytes']);
});

test('a set replaces the one before, also an empty one', async () => {
  await api.put(bucket, 'again', 'bytes');
  await sendTags(api, { bucket, key: 'again' }, BOTH);
  expectStatus(await sendTags(api, { bucket, key: 'again' }, [['other', '1']]), 200);
  expect(await tagsOf(api, { bucket, key: 'again' })).toEqual([['other', '1']]);
  expectStatus(await sendTags(api, { bucket, key: 'again' }, []), 200);
  expect(await tagsOf(api, { bucket, key: 'again' })).toEqual([]);
  expect((await head('again')).headers).not.toHaveProperty('x-amz-tagging-count');
});

test('of a version by its id; no version is made', async () => {
  const versioned = await makeVersionedBucket(api);
  const make = async (body: string) =>
    versionOf(await api.send({ method: 'PUT', path: pathOf(versioned, 'k'), body: Buffer.from(body) }));
  const [first, second] = [await make('one'), await make('two')];
  const listed = versionsIn(await listVersions(api, versioned));
  const older = await sendTags(api, { bucket: versioned, key: 'k', versionId: first }, [['n', '1']]);
  expect([older.status, versionOf(older)]).toEqual([200, first]);
  const current = await sendTags(api, { bucket: versioned, key: 'k' }, [['n', '2']]);
  expect([current.status, versionOf(current)]).toEqual([200, second]);
  expect(await tagsOf(api, { bucket: versioned, key: 'k', versionId: first })).toEqual([['n', '1']]);
  expect(await tagsOf(api, { bucket: versioned, key: 'k', versionId: second })).toEqual([['n', '2']]);
  expect(versionsIn(await listVersions(api, versioned))).toEqual(listed);
  // The new version of a key begins without.
  await make('three');
  expect(await tagsOf(api, { bucket: versioned, key: 'k' })).toEqual([]);
});

test('of missing keys, and of markers', async () => {
  const versioned = await makeVersionedBucket(api);
  const object = { bucket: versioned, key: 'k' };
  expectError(await sendTags(api, object, BOTH), { status: 404, code: 'NoSuchKey', Key: 'k' });
  await api.put(versioned, 'k', 'bytes');
  const unknown = 'A'.repeat(32);
  const refused = await sendTags(api, { ...object, versionId: unknown }, BOTH);
  expectError(refused, { status: 404, code: 'NoSuchVersion', VersionId: unknown });
  expectError(await sendTags(api, { ...object, versionId: '' }, BOTH), {
    status: 400,
    code: 'InvalidArgument',
  });
  const marker = versionOf(await api.send({ method: 'DELETE', path: pathOf(versioned, 'k') }));
  const hidden = await sendTags(api, object, BOTH);
  expectError(hidden, { status: 404, code: 'NoSuchKey' });
  expect(hidden.headers['x-amz-delete-marker']).toBe('true');
  const byId = await sendTags(api, { ...object, versionId: marker }, BOTH);
  expectError(byId, { status: 405, code: 'MethodNotAllowed', ResourceType: 'DeleteMarker' });
});

describe('invalid sets', () => {
  const cases: [string, Tags, Record<string, string>][] = [
    ['11 tags', manyTags(11), {}],
    ['a key of 129 characters', [['k'.repeat(129), '']], { TagKey: 'k'.repeat(129) }],
    ['a value of 257 characters', [['k', 'v'.repeat(257)]], { TagKey: 'k', TagValue: 'v'.repeat(257) }],
    ['an empty key', [['', 'v']], { TagKey: '' }],
    [
      'a key twice',
      [
        ['k', '1'],
        ['k', '2'],
      ],
      { TagKey: 'k' },
    ],
    ['a reserved key', [['aws:k', 'v']], { TagKey: 'aws:k' }],
    ['a mark that is not allowed', [['k', 'a,b']], { TagKey: 'k', TagValue: 'a,b' }],
  ];
  beforeAll(async () => {
    await api.put(bucket, 'target', 'bytes', { 'x-amz-tagging': 'kept=1' });
  });

  test.each(cases)('s3-behaviour 44: %s is InvalidTag, and the tags stay', async (_name, tags, fields) => {
    const answer = await sendTags(api, { bucket, key: 'target' }, tags);
    expectError(answer, { status: 400, code: 'InvalidTag', ...fields });
    expect(await tagsOf(api, { bucket, key: 'target' })).toEqual([['kept', '1']]);
  });

  test('s3-behaviour 44: ten tags of the greatest length are taken', async () => {
    await api.put(bucket, 'greatest', 'bytes');
    const tags: Tags = manyTags(10).map(([key, value]) => [key.padEnd(128, 'ä'), value.padEnd(256, '日')]);
    expectStatus(await sendTags(api, { bucket, key: 'greatest' }, tags), 200);
    expect(await tagsOf(api, { bucket, key: 'greatest' })).toEqual(tags);
  });

  test.each([
    ['no document', '', { code: 'MissingRequestBodyError' }],
    ['no XML', '{}', { code: 'MalformedXML' }],
    ['no set', '<Tagging/>', { code: 'MalformedXML' }],
    [
      'a tag without a value',
      '<Tagging><TagSet><Tag><Key>k</Key></Tag></TagSet></Tagging>',
      { code: 'MalformedXML' },
    ],
  ] as const)('%s', async (_name, body, { code }) => {
    const path = taggingPath({ bucket, key: 'target' });
    expectError(await api.send({ method: 'PUT', path, body: Buffer.from(body) }), { status: 400, code });
  });

  test('a digest is verified if it is sent', async () => {
    const path = taggingPath({ bucket, key: 'target' });
    const body = taggingXml([['kept', '1']]);
    const send = (of: Buffer) => {
      const headers = { 'content-md5': createHash('md5').update(of).digest('base64') };
      return api.send({ method: 'PUT', path, headers, body });
    };
    expectError(await send(Buffer.from('other')), { status: 400, code: 'BadDigest' });
    expectStatus(await send(body), 200);
  });
});

describe('tags that come with the object', () => {
  test.each([
    [
      'a=1&b=%C3%A4+%2F',
      [
        ['a', '1'],
        ['b', 'ä /'],
      ],
    ],
    ['a', [['a', '']]],
    ['', []],
    ['&', []],
  ] as [string, Tags][])('x-amz-tagging: %s', async (header, tags) => {
    expectStatus(await put('with', header), 200);
    expect(await tagsOf(api, { bucket, key: 'with' })).toEqual(tags);
    const count = tags.length === 0 ? undefined : String(tags.length);
    expect((await head('with')).headers['x-amz-tagging-count']).toBe(count);
  });

  test.each([
    ['a=1&a=2', 'InvalidArgument', { ArgumentName: 'x-amz-tagging', ArgumentValue: 'a=1&a=2' }],
    ['a=%zz', 'InvalidArgument', { ArgumentName: 'x-amz-tagging' }],
    ['a=b,c', 'InvalidTag', { TagKey: 'a', TagValue: 'b,c' }],
  ] as const)('x-amz-tagging: %s is refused, and nothing is stored', async (header, code, fields) => {
    expectError(await put('refused', header), { status: 400, code, ...fields });
    expectStatus(await head('refused'), 404);
    const begun = await api.send({
      method: 'POST',
      path: `/${bucket}/refused?uploads`,
      headers: { 'x-amz-tagging': header },
    });
    expectError(begun, { status: 400, code, ...fields });
  });

  test.each([
    ['11 tags', manyTags(11)],
    ['a key of 129 characters', [['k'.repeat(129), '']]],
    ['a value of 257 characters', [['k', 'v'.repeat(257)]]],
  ] as [string, Tags][])('s3-behaviour 44: %s in the header', async (_name, tags) => {
    const header = tags.map((pair) => pair.map(encodeURIComponent).join('=')).join('&');
    expectError(await put('refused', header), { status: 400, code: 'InvalidTag' });
  });

  test('of a multipart upload', async () => {
    const upload = await beginUpload(api, { bucket, key: 'parts' }, { 'x-amz-tagging': 'a=1&b=2' });
    const etag = await putPart(api, upload, { partNumber: 1, body: Buffer.from('part') });
    expectStatus(await sendComplete(api, upload, [{ partNumber: 1, etag }]), 200);
    expect(await tagsOf(api, { bucket, key: 'parts' })).toEqual([
      ['a', '1'],
      ['b', '2'],
    ]);
  });

  test('an object without tags replaces one with tags', async () => {
    await put('again', 'a=1');
    await api.put(bucket, 'again', 'bytes');
    expect(await tagsOf(api, { bucket, key: 'again' })).toEqual([]);
  });
});

test('the SDK', async () => {
  const object = { Bucket: bucket, Key: 'sdk' };
  await api.s3.send(new PutObjectCommand({ ...object, Body: 'x', Tagging: 'a=1' }));
  expect(await tagsOf(api, { bucket, key: 'sdk' })).toEqual([['a', '1']]);
  const TagSet = [{ Key: 'b', Value: 'c d' }];
  await api.s3.send(new PutObjectTaggingCommand({ ...object, Tagging: { TagSet } }));
  expect(await tagsOf(api, { bucket, key: 'sdk' })).toEqual([['b', 'c d']]);
});

test('only the owner, of the expected bucket', async () => {
  await api.put(bucket, 'mine', 'bytes');
  const wanted = {
    method: 'PUT',
    path: taggingPath({ bucket, key: 'mine' }),
    body: taggingXml(BOTH),
  };
  const denied = { status: 403, code: 'AccessDenied' } as const;
  expectError(await api.send(wanted, await api.makeAccount()), denied);
  const headers = { 'x-amz-expected-bucket-owner': '999999999999' };
  expectError(await api.send({ ...wanted, headers }), denied);
  expect(await tagsOf(api, { bucket, key: 'mine' })).toEqual([]);
});
