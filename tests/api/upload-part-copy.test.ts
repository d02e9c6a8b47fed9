// UploadPartCopy: parts that are ranges of objects, and every refusal, which leaves the upload as it was.
import { createHash, randomBytes } from 'node:crypto';
import { beforeAll, expect, test } from 'vitest';
import { childrenOf } from '../../src/base/xml/parse-xml.ts';
import { beginUpload, sendComplete, type UploadAddress, uploadPath } from '../support/servers/multipart.ts';
import type { Access } from '../support/servers/raw-s3.ts';
import { expectError, expectStatus, fieldsOf, useApi, xmlOf } from '../support/servers/s3-api.ts';

const MiB = 1024 * 1024;
const api = useApi();
const source = randomBytes(6 * MiB + 11);
let bucket: string;
beforeAll(async () => {
  bucket = await api.makeBucket();
  await api.put(bucket, 'source', source);
});

function copyPart(
  upload: UploadAddress,
  part: { partNumber?: number | string; source?: string; range?: string; headers?: Record<string, string> },
  as?: Access,
) {
  const { partNumber = 1, range, headers = {} } = part;
  return api.send(
    {
      method: 'PUT',
      path: uploadPath(upload, `partNumber=${partNumber}&`),
      headers: {
        'x-amz-copy-source': part.source ?? `${bucket}/source`,
        ...(range !== undefined && { 'x-amz-copy-source-range': range }),
        ...headers,
      },
    },
    as,
  );
}

async function partCount(upload: UploadAddress): Promise<number> {
  return childrenOf(xmlOf(await api.send({ method: 'GET', path: uploadPath(upload) })), 'Part').length;
}

test('the whole of an object, with its ETag, and ranges of it', async () => {
  const upload = await beginUpload(api, { bucket, key: 'assembled' });
  const ranges: [number, number][] = [
    [0, source.length],
    [MiB - 1, 6 * MiB + 5],
    [3, 4],
  ];
  const listed = [];
  for (const [index, [start, end]] of ranges.entries()) {
    const isWhole = end - start === source.length;
    const answer = await copyPart(upload, {
      partNumber: index + 1,
      ...(!isWhole && { range: `bytes=${start}-${end - 1}` }),
    });
    expectStatus(answer, 200);
    expect(xmlOf(answer).name).toBe('CopyPartResult');
    const { ETag = '', LastModified } = fieldsOf(answer);
    expect(ETag).toMatch(/^"[0-9a-f]{32}"$/);
    if (isWhole) expect(ETag).toBe(`"${createHash('md5').update(source).digest('hex')}"`);
    expect(LastModified).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.000Z$/);
    listed.push({ partNumber: index + 1, etag: ETag.replaceAll('"', '') });
  }
  expectStatus(await sendComplete(api, upload, listed), 200);
  const whole = Buffer.concat(ranges.map(([start, end]) => source.subarray(start, end)));
  const answer = await api.send({ method: 'GET', path: `/${bucket}/assembled` });
  expect(answer.body.equals(whole)).toBe(true);
});

test.each([
  ['CRC32', 'FULL_OBJECT'],
  ['CRC32', 'COMPOSITE'],
  ['CRC64NVME', 'FULL_OBJECT'],
  ['SHA256', 'COMPOSITE'],
])('a %s upload (%s) sums what it copies', async (algorithm, type) => {
  const headers = { 'x-amz-checksum-algorithm': algorithm, 'x-amz-checksum-type': type };
  const upload = await beginUpload(api, { bucket, key: `sum ${algorithm} ${type}` }, headers);
  const answer = await copyPart(upload, { range: 'bytes=5-6000000' });
  expectStatus(answer, 200);
  const fields = fieldsOf(answer);
  const sum = fields[`Checksum${algorithm}`];
  expect(sum).toMatch(/^[A-Za-z0-9+/]+=*$/);
  if (algorithm === 'SHA256')
    expect(sum).toBe(createHash('sha256').update(source.subarray(5, 6_000_001)).digest('base64'));
  const part = { partNumber: 1, etag: fields.ETag?.replaceAll('"', '') ?? '' };
  const more = `<Checksum${algorithm}>${sum}</Checksum${algorithm}>`;
  const completed = await sendComplete(api, upload, [{ ...part, more }]);
  expectStatus(completed, 200);
  // Of one part, the checksum of the whole is that of the part.
  if (type === 'FULL_OBJECT') expect(fieldsOf(completed)[`Checksum${algorithm}`]).toBe(sum);
});

test('a part of the named source version', async () => {
  const upload = await beginUpload(api, { bucket, key: 'as it was' });
  const etag = createHash('md5').update(source).digest('hex');
  expectStatus(await copyPart(upload, { headers: { 'x-amz-copy-source-if-match': `"${etag}"` } }), 200);
});

