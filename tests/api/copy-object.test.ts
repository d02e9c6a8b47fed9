// CopyObject: what comes along, what is replaced, and every refusal, which leaves the target as it was. Not here: copies of
// more than 5 GB (large-objects.test.ts).
import { createHash, randomBytes } from 'node:crypto';
import { CopyObjectCommand } from '@aws-sdk/client-s3';
import { beforeAll, describe, expect, test } from 'vitest';
import { beginUpload, completeUpload, uploadPath } from '../support/servers/multipart.ts';
import { type Access, pathOf } from '../support/servers/raw-s3.ts';
import { expectError, expectStatus, fieldsOf, useApi } from '../support/servers/s3-api.ts';
import { type Tags, tagsOf } from '../support/servers/tagging.ts';
import { makeVersionedBucket, versionOf } from '../support/servers/versions.ts';

const MiB = 1024 * 1024;
const api = useApi();
let bucket: string;
let etag: string;
beforeAll(async () => {
  bucket = await api.makeBucket();
  etag = await api.put(bucket, 'source', '0123456789', {
    'content-type': 'text/plain',
    'x-amz-meta-colour': 'red',
    'x-amz-checksum-crc32': 'poTHxg==',
  });
});

const copy = (key: string, source: string, headers: Record<string, string> = {}, as?: Access) =>
  api.send(
    { method: 'PUT', path: pathOf(bucket, key), headers: { 'x-amz-copy-source': source, ...headers } },
    as,
  );
const get = (key: string, headers: Record<string, string> = {}) =>
  api.send({ method: 'GET', path: pathOf(bucket, key), headers });
const CHECKSUMS = { 'x-amz-checksum-mode': 'ENABLED' };

test('bytes, headers and checksum are copied', async () => {
  const answer = await copy('plain', `${bucket}/source`);
  expectStatus(answer, 200);
  expect(fieldsOf(answer)).toMatchObject({
    ETag: `"${etag}"`,
    ChecksumCRC32: 'poTHxg==',
    ChecksumType: 'FULL_OBJECT',
    LastModified: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.000Z$/),
  });
  for (const name of ['x-amz-version-id', 'x-amz-copy-source-version-id'])
    expect(answer.headers).not.toHaveProperty(name);
  const copied = await get('plain', CHECKSUMS);
  expect(copied.body.toString()).toBe('0123456789');
  expect(copied.headers).toMatchObject({
    etag: `"${etag}"`,
    'content-type': 'text/plain',
    'x-amz-meta-colour': 'red',
    'x-amz-checksum-crc32': 'poTHxg==',
  });
});

test('COPY ignores new headers, REPLACE takes all of them', async () => {
  const headers = { 'x-amz-meta-size': 'big', 'content-type': 'text/csv' };
  await copy('kept', `${bucket}/source`, { ...headers, 'x-amz-metadata-directive': 'COPY' });
  expect((await get('kept')).headers).toMatchObject({
    'x-amz-meta-colour': 'red',
    'content-type': 'text/plain',
  });
  expect((await get('kept')).headers).not.toHaveProperty('x-amz-meta-size');
  await copy('replaced', `${bucket}/source`, { ...headers, 'x-amz-metadata-directive': 'REPLACE' });
  expect((await get('replaced')).headers).toMatchObject({
    'x-amz-meta-size': 'big',
    'content-type': 'text/csv',
  });
  expect((await get('replaced')).headers).not.toHaveProperty('x-amz-meta-colour');
});

test('service 4.2: a link to the original data, which stays when the source is deleted, across buckets too', async () => {
  const other = await api.makeBucket();
  const body = randomBytes(2 * MiB + 1);
  await api.put(other, 'big', body);
  expectStatus(await copy('from-other', `/${other}/big`), 200);
  expectStatus(await api.send({ method: 'DELETE', path: `/${other}/big` }), 204);
  expect((await get('from-other')).body.equals(body)).toBe(true);
});

test('a multipart object keeps its parts and its ETag', async () => {
  const parts = [randomBytes(5 * MiB), randomBytes(10)];
  const whole = await completeUpload(api, { bucket, key: 'multi', parts });
  expectStatus(await copy('multi-copy', `${bucket}/multi`), 200);
  const second = await api.send({ method: 'GET', path: `/${bucket}/multi-copy?partNumber=2` });
  expect(second.body.equals(Buffer.concat(parts.slice(1)))).toBe(true);
  expect(second.headers.etag).toBe(`"${whole.etag}"`);
});

test('another checksum is computed', async () => {
  const answer = await copy('sha', `${bucket}/source`, { 'x-amz-checksum-algorithm': 'SHA256' });
  expectStatus(answer, 200);
  const sha256 = createHash('sha256').update('0123456789').digest('base64');
  expect(fieldsOf(answer).ChecksumSHA256).toBe(sha256);
  expect((await get('sha', CHECKSUMS)).headers['x-amz-checksum-sha256']).toBe(sha256);
});

