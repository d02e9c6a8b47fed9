// GET of an object: bytes, ranges, parts, conditions, what the reader may choose, and every refusal.
import { randomBytes } from 'node:crypto';
import { GetObjectCommand } from '@aws-sdk/client-s3';
import { beforeAll, expect, test } from 'vitest';
import { completeNumbered, completeUpload } from '../support/servers/multipart.ts';
import { sendBare } from '../support/servers/raw-s3.ts';
import { expectError, expectStatus, useApi } from '../support/servers/s3-api.ts';
import { presign } from '../support/servers/s3-client.ts';

const MiB = 1024 * 1024;
const UNKNOWN_VERSION = 'A'.repeat(32);
const api = useApi({ settings: { domain: 'store.test' } });
const big = randomBytes(3 * MiB + 7);
let bucket: string;
let etag: string;

const get = (path: string, headers: Record<string, string> = {}) =>
  api.send({ method: 'GET', path: `/${bucket}/${path}`, headers });

beforeAll(async () => {
  bucket = await api.makeBucket();
  etag = await api.put(bucket, 'ten', '0123456789', {
    'content-type': 'text/plain',
    'cache-control': 'max-age=60',
    'content-disposition': 'inline',
    'content-encoding': 'identity',
    'content-language': 'de',
    expires: 'never, ever',
    'x-amz-meta-colour': 'red',
    'x-amz-meta-Empty': '',
    'x-amz-checksum-crc32': 'poTHxg==',
  });
  await api.put(bucket, 'empty', '');
  await api.put(bucket, 'big', big);
});

test.each([
  ['text/html', 'path', true],
  ['image/svg+xml', 'path', true],
  ['application/pdf, text/html', 'path', true],
  ['unknown', 'path', true],
  ['text/html', 'host', false],
  ['application/pdf', 'path', false],
  ['text/plain', 'path', false],
  ['image/png', 'path', false],
])(
  'what a browser might run as a page is sandboxed: %s, bucket in the %s: %s',
  async (type, style, isGuarded) => {
    await api.put(bucket, 'page', '<p>', { 'content-type': type });
    const host = `${bucket}.store.test`;
    const answer = await (style === 'path'
      ? get('page')
      : api.send({ method: 'GET', path: '/page', headers: { host } }));
    expectStatus(answer, 200);
    expect(answer.headers['content-security-policy'] !== undefined).toBe(isGuarded);
  },
);

test('a type that the reader chooses counts', async () => {
  const answer = await get('ten?response-content-type=text%2Fhtml');
  expect(answer.headers['content-security-policy']).toMatch(/^sandbox allow-downloads/);
});

test('the whole object with all of its headers', async () => {
  const answer = await get('ten');
  expectStatus(answer, 200);
  expect(answer.body.toString()).toBe('0123456789');
  expect(answer.headers).toMatchObject({
    etag: `"${etag}"`,
    'content-length': '10',
    'content-type': 'text/plain',
    'cache-control': 'max-age=60',
    'content-disposition': 'inline',
    'content-encoding': 'identity',
    'content-language': 'de',
    expires: 'never, ever',
    'accept-ranges': 'bytes',
    'x-amz-meta-colour': 'red',
    'x-amz-meta-empty': '',
  });
  expect(Date.parse(answer.headers['last-modified'] ?? '')).toBeGreaterThan(Date.now() - 60_000);
  for (const name of ['x-amz-version-id', 'x-amz-checksum-crc32', 'content-range', 'x-amz-mp-parts-count'])
    expect(answer.headers).not.toHaveProperty(name);
});

test('an empty object, and one of several chunks', async () => {
  const empty = await get('empty');
  expect(empty).toMatchObject({ status: 200, headers: { 'content-length': '0' } });
  expect(empty.headers['content-type']).toBe('binary/octet-stream');
  expect((await get('big')).body.equals(big)).toBe(true);
});

test.each([
  ['bytes=0-4', '01234', 'bytes 0-4/10'],
  ['bytes=9-', '9', 'bytes 9-9/10'],
  ['bytes=-3', '789', 'bytes 7-9/10'],
  ['bytes=-100', '0123456789', 'bytes 0-9/10'],
  ['bytes=5-100', '56789', 'bytes 5-9/10'],
])('Range: %s', async (range, body, contentRange) => {
  const answer = await get('ten', { range, 'x-amz-checksum-mode': 'ENABLED' });
  expectStatus(answer, 206);
  expect(answer.body.toString()).toBe(body);
  expect(answer.headers).toMatchObject({
    'content-range': contentRange,
    'content-length': String(body.length),
    etag: `"${etag}"`,
  });
  // A checksum of the whole would be taken for one of these bytes.
  expect(answer.headers).not.toHaveProperty('x-amz-checksum-crc32');
});

