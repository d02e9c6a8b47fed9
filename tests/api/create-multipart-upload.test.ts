// CreateMultipartUpload: the checksum rules, the headers that are kept for the object, and every refusal.
import { randomBytes } from 'node:crypto';
import { beforeAll, expect, test } from 'vitest';
import { childrenOf } from '../../src/base/xml/parse-xml.ts';
import { beginUpload, putPart, sendComplete } from '../support/servers/multipart.ts';
import { pathOf } from '../support/servers/raw-s3.ts';
import { expectError, expectStatus, fieldsOf, useApi, xmlOf } from '../support/servers/s3-api.ts';

const api = useApi();
let bucket: string;
beforeAll(async () => {
  bucket = await api.makeBucket();
});

const create = (key: string, headers: Record<string, string> = {}) =>
  api.send({ method: 'POST', path: `${pathOf(bucket, key)}?uploads`, headers });

async function uploadCount(key: string): Promise<number> {
  const answer = await api.send({
    method: 'GET',
    path: `/${bucket}?prefix=${encodeURIComponent(key)}&uploads`,
  });
  return childrenOf(xmlOf(answer), 'Upload').length;
}

test('an upload has an id, and its key has no object yet', async () => {
  const answer = await create('a b&c');
  expectStatus(answer, 200);
  expect(xmlOf(answer).name).toBe('InitiateMultipartUploadResult');
  const { UploadId, ...fields } = fieldsOf(answer);
  expect(fields).toEqual({ Bucket: bucket, Key: 'a b&c' });
  expect(UploadId).toMatch(/^[\w-]+$/);
  for (const name of ['x-amz-checksum-algorithm', 'x-amz-checksum-type'])
    expect(answer.headers).not.toHaveProperty(name);
  expectStatus(await api.send({ method: 'HEAD', path: pathOf(bucket, 'a b&c') }), 404);
  expect(await uploadCount('a b&c')).toBe(1);
});

test.each([
  ['CRC32', undefined, 'COMPOSITE'],
  ['CRC32C', 'FULL_OBJECT', 'FULL_OBJECT'],
  ['CRC64NVME', undefined, 'FULL_OBJECT'],
  ['SHA1', undefined, 'COMPOSITE'],
  ['SHA256', 'COMPOSITE', 'COMPOSITE'],
])('s3-behaviour 30: sums with %s, %s', async (algorithm, type, resolved) => {
  const answer = await create('sums', {
    'x-amz-checksum-algorithm': algorithm,
    ...(type !== undefined && { 'x-amz-checksum-type': type }),
  });
  expectStatus(answer, 200);
  expect(answer.headers).toMatchObject({
    'x-amz-checksum-algorithm': algorithm,
    'x-amz-checksum-type': resolved,
  });
});

test('its headers are the headers of the object', async () => {
  const headers = {
    'content-type': 'text/plain',
    'x-amz-meta-colour': 'red',
    'content-encoding': 'aws-chunked,gzip',
  };
  const upload = await beginUpload(api, { bucket, key: 'headers' }, headers);
  const etag = await putPart(api, upload, { partNumber: 1, body: randomBytes(3) });
  expectStatus(await sendComplete(api, upload, [{ partNumber: 1, etag }]), 200);
  expect((await api.send({ method: 'HEAD', path: pathOf(bucket, 'headers') })).headers).toMatchObject({
    'content-type': 'text/plain',
    'x-amz-meta-colour': 'red',
    'content-encoding': 'gzip',
  });
});

test.each<[string, Record<string, string>, Parameters<typeof expectError>[1]]>([
  ['an unknown algorithm', { 'x-amz-checksum-algorithm': 'MD4' }, { status: 400, code: 'InvalidRequest' }],
  ['a type alone', { 'x-amz-checksum-type': 'COMPOSITE' }, { status: 400, code: 'InvalidRequest' }],
  [
    'an unknown type',
    { 'x-amz-checksum-algorithm': 'CRC32', 'x-amz-checksum-type': 'PARTIAL' },
    { status: 400, code: 'InvalidRequest', Message: 'Value for x-amz-checksum-type header is invalid.' },
  ],
  [
    'a full-object SHA256',
    { 'x-amz-checksum-algorithm': 'SHA256', 'x-amz-checksum-type': 'FULL_OBJECT' },
    {
      status: 400,
      code: 'InvalidRequest',
      Message: 'The FULL_OBJECT checksum type cannot be used with the sha256 checksum algorithm.',
    },
  ],
  [
    'a composite CRC64NVME',
    { 'x-amz-checksum-algorithm': 'CRC64NVME', 'x-amz-checksum-type': 'COMPOSITE' },
    { status: 400, code: 'InvalidRequest' },
  ],
  [
    'too much metadata',
    { 'x-amz-meta-a': 'v'.repeat(2048) },
    { status: 400, code: 'MetadataTooLarge', Size: 2049, MaxSizeAllowed: 2048 },
  ],
  ['a tag that is none', { 'x-amz-tagging': 'a=!' }, { status: 400, code: 'InvalidTag' }],
])('%s is refused, and no upload is begun', async (name, headers, expected) => {
  expectError(await create(`refused ${name}`, headers), expected);
  expect(await uploadCount(`refused ${name}`)).toBe(0);
});

test('only the owner may begin uploads', async () => {
  const path = `/${bucket}/theirs?uploads`;
  const denied = { status: 403, code: 'AccessDenied' } as const;
  expectError(await api.send({ method: 'POST', path }, await api.makeAccount()), denied);
  expectError(await api.sendAnonymous({ method: 'POST', path }), denied);
  expect(await uploadCount('theirs')).toBe(0);
});