describe('tags', () => {
  beforeAll(() => api.put(bucket, 'tagged', 'x', { 'x-amz-tagging': 'a=1&b=2' }));
  const source = () => `${bucket}/tagged`;
  const tags = (key: string) => tagsOf(api, { bucket, key });
  const REPLACE = { 'x-amz-tagging-directive': 'REPLACE' };
  const BOTH: Tags = [
    ['a', '1'],
    ['b', '2'],
  ];

  test.each([
    ['come along', {}, BOTH],
    ['come along with other headers', { 'x-amz-metadata-directive': 'REPLACE' }, BOTH],
    [
      'come along, whatever the request has',
      { 'x-amz-tagging-directive': 'COPY', 'x-amz-tagging': 'c=3' },
      BOTH,
    ],
    ['are replaced', { ...REPLACE, 'x-amz-tagging': 'c=3' }, [['c', '3']]],
    ['are replaced by none', REPLACE, []],
  ] as [string, Record<string, string>, Tags][])('%s', async (_name, headers, expected) => {
    expectStatus(await copy('with tags', source(), headers), 200);
    expect(await tags('with tags')).toEqual(expected);
    expect(await tags('tagged')).toEqual(BOTH);
  });

  test('of the copied version', async () => {
    const versioned = await makeVersionedBucket(api);
    const put = (tagging: string) =>
      api.send({ method: 'PUT', path: `/${versioned}/k`, headers: { 'x-amz-tagging': tagging } });
    const first = versionOf(await put('n=1'));
    await put('n=2');
    await copy('older', `${versioned}/k?versionId=${first}`);
    expect(await tags('older')).toEqual([['n', '1']]);
  });

  test('onto itself: tags are no change for AWS, but they are copied with one', async () => {
    const copySelf = (headers: Record<string, string>) =>
      copy('self tagged', `${bucket}/self tagged`, headers);
    await api.put(bucket, 'self tagged', 'x', { 'x-amz-tagging': 'a=1' });
    expectError(await copySelf({ ...REPLACE, 'x-amz-tagging': 'c=3' }), {
      status: 400,
      code: 'InvalidRequest',
    });
    expectStatus(await copySelf({ 'x-amz-metadata-directive': 'REPLACE', 'x-amz-meta-a': '1' }), 200);
    expect(await tags('self tagged')).toEqual([['a', '1']]);
    const change = { 'x-amz-metadata-directive': 'REPLACE', ...REPLACE };
    expectStatus(await copySelf({ ...change, 'x-amz-tagging': 'c=3' }), 200);
    expect(await tags('self tagged')).toEqual([['c', '3']]);
    expectStatus(await copySelf(change), 200);
    expect(await tags('self tagged')).toEqual([]);
  });
});

test.each(['a b+c%d', 'ä/ö?ü#&=', '日本語', '/lead', 'a?versionId=x'])(
  'a source key like %j',
  async (key) => {
    await api.put(bucket, key, key);
    const encoded = `${bucket}/${encodeURIComponent(key)}`;
    expectStatus(await copy('from-odd', encoded), 200);
    expect((await get('from-odd')).body.toString()).toBe(key);
  },
);

test('versionId=null names the source in a bucket without versions', async () => {
  expectStatus(await copy('by-version', `${bucket}/source?versionId=null`), 200);
});

test('the SDK', async () => {
  const request = new CopyObjectCommand({ Bucket: bucket, Key: 'sdk', CopySource: `${bucket}/source` });
  expect((await api.s3.send(request)).CopyObjectResult?.ETag).toBe(`"${etag}"`);
});

test('onto itself only with a change, and never loses a byte', async () => {
  const body = randomBytes(MiB + 5);
  const own = await api.put(bucket, 'self', body, { 'x-amz-meta-a': '1' });
  expectError(await copy('self', `${bucket}/self`), { status: 400, code: 'InvalidRequest' });
  for (const [round, headers] of [
    { 'x-amz-metadata-directive': 'REPLACE', 'x-amz-meta-b': '2' },
    { 'x-amz-storage-class': 'STANDARD' },
    { 'x-amz-checksum-algorithm': 'CRC32C' },
  ].entries()) {
    const answer = await copy('self', `${bucket}/self`, headers);
    expectStatus(answer, 200);
    expect(fieldsOf(answer).ETag, `round ${round}`).toBe(`"${own}"`);
    expect((await get('self')).body.equals(body), `round ${round}`).toBe(true);
  }
  const { headers } = await get('self', CHECKSUMS);
  expect(headers).toMatchObject({ 'x-amz-meta-b': '2', 'x-amz-checksum-crc32c': expect.any(String) });
  expect(headers).not.toHaveProperty('x-amz-meta-a');
});