test.each(['bytes=0-1,3-4', 'bytes=5-4', 'bytes=x-', 'lines=0-1'])(
  'Range: %s asks for all',
  async (range) => {
    const answer = await get('ten', { range });
    expectStatus(answer, 200);
    expect(answer.body.toString()).toBe('0123456789');
  },
);

test('ranges across chunks', async () => {
  for (const [first, last] of [
    [0, 0],
    [MiB - 1, MiB],
    [MiB - 3, 2 * MiB + 3],
    [3 * MiB, 3 * MiB + 6],
  ] as const) {
    const answer = await get('big', { range: `bytes=${first}-${last}` });
    expect(answer.body.equals(big.subarray(first, last + 1)), `${first}-${last}`).toBe(true);
  }
});

test('If-Range: the range of a known object, the whole of a new one', async () => {
  const range = 'bytes=0-1';
  const known = await get('ten', { range, 'if-range': `"${etag}"` });
  expect([known.status, known.body.toString()]).toEqual([206, '01']);
  const dated = await get('ten', { range, 'if-range': known.headers['last-modified'] ?? '' });
  expect(dated.status).toBe(206);
  const changed = await get('ten', { range, 'if-range': '"0"' });
  expect([changed.status, changed.body.toString()]).toEqual([200, '0123456789']);
});

const YESTERDAY = new Date(Date.now() - 86_400_000).toUTCString();
const TOMORROW = new Date(Date.now() + 86_400_000).toUTCString();

test.each<[string, () => Record<string, string>, number]>([
  ['If-Match: it', () => ({ 'if-match': `"${etag}"` }), 200],
  ['If-Match: *', () => ({ 'if-match': '*' }), 200],
  ['If-Match: without quotes', () => ({ 'if-match': etag }), 200],
  ['If-Match: another', () => ({ 'if-match': '"0"' }), 412],
  ['If-None-Match: it', () => ({ 'if-none-match': `"${etag}"` }), 304],
  ['If-None-Match: another', () => ({ 'if-none-match': '"0"' }), 200],
  ['If-Modified-Since: yesterday', () => ({ 'if-modified-since': YESTERDAY }), 200],
  ['If-Modified-Since: tomorrow is ignored', () => ({ 'if-modified-since': TOMORROW }), 200],
  ['If-Modified-Since: no date', () => ({ 'if-modified-since': 'soon' }), 200],
  ['If-Unmodified-Since: yesterday', () => ({ 'if-unmodified-since': YESTERDAY }), 412],
  ['If-Unmodified-Since: tomorrow', () => ({ 'if-unmodified-since': TOMORROW }), 200],
  [
    'If-Match outranks If-Unmodified-Since',
    () => ({ 'if-match': `"${etag}"`, 'if-unmodified-since': YESTERDAY }),
    200,
  ],
  [
    'If-None-Match outranks If-Modified-Since',
    () => ({ 'if-none-match': '"0"', 'if-modified-since': TOMORROW }),
    200,
  ],
])('%s', async (_name, headers, status) => {
  const answer = await get('ten', headers());
  if (status === 412) expectError(answer, { status, code: 'PreconditionFailed' });
  else expectStatus(answer, status);
});

test('a 304 has the validators and no body', async () => {
  const answer = await get('ten', { 'if-none-match': '*' });
  expectStatus(answer, 304);
  expect(answer.body).toHaveLength(0);
  expect(answer.headers).toMatchObject({
    etag: `"${etag}"`,
    'cache-control': 'max-age=60',
    expires: 'never, ever',
  });
  expect(answer.headers['last-modified']).toBeDefined();
  expect(answer.headers).not.toHaveProperty('content-type');
});

test('s3-behaviour 30: checksums only on request', async () => {
  expect((await get('ten')).headers).not.toHaveProperty('x-amz-checksum-crc32');
  const answer = await get('ten', { 'x-amz-checksum-mode': 'ENABLED' });
  expect(answer.headers).toMatchObject({
    'x-amz-checksum-crc32': 'poTHxg==',
    'x-amz-checksum-type': 'FULL_OBJECT',
  });
  const viaSdk = await api.s3.send(new GetObjectCommand({ Bucket: bucket, Key: 'ten' }));
  expect(await viaSdk.Body?.transformToString()).toBe('0123456789');
  expect(viaSdk.ChecksumCRC32).toBe('poTHxg==');
});

