// UploadPart: parts, their digests, and every refusal, which leaves the upload as it was.
import { createHash, randomBytes } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { beforeAll, expect, test } from 'vitest';
import { childrenOf, textOf } from '../../src/base/xml/parse-xml.ts';
import {
  beginUpload,
  putPart,
  sendPart,
  type UploadAddress,
  uploadPath,
} from '../support/servers/multipart.ts';
import { answerOf, openRequest } from '../support/servers/raw-s3.ts';
import { expectError, expectStatus, useApi, xmlOf } from '../support/servers/s3-api.ts';

const MiB = 1024 * 1024;
const GiB = 1024 * MiB;
const api = useApi();
let bucket: string;
beforeAll(async () => {
  bucket = await api.makeBucket();
});

const md5 = (body: Buffer | string) => createHash('md5').update(body).digest();

async function partsOf(upload: UploadAddress): Promise<[number, string][]> {
  const answer = await api.send({ method: 'GET', path: uploadPath(upload) });
  return childrenOf(xmlOf(answer), 'Part').map((part) => [
    Number(textOf(part, 'PartNumber')),
    (textOf(part, 'ETag') ?? '').replaceAll('"', ''),
  ]);
}

test('a part is answered with its MD5; the same number again replaces it', async () => {
  const upload = await beginUpload(api, { bucket, key: 'parts' });
  const bodies = [randomBytes(5 * MiB), randomBytes(10), randomBytes(20)];
  const [first = Buffer.alloc(0), second = Buffer.alloc(0), third = Buffer.alloc(0)] = bodies;
  expect(await putPart(api, upload, { partNumber: 1, body: first })).toBe(md5(first).toString('hex'));
  expect(await putPart(api, upload, { partNumber: 10_000, body: second })).toBe(md5(second).toString('hex'));
  expect(await putPart(api, upload, { partNumber: 10_000, body: third })).toBe(md5(third).toString('hex'));
  expect(await partsOf(upload)).toEqual([
    [1, md5(first).toString('hex')],
    [10_000, md5(third).toString('hex')],
  ]);
});

test('s3-behaviour 30: checksums are returned', async () => {
  const upload = await beginUpload(api, { bucket, key: 'sums' }, { 'x-amz-checksum-algorithm': 'CRC32' });
  const answer = await sendPart(api, upload, {
    partNumber: 1,
    body: Buffer.from('0123456789'),
    headers: { 'x-amz-checksum-crc32': 'poTHxg==', 'content-md5': md5('0123456789').toString('base64') },
  });
  expectStatus(answer, 200);
  expect(answer.headers['x-amz-checksum-crc32']).toBe('poTHxg==');
});

test('an upload without an algorithm takes parts with any checksum', async () => {
  const upload = await beginUpload(api, { bucket, key: 'any' });
  const headers = { 'x-amz-checksum-crc32': 'poTHxg==' };
  expectStatus(await sendPart(api, upload, { partNumber: 1, body: Buffer.from('0123456789'), headers }), 200);
});

test('a full-object upload takes parts without a checksum', async () => {
  const headers = { 'x-amz-checksum-algorithm': 'CRC32', 'x-amz-checksum-type': 'FULL_OBJECT' };
  const upload = await beginUpload(api, { bucket, key: 'full' }, headers);
  expectStatus(await sendPart(api, upload, { partNumber: 1, body: Buffer.from('0123456789') }), 200);
});

test.each<[string, number | string, Record<string, string>, Parameters<typeof expectError>[1]]>([
  [
    'another Content-MD5',
    1,
    { 'content-md5': md5('x').toString('base64'), 'x-amz-checksum-crc32': 'poTHxg==' },
    { status: 400, code: 'BadDigest' },
  ],
  ['another checksum', 1, { 'x-amz-checksum-crc32': 'AAAAAA==' }, { status: 400, code: 'BadDigest' }],
  [
    'another SHA-256',
    1,
    {
      'x-amz-content-sha256': createHash('sha256').update('x').digest('hex'),
      'x-amz-checksum-crc32': 'poTHxg==',
    },
    { status: 400, code: 'XAmzContentSHA256Mismatch' },
  ],
  [
    'another algorithm than the upload',
    1,
    { 'x-amz-checksum-crc32c': 'KAwGng==' },
    {
      status: 400,
      code: 'InvalidRequest',
      Message: 'Checksum Type mismatch occurred, expected checksum Type: crc32, actual checksum Type: crc32c',
    },
  ],
  [
    'no checksum in a composite upload',
    1,
    {},
    {
      status: 400,
      code: 'InvalidRequest',
      Message: 'Checksum Type mismatch occurred, expected checksum Type: crc32, actual checksum Type: null',
    },
  ],
  ...[0, -1, 10_001, 'one', ''].map(
    (partNumber): [string, number | string, Record<string, string>, Parameters<typeof expectError>[1]] => [
      `part ${partNumber}`,
      partNumber,
      { 'x-amz-checksum-crc32': 'poTHxg==' },
      {
        status: 400,
        code: 'InvalidArgument',
        Message: 'Part number must be an integer between 1 and 10000, inclusive',
        ArgumentName: 'partNumber',
        ArgumentValue: String(partNumber),
      },
    ],
  ),
])('%s is refused, and no part is stored', async (_name, partNumber, headers, expected) => {
  const upload = await beginUpload(api, { bucket, key: 'refused' }, { 'x-amz-checksum-algorithm': 'CRC32' });
  const answer = await api.send({
    method: 'PUT',
    path: uploadPath(upload, `partNumber=${partNumber}&`),
    body: Buffer.from('0123456789'),
    headers,
  });
  expectError(answer, expected);
  expect(await partsOf(upload)).toEqual([]);
});

test('fewer bytes than announced are refused, and no part is stored', async () => {
  const upload = await beginUpload(api, { bucket, key: 'short' });
  const answer = await sendPart(api, upload, {
    partNumber: 1,
    body: Buffer.from('a\r\n0123456789\r\n0\r\n\r\n'),
    headers: {
      'x-amz-content-sha256': 'STREAMING-UNSIGNED-PAYLOAD-TRAILER',
      'x-amz-decoded-content-length': '11',
    },
  });
  expectError(answer, { status: 400, code: 'IncompleteBody' });
  expect(await partsOf(upload)).toEqual([]);
});

test('more than 5 GiB is refused before it is sent', async () => {
  const upload = await beginUpload(api, { bucket, key: 'huge' });
  const sent = openRequest(api.server, {
    method: 'PUT',
    path: uploadPath(upload, 'partNumber=1&'),
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
});

test('a missing upload, and one of another key', async () => {
  const upload = await beginUpload(api, { bucket, key: 'here' });
  const body = Buffer.from('x');
  const missing = { status: 404, code: 'NoSuchUpload' } as const;
  for (const uploadId of ['x', '', '0'.repeat(44)])
    expectError(await sendPart(api, { ...upload, uploadId }, { partNumber: 1, body }), missing);
  expectError(await sendPart(api, { ...upload, key: 'elsewhere' }, { partNumber: 1, body }), missing);
  const other = await api.makeBucket();
  expectError(await sendPart(api, { ...upload, bucket: other }, { partNumber: 1, body }), missing);
});

test('only the owner may upload', async () => {
  const upload = await beginUpload(api, { bucket, key: 'mine' });
  const path = uploadPath(upload, 'partNumber=1&');
  const answer = await api.send({ method: 'PUT', path, body: Buffer.from('x') }, await api.makeAccount());
  expectError(answer, { status: 403, code: 'AccessDenied' });
  expect(await partsOf(upload)).toEqual([]);
});