test.each<[string, () => string, Record<string, string>, Parameters<typeof expectError>[1]]>([
  ['a missing source', () => `${bucket}/nothing`, {}, { status: 404, code: 'NoSuchKey', Key: 'nothing' }],
  ['a missing source bucket', () => 'no-such-bucket-here/x', {}, { status: 404, code: 'NoSuchBucket' }],
  [
    'a missing source version',
    () => `${bucket}/source?versionId=${'A'.repeat(32)}`,
    {},
    { status: 404, code: 'NoSuchVersion' },
  ],
  [
    'an empty source',
    () => '',
    {},
    { status: 400, code: 'InvalidArgument', ArgumentName: 'x-amz-copy-source' },
  ],
  ['a source without a key', () => bucket, {}, { status: 400, code: 'InvalidArgument' }],
  ['a source badly encoded', () => `${bucket}/%zz`, {}, { status: 400, code: 'InvalidArgument' }],
  [
    'an empty source version',
    () => `${bucket}/source?versionId=`,
    {},
    { status: 400, code: 'InvalidArgument', Message: 'Version id cannot be the empty string' },
  ],
  [
    'an unknown directive',
    () => `${bucket}/source`,
    { 'x-amz-metadata-directive': 'KEEP' },
    { status: 400, code: 'InvalidArgument', ArgumentName: 'x-amz-metadata-directive', ArgumentValue: 'KEEP' },
  ],
  [
    'an unknown tagging directive',
    () => `${bucket}/source`,
    { 'x-amz-tagging-directive': 'MERGE' },
    { status: 400, code: 'InvalidArgument', ArgumentName: 'x-amz-tagging-directive', ArgumentValue: 'MERGE' },
  ],
  [
    'a tag that is none',
    () => `${bucket}/source`,
    { 'x-amz-tagging-directive': 'REPLACE', 'x-amz-tagging': 'a=!' },
    { status: 400, code: 'InvalidTag', TagKey: 'a', TagValue: '!' },
  ],
  [
    'an unknown checksum',
    () => `${bucket}/source`,
    { 'x-amz-checksum-algorithm': 'MD4' },
    { status: 400, code: 'InvalidRequest' },
  ],
  [
    'too much metadata',
    () => `${bucket}/source`,
    { 'x-amz-metadata-directive': 'REPLACE', 'x-amz-meta-a': 'v'.repeat(2048) },
    { status: 400, code: 'MetadataTooLarge' },
  ],
  [
    'a condition on the source that does not hold',
    () => `${bucket}/source`,
    { 'x-amz-copy-source-if-match': `"0"` },
    { status: 412, code: 'PreconditionFailed', Condition: 'x-amz-copy-source-If-Match' },
  ],
  [
    'another owner of the source expected',
    () => `${bucket}/source`,
    { 'x-amz-source-expected-bucket-owner': '999999999999' },
    { status: 403, code: 'AccessDenied' },
  ],
])('%s is refused, and the target stays as it was', async (_name, source, headers, expected) => {
  await api.put(bucket, 'target', 'before');
  expectError(await copy('target', source(), headers), expected);
  expect((await get('target')).body.toString()).toBe('before');
});

test('the expected owner of the source, by account id or canonical id', async () => {
  const account = await api.makeAccount();
  const theirs = await api.makeBucket(account);
  const put = { method: 'PUT', path: `/${theirs}/own`, body: Buffer.from('own') };
  expectStatus(await api.send(put, account), 200);
  const upload = await beginUpload(
    { ...api, send: (wanted) => api.send(wanted, account) },
    {
      bucket: theirs,
      key: 'parts',
    },
  );
  for (const path of [`/${theirs}/copied`, uploadPath(upload, 'partNumber=1&')]) {
    for (const [owner, status] of [
      [account.id, 200],
      [account.canonicalId, 200],
      ['0'.repeat(64), 403],
    ] as const) {
      const headers = {
        'x-amz-copy-source': `${theirs}/own`,
        'x-amz-source-expected-bucket-owner': owner,
        'x-amz-expected-bucket-owner': account.canonicalId,
      };
      expectStatus(await api.send({ method: 'PUT', path, headers }, account), status);
    }
  }
});

test('a source of another account is refused, and so is a target', async () => {
  const account = await api.makeAccount();
  const theirs = await api.makeBucket(account);
  const own = { method: 'PUT', path: `/${theirs}/secret`, body: Buffer.from('secret') };
  expectStatus(await api.send(own, account), 200);
  const denied = { status: 403, code: 'AccessDenied' } as const;
  expectError(await copy('stolen', `${theirs}/secret`), denied);
  expectError(await copy('stolen', `${theirs}/nothing`), denied);
  expectError(await copy('stolen', `${bucket}/source`, {}, account), denied);
  expectStatus(await get('stolen'), 404);
});