test('an empty object is a part', async () => {
  await api.put(bucket, 'empty', '');
  const upload = await beginUpload(api, { bucket, key: 'of nothing' });
  const answer = await copyPart(upload, { source: `${bucket}/empty` });
  expectStatus(answer, 200);
});

test.each<[string, Parameters<typeof copyPart>[1], Parameters<typeof expectError>[1]]>([
  ...['bytes=0-', 'bytes=-5', '0-5', 'bytes=5-0', 'bytes=0-1,3-4', 'bytes=a-b', ''].map(
    (range): [string, Parameters<typeof copyPart>[1], Parameters<typeof expectError>[1]] => [
      `s3-behaviour 32: the range ${JSON.stringify(range)}`,
      { range },
      { status: 400, code: 'InvalidArgument', ArgumentName: 'x-amz-copy-source-range' },
    ],
  ),
  [
    's3-behaviour 32: a range beyond the source',
    { range: `bytes=0-${source.length}` },
    { status: 400, code: 'InvalidRange', ActualObjectSize: source.length },
  ],
  ['part 0', { partNumber: 0 }, { status: 400, code: 'InvalidArgument', ArgumentName: 'partNumber' }],
  ['part 10001', { partNumber: 10_001 }, { status: 400, code: 'InvalidArgument' }],
  ['no source', { source: '' }, { status: 400, code: 'InvalidArgument', ArgumentName: 'x-amz-copy-source' }],
  ['a missing source bucket', { source: 'no-such-bucket-here/x' }, { status: 404, code: 'NoSuchBucket' }],
  [
    'a source that is still the one known',
    { headers: { 'x-amz-copy-source-if-none-match': '*' } },
    { status: 412, code: 'PreconditionFailed', Condition: 'x-amz-copy-source-If-None-Match' },
  ],
  [
    'a source that is no longer the one meant',
    { headers: { 'x-amz-copy-source-if-match': '"0"' } },
    { status: 412, code: 'PreconditionFailed', Condition: 'x-amz-copy-source-If-Match' },
  ],
])('%s is refused, and no part is stored', async (_name, part, expected) => {
  const upload = await beginUpload(api, { bucket, key: 'refused' });
  expectError(await copyPart(upload, part), expected);
  expect(await partCount(upload)).toBe(0);
});

test('a missing source', async () => {
  const upload = await beginUpload(api, { bucket, key: 'refused' });
  const missing = await copyPart(upload, { source: `${bucket}/nothing` });
  expectError(missing, { status: 404, code: 'NoSuchKey', Key: 'nothing' });
  const version = await copyPart(upload, { source: `${bucket}/source?versionId=${'A'.repeat(32)}` });
  expectError(version, { status: 404, code: 'NoSuchVersion' });
  expect(await partCount(upload)).toBe(0);
});

test('a source of more than 5 GiB needs a range', async () => {
  // 64 MiB, 80 times: 5 GiB of links, and a byte.
  await api.put(bucket, 'base', Buffer.alloc(64 * MiB));
  const upload = await beginUpload(api, { bucket, key: 'above 5 GiB' });
  const listed = [];
  for (let partNumber = 1; partNumber <= 81; partNumber++) {
    const isLast = partNumber === 81;
    const part = { partNumber, source: `${bucket}/base`, ...(isLast && { range: 'bytes=0-0' }) };
    const answer = await copyPart(upload, part);
    expectStatus(answer, 200);
    listed.push({ partNumber, etag: fieldsOf(answer).ETag?.replaceAll('"', '') ?? '' });
  }
  expectStatus(await sendComplete(api, upload, listed), 200);
  const target = await beginUpload(api, { bucket, key: 'refused' });
  const large = `${bucket}/above%205%20GiB`;
  expectError(await copyPart(target, { source: large }), { status: 400, code: 'InvalidRequest' });
  expect(await partCount(target)).toBe(0);
  const range = `bytes=1-${5 * 1024 * MiB}`;
  expectStatus(await copyPart(target, { source: large, range }), 200);
});

test('a missing upload', async () => {
  const upload = { bucket, key: 'x', uploadId: '0'.repeat(44) };
  expectError(await copyPart(upload, {}), { status: 404, code: 'NoSuchUpload' });
});

test('a source of another account is refused', async () => {
  const account = await api.makeAccount();
  const theirs = await api.makeBucket(account);
  const own = { method: 'PUT', path: `/${theirs}/secret`, body: Buffer.from('secret') };
  expectStatus(await api.send(own, account), 200);
  const upload = await beginUpload(api, { bucket, key: 'stolen' });
  const denied = { status: 403, code: 'AccessDenied' } as const;
  expectError(await copyPart(upload, { source: `${theirs}/secret` }), denied);
  expectError(await copyPart(upload, {}, account), denied);
  expect(await partCount(upload)).toBe(0);
});