test.each(['bytes=-8', 'bytes=-1'])('Range of an empty object: %s is all of it', async (range) => {
  const source = { 'x-amz-copy-source': `${bucket}/empty` };
  expectStatus(await api.send({ method: 'PUT', path: `/${bucket}/empty-copy`, headers: source }), 200);
  await completeUpload(api, { bucket, key: 'empty-parts', parts: [Buffer.alloc(0)] });
  const headers = { host: new URL(api.server.endpoint).host };
  for (const method of ['GET', 'HEAD']) {
    for (const key of ['empty', 'empty-copy', 'empty-parts']) {
      const path = `/${bucket}/${key}`;
      const signing = { credentials: api.server, nowMs: Date.now(), expiresSeconds: 60 };
      const link = presign({ method, uri: path, headers, ...signing });
      for (const answer of [
        await api.send({ method, path, headers: { range } }),
        await sendBare(api.server, { method, path: link, headers: { ...headers, range } }),
      ]) {
        expectStatus(answer, 200);
        expect(answer.headers).toMatchObject({ 'content-length': '0' });
        expect(answer.headers['content-range']).toBeUndefined();
      }
      const refused = await api.send({ method, path, headers: { range: 'bytes=0-' } });
      expectStatus(refused, 416);
    }
  }
});

test('parts that were uploaded as 3 and 77 are read by these numbers', async () => {
  const parts = [
    { partNumber: 3, body: randomBytes(5 * MiB) },
    { partNumber: 77, body: randomBytes(MiB) },
  ];
  await completeNumbered(api, { bucket, key: 'gaps', parts });
  for (const { partNumber, body } of parts) {
    const answer = await get(`gaps?partNumber=${partNumber}`);
    expectStatus(answer, 206);
    expect(answer.body.equals(body)).toBe(true);
    expect(answer.headers['x-amz-mp-parts-count']).toBe('2');
  }
  for (const partNumber of [1, 2, 4, 78]) {
    expectError(await get(`gaps?partNumber=${partNumber}`), { status: 400, code: 'InvalidPart' });
  }
});

test('s3-behaviour 31: parts of a multipart object, and part 1 of a plain one', async () => {
  const parts = [randomBytes(5 * MiB), randomBytes(MiB)];
  const whole = await completeUpload(api, { bucket, key: 'parts', parts });
  for (const [index, part] of parts.entries()) {
    const answer = await get(`parts?partNumber=${index + 1}`);
    expectStatus(answer, 206);
    expect(answer.body.equals(part)).toBe(true);
    expect(answer.headers).toMatchObject({ etag: `"${whole.etag}"`, 'x-amz-mp-parts-count': '2' });
  }
  expect((await get('parts?partNumber=2')).headers['content-range']).toBe(
    `bytes ${5 * MiB}-${6 * MiB - 1}/${6 * MiB}`,
  );
  expectError(await get('parts?partNumber=3'), { status: 400, code: 'InvalidPart' });
  const plain = await get('ten?partNumber=1');
  expectStatus(plain, 206);
  expect(plain.body.toString()).toBe('0123456789');
  expectStatus(await get('empty?partNumber=1'), 200);
});

test('the request may replace six headers by the query', async () => {
  const query = [
    'response-content-type=text%2Fhtml',
    'response-content-language=fr',
    'response-expires=now',
    'response-cache-control=no-store',
    'response-content-disposition=attachment%3B%20filename%3D%22%C3%A4.txt%22',
    'response-content-encoding=br',
  ].join('&');
  const answer = await get(`ten?${query}`);
  expectStatus(answer, 200);
  expect(answer.headers).toMatchObject({
    'content-type': 'text/html',
    'content-language': 'fr',
    expires: 'now',
    'cache-control': 'no-store',
    'content-disposition': Buffer.from('attachment; filename="ä.txt"').toString('latin1'),
    'content-encoding': 'br',
  });
});

test('response- headers of the request are returned without their prefix', async () => {
  const answer = await get('ten', {
    'response-content-type': 'text/csv',
    'response-x-own': 'yes',
    'response-content-length': '3',
    'response-set-cookie': 'a=b',
    'response-connection': 'close',
    'response-x-amz-version-id': 'forged',
  });
  expectStatus(answer, 200);
  expect(answer.headers).toMatchObject({
    'content-type': 'text/csv',
    'x-own': 'yes',
    'content-length': '10',
  });
  for (const name of ['set-cookie', 'x-amz-version-id']) expect(answer.headers).not.toHaveProperty(name);
});

