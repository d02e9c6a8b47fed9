// CompleteMultipartUpload: the object that it makes, repeating it, and every refusal, after which the upload goes on.
import { createHash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  beginUpload,
  completeXml,
  type ListedPart,
  putPart,
  sendComplete,
  type UploadAddress,
  uploadPath,
} from '../support/servers/multipart.ts';
import { ownServerTest } from '../support/servers/own-server-test.ts';
import { pathOf } from '../support/servers/raw-s3.ts';
import { expectError, expectStatus, fieldsOf, useApi, xmlOf } from '../support/servers/s3-api.ts';

const MiB = 1024 * 1024;
const PART_1 = randomBytes(5 * MiB);
const PART_2 = randomBytes(MiB + 3);
const api = useApi({ settings: { domain: 'store.test' } });
let bucket: string;
beforeAll(async () => {
  bucket = await api.makeBucket();
});

const md5 = (body: Buffer) => createHash('md5').update(body).digest();
const crc = (body: Buffer) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(crc32(body));
  return bytes;
};
const get = (key: string, headers: Record<string, string> = {}) =>
  api.send({ method: 'GET', path: pathOf(bucket, key), headers });

/** An upload of two parts, ready to be completed. */
async function prepare(
  key: string,
  headers: Record<string, string> = {},
  partHeaders: (body: Buffer) => Record<string, string> = () => ({}),
): Promise<{ upload: UploadAddress; parts: [ListedPart, ListedPart] }> {
  const upload = await beginUpload(api, { bucket, key }, headers);
  const put = async (partNumber: number, body: Buffer): Promise<ListedPart> => ({
    partNumber,
    etag: await putPart(api, upload, { partNumber, body, headers: partHeaders(body) }),
  });
  return { upload, parts: [await put(1, PART_1), await put(2, PART_2)] };
}

const COMPOSITE = { 'x-amz-checksum-algorithm': 'CRC32' };
const FULL_OBJECT = { ...COMPOSITE, 'x-amz-checksum-type': 'FULL_OBJECT' };
const crcHeader = (body: Buffer) => ({ 'x-amz-checksum-crc32': crc(body).toString('base64') });
const crcElement = (body: Buffer) => `<ChecksumCRC32>${crc(body).toString('base64')}</ChecksumCRC32>`;
const withSums = ([first, second]: [ListedPart, ListedPart]): ListedPart[] => [
  { ...first, more: crcElement(PART_1) },
  { ...second, more: crcElement(PART_2) },
];
const COMPOSITE_SUM = `${crc(Buffer.concat([crc(PART_1), crc(PART_2)])).toString('base64')}-2`;
const FULL_SUM = crc(Buffer.concat([PART_1, PART_2])).toString('base64');

test('the parts become one object, whose ETag is the MD5 of MD5s', async () => {
  const { upload, parts } = await prepare('whole ä');
  const answer = await sendComplete(api, upload, parts);
  expectStatus(answer, 200);
  const etag = `"${createHash('md5').update(md5(PART_1)).update(md5(PART_2)).digest('hex')}-2"`;
  expect(xmlOf(answer).name).toBe('CompleteMultipartUploadResult');
  expect(fieldsOf(answer)).toEqual({
    Location: `${api.server.endpoint}/${bucket}/whole%20%C3%A4`,
    Bucket: bucket,
    Key: 'whole ä',
    ETag: etag,
  });
  const object = await get('whole ä');
  expect(object.body.equals(Buffer.concat([PART_1, PART_2]))).toBe(true);
  expect(object.headers.etag).toBe(etag);
  expectError(await api.send({ method: 'GET', path: uploadPath(upload) }), {
    status: 404,
    code: 'NoSuchUpload',
  });
});

test('its location is the address that the client uses for the bucket', async () => {
  const upload = await beginUpload(api, { bucket, key: 'dir/virtual' });
  const etag = await putPart(api, upload, { partNumber: 1, body: Buffer.from('x') });
  const answer = await api.send({
    method: 'POST',
    path: `/dir/virtual?uploadId=${upload.uploadId}`,
    headers: { host: `${bucket}.store.test` },
    body: completeXml([{ partNumber: 1, etag }]),
  });
  expectStatus(answer, 200);
  expect(fieldsOf(answer).Location).toBe(`http://${bucket}.store.test/dir/virtual`);
});

