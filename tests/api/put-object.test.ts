// PUT of an object: what is stored, what is said of it, and every refusal, which leaves the key as it was.
import { createHash, randomBytes } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { PutObjectCommand } from '@aws-sdk/client-s3';
import { beforeAll, expect, test } from 'vitest';
import { answerOf, openRequest, pathOf } from '../support/servers/raw-s3.ts';
import { expectError, expectStatus, useApi } from '../support/servers/s3-api.ts';

const MiB = 1024 * 1024;
const GiB = 1024 * MiB;
const api = useApi();
let bucket: string;
beforeAll(async () => {
  bucket = await api.makeBucket();
});

const md5 = (body: Buffer | string) => createHash('md5').update(body).digest();
const put = (key: string, body: Buffer | string, headers: Record<string, string> = {}) =>
  api.send({ method: 'PUT', path: pathOf(bucket, key), body: Buffer.from(body), headers });
const get = (key: string) => api.send({ method: 'GET', path: pathOf(bucket, key) });

test.each([0, 1, 65_535, 65_536, 65_537, MiB - 1, MiB, MiB + 1, 4 * MiB + 3])(
  '%i bytes',
  async (sizeBytes) => {
    const body = randomBytes(sizeBytes);
    const answer = await put(`sizes/${sizeBytes}`, body);
    expectStatus(answer, 200);
    expect(answer.body).toHaveLength(0);
    expect(answer.headers.etag).toBe(`"${md5(body).toString('hex')}"`);
    expect(answer.headers).not.toHaveProperty('x-amz-version-id');
    expect((await get(`sizes/${sizeBytes}`)).body.equals(body)).toBe(true);
  },
);

test('an object replaces another, with all headers', async () => {
  await put('again', 'one', { 'x-amz-meta-a': '1', 'content-type': 'text/plain' });
  await put('again', 'two', { 'x-amz-meta-b': '2' });
  const answer = await get('again');
  expect(answer.body.toString()).toBe('two');
  expect(answer.headers).toMatchObject({ 'x-amz-meta-b': '2', 'content-type': 'binary/octet-stream' });
  expect(answer.headers).not.toHaveProperty('x-amz-meta-a');
});

test('a Content-MD5 and a checksum that fit', async () => {
  const headers = { 'content-md5': md5('0123456789').toString('base64'), 'x-amz-checksum-crc32': 'poTHxg==' };
  const answer = await put('digests', '0123456789', headers);
  expectStatus(answer, 200);
  expect(answer.headers).toMatchObject({
    'x-amz-checksum-crc32': 'poTHxg==',
    'x-amz-checksum-type': 'FULL_OBJECT',
  });
});

test('user metadata: bytes as sent, empty values, two kilobytes', async () => {
  const value = Buffer.from('ä€').toString('latin1');
  await put('metadata', 'x', { 'x-amz-meta-text': value, 'x-amz-meta-none': '' });
  expect((await get('metadata')).headers).toMatchObject({ 'x-amz-meta-text': value, 'x-amz-meta-none': '' });
  expectStatus(await put('metadata', 'x', { 'x-amz-meta-a': 'v'.repeat(2047) }), 200);
});

test.each([
  ['gzip, aws-chunked', 'gzip'],
  ['aws-chunked,gzip,br', 'gzip,br'],
  ['gzip,AWS-Chunked , br', 'gzip,br'],
  ['aws-chunked', undefined],
])('s3-behaviour 35: Content-Encoding: %s', async (sent, kept) => {
  await put('encoded', 'x', { 'content-encoding': sent });
  expect((await get('encoded')).headers['content-encoding']).toBe(kept);
});

test('storage class, encryption, private and website redirects change nothing', async () => {
  const answer = await put('accepted', 'x', {
    'x-amz-storage-class': 'STANDARD',
    'x-amz-server-side-encryption': 'AES256',
    'x-amz-acl': 'private',
    'x-amz-website-redirect-location': '/elsewhere',
  });
  expectStatus(answer, 200);
  const { headers } = await get('accepted');
  for (const name of [
    'x-amz-website-redirect-location',
    'x-amz-server-side-encryption',
    'x-amz-storage-class',
  ])
    expect(headers).not.toHaveProperty(name);
});

