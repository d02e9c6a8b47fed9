// HEAD of an object: all that GET says, no bytes, and errors without a body.
import { randomBytes } from 'node:crypto';
import { HeadObjectCommand, NotFound } from '@aws-sdk/client-s3';
import { beforeAll, expect, test } from 'vitest';
import { completeUpload } from '../support/servers/multipart.ts';
import { expectStatus, useApi } from '../support/servers/s3-api.ts';

const MiB = 1024 * 1024;
const api = useApi();
let bucket: string;
let etag: string;

const head = (path: string, headers: Record<string, string> = {}) =>
  api.send({ method: 'HEAD', path: `/${bucket}/${path}`, headers });

beforeAll(async () => {
  bucket = await api.makeBucket();
  etag = await api.put(bucket, 'ten', '0123456789', {
    'content-type': 'text/plain',
    'x-amz-meta-colour': 'red',
    'x-amz-checksum-crc32': 'poTHxg==',
  });
});

test('the head of the object', async () => {
  const answer = await head('ten', { 'x-amz-checksum-mode': 'ENABLED' });
  expectStatus(answer, 200);
  expect(answer.body).toHaveLength(0);
  expect(answer.headers).toMatchObject({
    etag: `"${etag}"`,
    'content-length': '10',
    'content-type': 'text/plain',
    'accept-ranges': 'bytes',
    'x-amz-meta-colour': 'red',
    'x-amz-checksum-crc32': 'poTHxg==',
    'x-amz-checksum-type': 'FULL_OBJECT',
  });
  expect(answer.headers).not.toHaveProperty('x-amz-version-id');
});

test('s3-behaviour 31: a range, a part, and replaced headers', async () => {
  expect(await head('ten', { range: 'bytes=2-4' })).toMatchObject({
    status: 206,
    headers: { 'content-length': '3', 'content-range': 'bytes 2-4/10' },
  });
  await completeUpload(api, { bucket, key: 'parts', parts: [randomBytes(5 * MiB), randomBytes(3)] });
  expect(await head('parts?partNumber=2')).toMatchObject({
    status: 206,
    headers: { 'content-length': '3', 'x-amz-mp-parts-count': '2' },
  });
  expect((await head('ten?response-content-type=text%2Fcsv')).headers['content-type']).toBe('text/csv');
});

test.each<[string, string, Record<string, string>, number]>([
  ['a missing key: NoSuchKey', 'nothing', {}, 404],
  ['a missing version: NoSuchVersion', `ten?versionId=${'A'.repeat(32)}`, {}, 404],
  ['an empty version id: InvalidArgument', 'ten?versionId=', {}, 400],
  ['part 0: InvalidArgument', 'ten?partNumber=0', {}, 400],
  ['s3-behaviour 31: a part beyond the last: InvalidPart', 'ten?partNumber=2', {}, 400],
  ['a part and a range: InvalidRequest', 'ten?partNumber=1', { range: 'bytes=0-1' }, 400],
  ['a range behind the end: InvalidRange', 'ten', { range: 'bytes=10-' }, 416],
  ['a failed condition: PreconditionFailed', 'ten', { 'if-match': '"0"' }, 412],
  ['nothing new: NotModified', 'ten', { 'if-none-match': '*' }, 304],
])('%s, without a body', async (_name, path, headers, status) => {
  const answer = await head(path, headers);
  expectStatus(answer, status);
  expect(answer.body).toHaveLength(0);
  expect(answer.headers['x-amz-request-id']).toMatch(/^[0-9A-F]{16}$/);
});

test('SDKs see a missing key as NotFound', async () => {
  const request = new HeadObjectCommand({ Bucket: bucket, Key: 'nothing' });
  await expect(api.s3.send(request)).rejects.toBeInstanceOf(NotFound);
});

test('other accounts learn nothing', async () => {
  const account = await api.makeAccount();
  for (const key of ['ten', 'nothing']) {
    const path = `/${bucket}/${key}`;
    expectStatus(await api.send({ method: 'HEAD', path }, account), 403);
    expectStatus(await api.sendAnonymous({ method: 'HEAD', path }), 403);
  }
});