test('part numbers may have gaps, and parts may be left out', async () => {
  const upload = await beginUpload(api, { bucket, key: 'gaps' });
  await putPart(api, upload, { partNumber: 1, body: PART_2 });
  const first = { partNumber: 3, etag: await putPart(api, upload, { partNumber: 3, body: PART_1 }) };
  const last = { partNumber: 9999, etag: await putPart(api, upload, { partNumber: 9999, body: PART_2 }) };
  expectStatus(await sendComplete(api, upload, [first, last]), 200);
  expect((await get('gaps')).body.equals(Buffer.concat([PART_1, PART_2]))).toBe(true);
  // partNumber of a GET is the number that the part was uploaded with.
  const head = (partNumber: number) =>
    api.send({ method: 'HEAD', path: `/${bucket}/gaps?partNumber=${partNumber}` });
  expect((await head(9999)).headers['content-length']).toBe(String(PART_2.length));
  expectStatus(await head(2), 400);
});

test('a single small part is enough', async () => {
  const upload = await beginUpload(api, { bucket, key: 'small' });
  const etag = await putPart(api, upload, { partNumber: 1, body: Buffer.from('x') });
  const answer = await sendComplete(api, upload, [{ partNumber: 1, etag }]);
  expect(fieldsOf(answer).ETag).toMatch(/-1"$/);
});

test('s3-behaviour 29: it is repeatable, even after the object was replaced', async () => {
  const { upload, parts } = await prepare('again', COMPOSITE, crcHeader);
  const first = await sendComplete(api, upload, withSums(parts));
  expectStatus(first, 200);
  const second = await sendComplete(api, upload, withSums(parts));
  expectStatus(second, 200);
  expect(fieldsOf(second)).toEqual(fieldsOf(first));
  await api.put(bucket, 'again', 'overwritten');
  const third = await sendComplete(api, upload, withSums(parts));
  expectStatus(third, 200);
  expect(fieldsOf(third)).toEqual(fieldsOf(first));
  expect((await get('again')).body.toString()).toBe('overwritten');
  const other = await sendComplete(api, upload, parts.slice(0, 1));
  expectError(other, { status: 404, code: 'NoSuchUpload' });
});

describe('checksums', () => {
  test('s3-behaviour 30: a composite checksum of the parts', async () => {
    const { upload, parts } = await prepare('composite', COMPOSITE, crcHeader);
    const answer = await sendComplete(api, upload, withSums(parts), {
      'x-amz-checksum-crc32': COMPOSITE_SUM,
      'x-amz-checksum-type': 'COMPOSITE',
    });
    expectStatus(answer, 200);
    expect(fieldsOf(answer)).toMatchObject({ ChecksumCRC32: COMPOSITE_SUM, ChecksumType: 'COMPOSITE' });
    for (const method of ['GET', 'HEAD']) {
      const read = (headers: Record<string, string>) =>
        api.send({ method, path: `/${bucket}/composite`, headers });
      expect((await read({ 'x-amz-checksum-mode': 'ENABLED' })).headers).toMatchObject({
        'x-amz-checksum-crc32': COMPOSITE_SUM,
        'x-amz-checksum-type': 'COMPOSITE',
      });
      const unasked = await read({});
      expect(unasked.headers).not.toHaveProperty('x-amz-checksum-crc32');
      expect(unasked.headers).not.toHaveProperty('x-amz-checksum-type');
    }
    const part = await api.send({
      method: 'GET',
      path: `/${bucket}/composite?partNumber=2`,
      headers: { 'x-amz-checksum-mode': 'ENABLED' },
    });
    expect(part.headers['x-amz-checksum-crc32']).toBe(crc(PART_2).toString('base64'));
  });

  test('a checksum of the whole object, combined from the parts', async () => {
    const { upload, parts } = await prepare('full', FULL_OBJECT, crcHeader);
    const answer = await sendComplete(api, upload, parts, { 'x-amz-checksum-crc32': FULL_SUM });
    expectStatus(answer, 200);
    expect(fieldsOf(answer)).toMatchObject({ ChecksumCRC32: FULL_SUM, ChecksumType: 'FULL_OBJECT' });
    const { headers } = await get('full', { 'x-amz-checksum-mode': 'ENABLED' });
    expect(headers['x-amz-checksum-crc32']).toBe(FULL_SUM);
  });
});

test('a part that is listed twice in a row counts once', async () => {
  const { upload, parts } = await prepare('twice');
  const [first, second] = parts;
  expectStatus(await sendComplete(api, upload, [first, first, second, second]), 200);
  expect((await get('twice')).body.length).toBe(PART_1.length + PART_2.length);
});

test('a size that fits', async () => {
  const { upload, parts } = await prepare('sized');
  const headers = { 'x-amz-mp-object-size': String(PART_1.length + PART_2.length) };
  expectStatus(await sendComplete(api, upload, parts, headers), 200);
});

type Refused = [
  name: string,
  send: (upload: UploadAddress, parts: [ListedPart, ListedPart]) => ReturnType<typeof sendComplete>,
  expected: Parameters<typeof expectError>[1],
];

const sendBody = (upload: UploadAddress, body: string) =>
  api.send({ method: 'POST', path: uploadPath(upload), body: Buffer.from(body) });

const REFUSED: Refused[] = [
  [
    'parts out of order',
    (upload, [first, second]) => sendComplete(api, upload, [second, first]),
    { status: 400, code: 'InvalidPartOrder' },
  ],
  [
    'a part twice, with another one between',
    (upload, [first, second]) => sendComplete(api, upload, [first, second, first]),
    { status: 400, code: 'InvalidPartOrder' },
  ],
  [
    'a part that is not there',
    (upload, [first]) => sendComplete(api, upload, [first, { partNumber: 3, etag: '0'.repeat(32) }]),
    { status: 400, code: 'InvalidPart', PartNumber: 3, ETag: '0'.repeat(32) },
  ],
  [
    'another ETag',
    (upload, [first, second]) => sendComplete(api, upload, [first, { ...second, etag: first.etag }]),
    { status: 400, code: 'InvalidPart', PartNumber: 2 },
  ],
  [
    'a small part before the last',
    async (upload, [first]) => {
      const etag = await putPart(api, upload, { partNumber: 3, body: PART_2 });
      return sendComplete(api, upload, [
        first,
        { partNumber: 2, etag: md5(PART_2).toString('hex') },
        { partNumber: 3, etag },
      ]);
    },
    {
      status: 400,
      code: 'EntityTooSmall',
      ProposedSize: PART_2.length,
      MinSizeAllowed: 5 * MiB,
      PartNumber: 2,
      ETag: md5(PART_2).toString('hex'),
    },
  ],
  [
    'another size',
    (upload, parts) => sendComplete(api, upload, parts, { 'x-amz-mp-object-size': '1' }),
    { status: 400, code: 'InvalidRequest' },
  ],
  [
    'a size that is none',
    (upload, parts) => sendComplete(api, upload, parts, { 'x-amz-mp-object-size': '-1' }),
    { status: 400, code: 'InvalidRequest' },
  ],
  [
    'part 0',
    (upload) => sendComplete(api, upload, [{ partNumber: 0, etag: 'x' }]),
    { status: 400, code: 'InvalidArgument' },
  ],
  [
    'part 10001',
    (upload) => sendComplete(api, upload, [{ partNumber: 10_001, etag: 'x' }]),
    { status: 400, code: 'InvalidPart' },
  ],
  [
    'part "one"',
    (upload) => sendComplete(api, upload, [{ partNumber: 'one', etag: 'x' }]),
    { status: 400, code: 'MalformedXML' },
  ],
  ['no parts', (upload) => sendComplete(api, upload, []), { status: 400, code: 'MalformedXML' }],
  [
    '10,001 parts',
    (upload, [first]) =>
      sendComplete(
        api,
        upload,
        Array.from({ length: 10_001 }, () => first),
      ),
    { status: 400, code: 'MalformedXML' },
  ],
  ['no body', (upload) => sendBody(upload, ''), { status: 400, code: 'InvalidRequest' }],
  ['no XML', (upload) => sendBody(upload, 'parts: 1, 2'), { status: 400, code: 'MalformedXML' }],
  ['another root', (upload) => sendBody(upload, '<Delete/>'), { status: 400, code: 'MalformedXML' }],
  [
    'a condition that does not hold',
    (upload, parts) => sendComplete(api, upload, parts, { 'if-match': '*' }),
    { status: 404, code: 'NoSuchKey' },
  ],
];

test.each(REFUSED)('%s is refused; the upload can still be completed', async (name, send, expected) => {
  const { upload, parts } = await prepare(`refused ${name}`);
  expectError(await send(upload, parts), expected);
  expectStatus(await get(`refused ${name}`), 404);
  expectStatus(await sendComplete(api, upload, parts), 200);
});

const BAD_CHECKSUMS: [
  string,
  Record<string, string>,
  (parts: [ListedPart, ListedPart]) => ListedPart[],
  Record<string, string>,
][] = [
  ['no checksums in a composite upload', COMPOSITE, (parts) => parts, {}],
  [
    'another checksum of a part',
    COMPOSITE,
    ([first, second]) => [
      { ...first, more: crcElement(PART_2) },
      { ...second, more: crcElement(PART_2) },
    ],
    {},
  ],
  [
    'a checksum of another algorithm',
    COMPOSITE,
    (parts) => parts.map((part) => ({ ...part, more: '<ChecksumCRC32C>AAAAAA==</ChecksumCRC32C>' })),
    {},
  ],
  [
    'a checksum of a part that is none',
    COMPOSITE,
    (parts) => parts.map((part) => ({ ...part, more: '<ChecksumCRC32>x</ChecksumCRC32>' })),
    {},
  ],
  ['another type of checksum', COMPOSITE, withSums, { 'x-amz-checksum-type': 'FULL_OBJECT' }],
  ['another composite checksum', COMPOSITE, withSums, { 'x-amz-checksum-crc32': 'AAAAAA==-2' }],
  ['another checksum of the whole', FULL_OBJECT, withSums, { 'x-amz-checksum-crc32': 'AAAAAA==' }],
  ['a checksum of the whole that is none', FULL_OBJECT, withSums, { 'x-amz-checksum-crc32': 'x' }],
];

test.each(BAD_CHECKSUMS)('s3-behaviour 30: %s: BadDigest', async (name, headers, list, completeHeaders) => {
  const { upload, parts } = await prepare(name, headers, crcHeader);
  expectError(await sendComplete(api, upload, list(parts), completeHeaders), {
    status: 400,
    code: 'BadDigest',
  });
  expectStatus(await get(name), 404);
  expectStatus(await sendComplete(api, upload, withSums(parts)), 200);
});

test('a body of 4 MiB at most', async () => {
  const upload = await beginUpload(api, { bucket, key: 'long' });
  const padding = ' '.repeat(4 * MiB);
  const answer = await sendBody(upload, completeXml([]).toString().replace('><', `>${padding}<`));
  expect(answer.status).toBe(400);
});

test('a missing upload', async () => {
  const missing = { bucket, key: 'x', uploadId: '0'.repeat(44) };
  const answer = await sendComplete(api, missing, [{ partNumber: 1, etag: 'x' }]);
  expectError(answer, { status: 404, code: 'NoSuchUpload', UploadId: missing.uploadId });
});

/** As long as no upload needs: what the head says is looked at before such a document is read. */
const LONG = ' '.repeat(60 * 1024);
const padded = (parts: readonly ListedPart[], inner = '') =>
  completeXml(parts).toString().replaceAll('</Part>', `${LONG}${inner}</Part>`);

test('a missing upload is refused before a long document is read', async () => {
  const missing = { bucket, key: 'x', uploadId: '0'.repeat(44) };
  const ampersands = `<CompleteMultipartUpload>${'&'.repeat(MiB)}</CompleteMultipartUpload>`;
  expectError(await sendBody(missing, ampersands), { status: 404, code: 'NoSuchUpload' });
  const upload = await beginUpload(api, { bucket, key: 'ampersands' });
  expectError(await sendBody(upload, ampersands), { status: 400, code: 'MalformedXML' });
  expectError(await sendBody({ ...upload, key: 'other' }, ampersands), {
    status: 404,
    code: 'NoSuchUpload',
  });
});

test('s3-behaviour 29: a long document is repeatable, too', async () => {
  const { upload, parts } = await prepare('long and again');
  const first = await sendBody(upload, padded(parts));
  expectStatus(first, 200);
  const second = await sendBody(upload, padded(parts));
  expect([second.status, fieldsOf(second)]).toEqual([200, fieldsOf(first)]);
  expectError(await sendBody(upload, padded(parts, '&')), { status: 400, code: 'MalformedXML' });
});

test('only the owner may complete', async () => {
  const { upload, parts } = await prepare('mine');
  const account = await api.makeAccount();
  const answer = await api.send(
    { method: 'POST', path: uploadPath(upload), body: completeXml(parts) },
    account,
  );
  expectError(answer, { status: 403, code: 'AccessDenied' });
  expectStatus(await get('mine'), 404);
});

ownServerTest('more than 5 TiB is refused', { timeout: 120_000 }, async () => {
  // Links: 64 MiB, 80 times, are 5 GiB; 1024 of these are 5 TiB.
  await api.put(bucket, 'level0', Buffer.alloc(64 * MiB));
  const counts = [80, 1025];
  for (const [level, count] of counts.entries()) {
    const upload = await beginUpload(api, { bucket, key: `level${level + 1}` });
    const copyPart = async (partNumber: number): Promise<ListedPart> => {
      const answer = await api.send({
        method: 'PUT',
        path: uploadPath(upload, `partNumber=${partNumber}&`),
        headers: { 'x-amz-copy-source': `${bucket}/level${level}` },
      });
      expectStatus(answer, 200);
      return { partNumber, etag: fieldsOf(answer).ETag?.replaceAll('"', '') ?? '' };
    };
    const listed: ListedPart[] = [];
    while (listed.length < count) {
      const next = Array.from(
        { length: Math.min(25, count - listed.length) },
        (_, at) => listed.length + at + 1,
      );
      listed.push(...(await Promise.all(next.map(copyPart))));
    }
    const answer = await sendComplete(api, upload, listed);
    if (level < counts.length - 1) expectStatus(answer, 200);
    else expectError(answer, { status: 400, code: 'EntityTooLarge', MaxSizeAllowed: 5 * MiB * MiB });
  }
});