test('keys of odd bytes', async () => {
  for (const key of ['a b+c%d', 'ä/ö?ü#&=', '../..//x', '日本語', "it's (1)*!~", '\u0001\n\u007f', '/lead']) {
    await api.put(bucket, key, key);
    const viaSdk = await api.s3.send(new GetObjectCommand({ Bucket: bucket, Key: key }));
    expect(await viaSdk.Body?.transformToString()).toBe(key);
  }
});

test('versionId=null is the object of a bucket without versions', async () => {
  const answer = await get('ten?versionId=null');
  expectStatus(answer, 200);
  expect(answer.headers).not.toHaveProperty('x-amz-version-id');
});

test.each<[string, string, Record<string, string>, Parameters<typeof expectError>[1]]>([
  ['a missing key', 'nothing', {}, { status: 404, code: 'NoSuchKey', Key: 'nothing' }],
  [
    'a version that is not there',
    `ten?versionId=${UNKNOWN_VERSION}`,
    {},
    { status: 404, code: 'NoSuchVersion', Key: 'ten', VersionId: UNKNOWN_VERSION },
  ],
  [
    'an empty version id',
    'ten?versionId=',
    {},
    { status: 400, code: 'InvalidArgument', Message: 'Version id cannot be the empty string' },
  ],
  [
    'a malformed version id',
    'ten?versionId=no',
    {},
    { status: 400, code: 'InvalidArgument', ArgumentName: 'versionId', ArgumentValue: 'no' },
  ],
  [
    'a range behind the end',
    'ten',
    { range: 'bytes=10-' },
    { status: 416, code: 'InvalidRange', ActualObjectSize: 10, RangeRequested: 'bytes=10-' },
  ],
  ['no last byte', 'ten', { range: 'bytes=-0' }, { status: 416, code: 'InvalidRange' }],
  ['a range of nothing', 'empty', { range: 'bytes=0-' }, { status: 416, code: 'InvalidRange' }],
  ['a part beyond the last', 'ten?partNumber=2', {}, { status: 400, code: 'InvalidPart' }],
  [
    'part 0',
    'ten?partNumber=0',
    {},
    { status: 400, code: 'InvalidArgument', ArgumentName: 'partNumber', ArgumentValue: '0' },
  ],
  ['part 10001', 'ten?partNumber=10001', {}, { status: 400, code: 'InvalidArgument' }],
  ['part "one"', 'ten?partNumber=one', {}, { status: 400, code: 'InvalidArgument' }],
  [
    'a part and a range',
    'ten?partNumber=1',
    { range: 'bytes=0-1' },
    {
      status: 400,
      code: 'InvalidRequest',
      Message: 'Cannot specify both Range header and partNumber query parameter',
    },
  ],
  [
    'an unknown checksum mode',
    'ten',
    { 'x-amz-checksum-mode': 'on' },
    { status: 400, code: 'InvalidRequest' },
  ],
  [
    'a line break in a header to be',
    'ten?response-expires=a%0D%0Ab',
    {},
    { status: 400, code: 'InvalidArgument', ArgumentName: 'response-expires' },
  ],
  [
    'a failed condition',
    'ten',
    { 'if-match': '"0"' },
    { status: 412, code: 'PreconditionFailed', Condition: 'If-Match' },
  ],
])('%s is refused', async (_name, path, headers, expected) => {
  expectError(await get(path, headers), expected);
});

test('an unsatisfiable range reports the size', async () => {
  expect((await get('ten', { range: 'bytes=10-' })).headers['content-range']).toBe('bytes */10');
});

test('a missing key is no delete marker', async () => {
  expect((await get('nothing')).headers['x-amz-delete-marker']).toBe('false');
});

test('other accounts learn nothing', async () => {
  const account = await api.makeAccount();
  for (const key of ['ten', 'nothing']) {
    const path = `/${bucket}/${key}`;
    expectError(await api.send({ method: 'GET', path }, account), { status: 403, code: 'AccessDenied' });
    expectError(await api.sendAnonymous({ method: 'GET', path }), { status: 403, code: 'AccessDenied' });
  }
  const nowhere = await api.sendAnonymous({ method: 'GET', path: '/no-such-bucket-here/x' });
  expectError(nowhere, { status: 404, code: 'NoSuchBucket', BucketName: 'no-such-bucket-here' });
});
