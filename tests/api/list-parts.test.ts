// ListParts.
import { createHash } from 'node:crypto';
import { beforeAll, expect, test } from 'vitest';
import { childrenOf, textOf } from '../../src/base/xml/parse-xml.ts';
import { beginUpload, putPart, type UploadAddress, uploadPath } from '../support/servers/multipart.ts';
import { expectError, expectStatus, fieldsOf, useApi, xmlOf } from '../support/servers/s3-api.ts';

const api = useApi();
const NUMBERS = [1, 2, 9, 10_000];
let bucket: string;
let upload: UploadAddress;
beforeAll(async () => {
  bucket = await api.makeBucket();
  upload = await beginUpload(api, { bucket, key: 'parts &' });
  for (const partNumber of NUMBERS)
    await putPart(api, upload, { partNumber, body: Buffer.from(`part ${partNumber}`) });
});

async function list(query: string) {
  const answer = await api.send({ method: 'GET', path: uploadPath(upload, query) });
  expectStatus(answer, 200);
  const numbers = childrenOf(xmlOf(answer), 'Part').map((part) => Number(textOf(part, 'PartNumber')));
  return { answer, numbers, fields: fieldsOf(answer) };
}

test('all parts with all of their fields', async () => {
  const { answer, numbers, fields } = await list('');
  expect(xmlOf(answer).name).toBe('ListPartsResult');
  expect(numbers).toEqual(NUMBERS);
  expect(fields).toEqual({
    Bucket: bucket,
    Key: 'parts &',
    UploadId: upload.uploadId,
    StorageClass: 'STANDARD',
    PartNumberMarker: '0',
    NextPartNumberMarker: '10000',
    MaxParts: '1000',
    IsTruncated: 'false',
  });
  const [first] = childrenOf(xmlOf(answer), 'Part');
  const of = (name: string) => (first === undefined ? undefined : textOf(first, name));
  expect(of('ETag')).toBe(`"${createHash('md5').update('part 1').digest('hex')}"`);
  expect(of('Size')).toBe('6');
  expect(of('LastModified')).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.000Z$/);
  for (const who of ['Initiator', 'Owner']) {
    const [identity] = childrenOf(xmlOf(answer), who);
    expect(identity?.children.map(({ name }) => name)).toEqual(['ID', 'DisplayName']);
    expect(identity && textOf(identity, 'ID')).toMatch(/^[0-9a-f]{64}$/);
    expect(identity && textOf(identity, 'DisplayName')).toBe('root');
  }
});

test('page by page', async () => {
  const found: number[] = [];
  let marker = '0';
  for (let isTruncated = true; isTruncated; ) {
    const { numbers, fields } = await list(`max-parts=3&part-number-marker=${marker}&`);
    found.push(...numbers);
    expect(fields).toMatchObject({ MaxParts: '3', PartNumberMarker: marker });
    marker = fields.NextPartNumberMarker ?? '';
    isTruncated = fields.IsTruncated === 'true';
  }
  expect(found).toEqual(NUMBERS);
});

test('no parts: zero requested, or none uploaded', async () => {
  expect((await list('max-parts=0&')).numbers).toEqual([]);
  expect((await list('part-number-marker=10000&')).numbers).toEqual([]);
  expect((await list('max-parts=5000&')).fields.MaxParts).toBe('1000');
});

test('checksums of parts and of the upload', async () => {
  const headers = { 'x-amz-checksum-algorithm': 'CRC32' };
  const summed = await beginUpload(api, { bucket, key: 'summed' }, headers);
  await putPart(api, summed, {
    partNumber: 1,
    body: Buffer.from('0123456789'),
    headers: { 'x-amz-checksum-crc32': 'poTHxg==' },
  });
  const answer = await api.send({ method: 'GET', path: uploadPath(summed) });
  expect(fieldsOf(answer)).toMatchObject({ ChecksumAlgorithm: 'CRC32', ChecksumType: 'COMPOSITE' });
  const [part] = childrenOf(xmlOf(answer), 'Part');
  expect(part && textOf(part, 'ChecksumCRC32')).toBe('poTHxg==');
});

test.each([
  ['max-parts=x&', 'max-parts', 'x'],
  ['max-parts=-1&', 'max-parts', '-1'],
  ['part-number-marker=x&', 'part-number-marker', 'x'],
  ['part-number-marker=-1&', 'part-number-marker', '-1'],
])('%s is refused', async (query, ArgumentName, ArgumentValue) => {
  const answer = await api.send({ method: 'GET', path: uploadPath(upload, query) });
  expectError(answer, { status: 400, code: 'InvalidArgument', ArgumentName, ArgumentValue });
});

test('a missing upload, and one of another account', async () => {
  const path = uploadPath({ ...upload, uploadId: '0'.repeat(44) });
  expectError(await api.send({ method: 'GET', path }), { status: 404, code: 'NoSuchUpload' });
  const denied = { status: 403, code: 'AccessDenied' } as const;
  const other = await api.makeAccount();
  expectError(await api.send({ method: 'GET', path: uploadPath(upload) }, other), denied);
  expectError(await api.sendAnonymous({ method: 'GET', path: uploadPath(upload) }), denied);
});