test('the SDK with its defaults', async () => {
  const answer = await api.s3.send(
    new PutObjectCommand({ Bucket: bucket, Key: 'sdk', Body: 'hello', Metadata: { colour: 'red' } }),
  );
  expect(answer.ChecksumCRC32).toBe('NhCmhg==');
  expect((await get('sdk')).headers['x-amz-meta-colour']).toBe('red');
});

test.each<[string, string, Record<string, string>, Parameters<typeof expectError>[1]]>([
  [
    'another Content-MD5',
    '0123456789',
    { 'content-md5': md5('x').toString('base64') },
    { status: 400, code: 'BadDigest' },
  ],
  [
    'another checksum',
    '0123456789',
    { 'x-amz-checksum-crc32': 'AAAAAA==' },
    { status: 400, code: 'BadDigest' },
  ],
  [
    'another SHA-256',
    '0123456789',
    { 'x-amz-content-sha256': createHash('sha256').update('x').digest('hex') },
    { status: 400, code: 'XAmzContentSHA256Mismatch' },
  ],
  [
    'a storage class that nobody knows',
    'x',
    { 'x-amz-storage-class': 'COLD' },
    { status: 400, code: 'InvalidStorageClass' },
  ],
  [
    'fewer bytes than announced',
    'a\r\n0123456789\r\n0\r\n\r\n',
    {
      'x-amz-content-sha256': 'STREAMING-UNSIGNED-PAYLOAD-TRAILER',
      'x-amz-decoded-content-length': '11',
    },
    { status: 400, code: 'IncompleteBody' },
  ],
  [
    'too much user metadata',
    'x',
    { 'x-amz-meta-a': 'v'.repeat(2048) },
    { status: 400, code: 'MetadataTooLarge', Size: 2049, MaxSizeAllowed: 2048 },
  ],
])('%s is refused, and the key stays as it was', async (name, body, headers, expected) => {
  const [fresh, there] = [`refused/${name}`, `there/${name}`];
  await put(there, 'before');
  for (const key of [fresh, there]) expectError(await put(key, body, headers), expected);
  expectStatus(await get(fresh), 404);
  expect((await get(there)).body.toString()).toBe('before');
});

test('more than 5 GiB in one piece is refused before it is sent', async () => {
  const sent = openRequest(api.server, {
    method: 'PUT',
    path: pathOf(bucket, 'huge'),
    headers: { 'content-length': String(5 * GiB + 1) },
  });
  sent.on('error', () => {});
  sent.flushHeaders();
  const head = await answerOf(sent);
  const answer = { status: head.statusCode ?? 0, headers: head.headers, body: await buffer(head) };
  sent.destroy();
  expectError(answer, {
    status: 400,
    code: 'EntityTooLarge',
    ProposedSize: 5 * GiB + 1,
    MaxSizeAllowed: 5 * GiB,
  });
  expectStatus(await get('huge'), 404);
});

test('keys of 1024 bytes at most', async () => {
  expectStatus(await put('k'.repeat(1024), 'x'), 200);
  expectStatus(await put('ä'.repeat(512), 'x'), 200);
  for (const key of ['k'.repeat(1025), `${'ä'.repeat(512)}k`])
    expectError(await put(key, 'x'), {
      status: 400,
      code: 'KeyTooLongError',
      Size: 1025,
      MaxSizeAllowed: 1024,
    });
});

test('only the owner may write, and only into an existing bucket', async () => {
  const account = await api.makeAccount();
  const path = pathOf(bucket, 'theirs');
  const body = Buffer.from('x');
  const denied = { status: 403, code: 'AccessDenied' } as const;
  expectError(await api.send({ method: 'PUT', path, body }, account), denied);
  expectError(await api.sendAnonymous({ method: 'PUT', path, headers: { 'content-length': '0' } }), denied);
  expectStatus(await get('theirs'), 404);
  const nowhere = await api.send({ method: 'PUT', path: '/no-such-bucket-here/x', body });
  expectError(nowhere, { status: 404, code: 'NoSuchBucket' });
});
