// Requests that are wrong in themselves, whatever they ask for: the exact error, nothing stored, never a 500, and the
// server goes on. What is wrong with one operation's own parameters is in that operation's file; connections that
// break, stall or trickle are in tests/faults.
import { createHash } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Access, pathOf, type RawAnswer, send } from '../support/raw-s3.ts';
import { headOf, openSocket } from '../support/raw-socket.ts';
import { expectError, expectStatus, fieldsOf, useApi } from '../support/s3-api.ts';

const api = useApi();
let bucket: string;
beforeAll(async () => {
  bucket = await api.makeBucket();
});

const BODY = Buffer.from('0123456789');
const CRC32 = 'poTHxg==';
type Expected = Parameters<typeof expectError>[1];
type Headers = Record<string, string>;

const put = (key: string, headers: Headers = {}, body = BODY, as?: Partial<Access>) =>
  send({ ...access(), ...as }, { method: 'PUT', path: pathOf(bucket, key), headers, body });
const access = (): Access => ({
  endpoint: api.server.endpoint,
  accessKey: api.server.accessKey,
  secretKey: api.server.secretKey,
});

async function expectAbsent(key: string): Promise<void> {
  expectStatus(await api.send({ method: 'HEAD', path: pathOf(bucket, key) }), 404);
}

/** Sends a request as it stands, of which the head is signed, and reads the answer. */
async function sendRaw(options: {
  method?: string;
  path: string;
  headers?: Headers;
  edit?: (head: string) => string;
  body?: string;
}): Promise<RawAnswer> {
  const { method = 'PUT', path, headers = {}, edit = (head) => head, body = '' } = options;
  const connection = await openSocket(access());
  connection.write(edit(headOf(access(), { method, path, headers })) + body);
  const answer = await connection.answer();
  connection.destroy();
  if (answer === undefined) throw new Error('no answer');
  return {
    status: answer.status,
    headers: Object.fromEntries(answer.headers),
    body: Buffer.from(answer.body),
  };
}

describe('digests and checksums', () => {
  test.each<[string, Headers, Expected]>([
    ['a Content-MD5 that is none', { 'content-md5': 'x' }, { status: 400, code: 'InvalidDigest' }],
    ['a Content-MD5 too short', { 'content-md5': 'AAAA' }, { status: 400, code: 'InvalidDigest' }],
    ['an empty Content-MD5', { 'content-md5': '' }, { status: 400, code: 'InvalidDigest' }],
    [
      'another Content-MD5',
      { 'content-md5': 'AAAAAAAAAAAAAAAAAAAAAA==' },
      { status: 400, code: 'BadDigest' },
    ],
    ['a checksum that is none', { 'x-amz-checksum-crc32': 'x' }, { status: 400, code: 'BadDigest' }],
    ['an empty checksum', { 'x-amz-checksum-sha256': '' }, { status: 400, code: 'BadDigest' }],
    ['another CRC32', { 'x-amz-checksum-crc32': 'AAAAAA==' }, { status: 400, code: 'BadDigest' }],
    ['another CRC32C', { 'x-amz-checksum-crc32c': 'AAAAAA==' }, { status: 400, code: 'BadDigest' }],
    ['another CRC64NVME', { 'x-amz-checksum-crc64nvme': 'AAAAAAAAAAA=' }, { status: 400, code: 'BadDigest' }],
    ['another SHA1', { 'x-amz-checksum-sha1': `${'A'.repeat(27)}=` }, { status: 400, code: 'BadDigest' }],
    ['another SHA256', { 'x-amz-checksum-sha256': `${'A'.repeat(43)}=` }, { status: 400, code: 'BadDigest' }],
    [
      'two checksums',
      { 'x-amz-checksum-crc32': CRC32, 'x-amz-checksum-crc32c': 'KAwGng==' },
      { status: 400, code: 'InvalidRequest' },
    ],
    ['a checksum nobody knows', { 'x-amz-checksum-md4': 'x' }, { status: 501, code: 'NotImplemented' }],
    [
      'a checksum announced and not sent',
      { 'x-amz-sdk-checksum-algorithm': 'CRC32' },
      { status: 400, code: 'InvalidRequest' },
    ],
    [
      'another SHA-256 of the payload',
      { 'x-amz-content-sha256': createHash('sha256').update('x').digest('hex') },
      { status: 400, code: 'XAmzContentSHA256Mismatch' },
    ],
    [
      'a payload digest that is none',
      { 'x-amz-content-sha256': 'SIGNED' },
      { status: 400, code: 'InvalidArgument' },
    ],
  ])('%s', async (name, headers, expected) => {
    expectError(await put(name, headers), expected);
    await expectAbsent(name);
  });
});

describe('lengths', () => {
  const withLength = (key: string, length: string, edit?: (head: string) => string) =>
    sendRaw({
      path: pathOf(bucket, key),
      headers: length === '' ? {} : { 'content-length': length },
      ...(edit && { edit }),
      body: BODY.toString(),
    });

  test('no Content-Length', async () => {
    expectError(await withLength('no-length', ''), { status: 411, code: 'MissingContentLength' });
    await expectAbsent('no-length');
  });

  test.each(['-1', 'ten', '1e3', '10, 10', '10 10'])('Content-Length: %s', async (length) => {
    const answer = await withLength('bad-length', length);
    expectStatus(answer, 400);
    await expectAbsent('bad-length');
  });

  test('Transfer-Encoding: chunked without aws-chunked', async () => {
    const answer = await sendRaw({
      path: pathOf(bucket, 'te'),
      headers: { 'transfer-encoding': 'chunked' },
      body: 'a\r\n0123456789\r\n0\r\n\r\n',
    });
    expectError(answer, { status: 501, code: 'NotImplemented' });
    await expectAbsent('te');
  });
});

describe('aws-chunked bodies', () => {
  const UNSIGNED = 'STREAMING-UNSIGNED-PAYLOAD-TRAILER';
  const chunked = (key: string, body: string, headers: Headers = {}) =>
    put(
      key,
      {
        'x-amz-content-sha256': UNSIGNED,
        'content-encoding': 'aws-chunked',
        'x-amz-decoded-content-length': '10',
        'x-amz-trailer': 'x-amz-checksum-crc32',
        ...headers,
      },
      Buffer.from(body, 'latin1'),
    );
  const GOOD = `a\r\n0123456789\r\n0\r\nx-amz-checksum-crc32:${CRC32}\r\n\r\n`;

  test('a good one', async () => {
    expectStatus(await chunked('good', GOOD), 200);
    expectStatus(await chunked('in two', GOOD.replace('a\r\n0123456789', '4\r\n0123\r\n6\r\n456789')), 200);
    const answer = await api.send({ method: 'GET', path: pathOf(bucket, 'in two') });
    expect(answer.body.toString()).toBe('0123456789');
    expect(answer.headers).not.toHaveProperty('content-encoding');
  });

  test.each<[string, string, Headers, Expected]>([
    [
      'fewer bytes than said',
      GOOD,
      { 'x-amz-decoded-content-length': '11' },
      { status: 400, code: 'IncompleteBody' },
    ],
    [
      'more bytes than said',
      GOOD,
      { 'x-amz-decoded-content-length': '9' },
      { status: 400, code: 'IncompleteBody' },
    ],
    ['no size said', GOOD, { 'x-amz-decoded-content-length': '' }, { status: 400, code: 'InvalidArgument' }],
    [
      'a size that is none',
      GOOD,
      { 'x-amz-decoded-content-length': '-1' },
      { status: 400, code: 'InvalidArgument' },
    ],
    [
      'a chunk shorter than its size',
      GOOD.replace('a\r\n', 'b\r\n'),
      {},
      { status: 400, code: 'IncompleteBody' },
    ],
    [
      'a chunk size that is none',
      GOOD.replace('a\r\n', 'x\r\n'),
      {},
      { status: 400, code: 'IncompleteBody' },
    ],
    [
      'a chunk size beyond reason',
      GOOD.replace('a\r\n', `${'f'.repeat(30)}\r\n`),
      {},
      { status: 400, code: 'IncompleteBody' },
    ],
    ['no line ends', GOOD.replaceAll('\r\n', '\n'), {}, { status: 400, code: 'IncompleteBody' }],
    ['no last chunk', 'a\r\n0123456789\r\n', {}, { status: 400, code: 'IncompleteBody' }],
    ['no trailer', 'a\r\n0123456789\r\n0\r\n\r\n', {}, { status: 400, code: 'MalformedTrailerError' }],
    [
      'another trailer',
      GOOD.replace('crc32:', 'crc32c:'),
      {},
      { status: 400, code: 'MalformedTrailerError' },
    ],
    [
      'a trailer that is no line',
      GOOD.replace('crc32:', 'crc32 '),
      {},
      { status: 400, code: 'MalformedTrailerError' },
    ],
    ['another checksum', GOOD.replace(CRC32, 'AAAAAA=='), {}, { status: 400, code: 'BadDigest' }],
    ['a checksum that is none', GOOD.replace(CRC32, 'x'), {}, { status: 400, code: 'BadDigest' }],
    [
      'an unknown trailer',
      GOOD,
      { 'x-amz-trailer': 'x-amz-checksum-md4' },
      { status: 400, code: 'InvalidRequest' },
    ],
    [
      'chunks that should be signed',
      GOOD,
      { 'x-amz-content-sha256': 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER' },
      { status: 400, code: 'IncompleteBody' },
    ],
    [
      'chunks signed wrongly',
      `a;chunk-signature=${'0'.repeat(64)}\r\n0123456789\r\n0;chunk-signature=${'0'.repeat(64)}\r\n\r\n`,
      { 'x-amz-content-sha256': 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD' },
      { status: 403, code: 'SignatureDoesNotMatch' },
    ],
    ['no framing at all', '0123456789', {}, { status: 400, code: 'IncompleteBody' }],
  ])('%s', async (name, body, headers, expected) => {
    expectError(await chunked(name, body, headers), expected);
    await expectAbsent(name);
  });
});

describe('signatures', () => {
  const HOUR_MS = 3_600_000;

  test.each<[string, () => Partial<Access>, Expected]>([
    ['a wrong secret', () => ({ secretKey: 'wrong' }), { status: 403, code: 'SignatureDoesNotMatch' }],
    ['an unknown key', () => ({ accessKey: 'HFNOBODY' }), { status: 403, code: 'InvalidAccessKeyId' }],
    [
      'a clock too late',
      () => ({ nowMs: () => Date.now() + HOUR_MS }),
      { status: 403, code: 'RequestTimeTooSkewed' },
    ],
    [
      'a clock too early',
      () => ({ nowMs: () => Date.now() - HOUR_MS }),
      { status: 403, code: 'RequestTimeTooSkewed' },
    ],
  ])('%s', async (name, as, expected) => {
    expectError(await put(name, {}, BODY, as()), expected);
    await expectAbsent(name);
  });

  test('a wrong one shows what was signed', async () => {
    const fields = fieldsOf(await put('shown', {}, BODY, { secretKey: 'wrong' }));
    expect(fields.StringToSign).toMatch(/^AWS4-HMAC-SHA256\n\d{8}T\d{6}Z\n/);
    expect(fields.CanonicalRequest).toMatch(/^PUT\n/);
  });

  const edited = (edit: (head: string) => string) =>
    sendRaw({ path: pathOf(bucket, 'edited'), headers: { 'content-length': '0' }, edit });

  test.each<[string, (head: string) => string, Expected]>([
    [
      'another path',
      (head) => head.replace('/edited ', '/edited2 '),
      { status: 403, code: 'SignatureDoesNotMatch' },
    ],
    [
      'a header unsigned',
      (head) => head.replace('\r\n\r\n', '\r\nx-amz-meta-a: 1\r\n\r\n'),
      { status: 403, code: 'AccessDenied' },
    ],
    [
      'a signature cut off',
      (head) => head.replace(/Signature=[0-9a-f]+/, 'Signature='),
      { status: 400, code: 'AuthorizationHeaderMalformed' },
    ],
    [
      'no signature',
      (head) => head.replace(/, Signature=[0-9a-f]+/, ''),
      { status: 400, code: 'AuthorizationHeaderMalformed' },
    ],
    [
      'no credential',
      (head) => head.replace(/Credential=[^,]+, /, ''),
      { status: 400, code: 'AuthorizationHeaderMalformed' },
    ],
    [
      'a scope cut off',
      (head) => head.replace('/s3/aws4_request', ''),
      { status: 400, code: 'AuthorizationHeaderMalformed' },
    ],
    [
      'another service',
      (head) => head.replace('/s3/', '/ec2/'),
      { status: 400, code: 'AuthorizationHeaderMalformed' },
    ],
    [
      'another scheme',
      (head) => head.replace('AWS4-HMAC-SHA256 ', 'Bearer '),
      { status: 400, code: 'InvalidArgument' },
    ],
    [
      'a date that is none',
      (head) => head.replace(/x-amz-date: \S+/, 'x-amz-date: yesterday'),
      { status: 403, code: 'AccessDenied' },
    ],
    [
      'a payload digest missing',
      (head) => head.replace(/x-amz-content-sha256: \S+\r\n/, ''),
      { status: 400, code: 'InvalidRequest' },
    ],
  ])('%s', async (_name, edit, expected) => {
    expectError(await edited(edit), expected);
    await expectAbsent('edited');
    await expectAbsent('edited2');
  });

  test('no signature at all', async () => {
    const path = pathOf(bucket, 'unsigned');
    expectError(await api.sendAnonymous({ method: 'PUT', path }), { status: 403, code: 'AccessDenied' });
    await expectAbsent('unsigned');
  });
});

describe('addresses and heads', () => {
  const get = (path: string) => sendRaw({ method: 'GET', path });

  test.each<[string, string, Expected]>([
    ['a percent sign that begins nothing', '/b/%zz', { status: 400, code: 'InvalidURI' }],
    ['a key that is no UTF-8', '/b/%FF', { status: 400, code: 'InvalidURI' }],
    ['a key with a NUL', '/b/a%00b', { status: 400, code: 'InvalidURI' }],
    ['a query that is no UTF-8', '/b?prefix=%FF', { status: 400, code: 'InvalidURI' }],
    ['a bucket name of one letter', '/b', { status: 400, code: 'InvalidBucketName' }],
    ['a bucket name in capitals', '/BUCKET', { status: 400, code: 'InvalidBucketName' }],
    ['a key too long', `/bucket-name/${'k'.repeat(1025)}`, { status: 400, code: 'KeyTooLongError' }],
  ])('%s', async (_name, path, expected) => {
    expectError(await get(path), expected);
  });

  test('a head of more than 32 KiB', async () => {
    const answer = await sendRaw({
      method: 'GET',
      path: `/${bucket}`,
      headers: { 'x-amz-meta-a': 'v'.repeat(40_000) },
    });
    expectError(answer, { status: 400, code: 'RequestHeaderSectionTooLarge' });
  });

  test.each<[string, string, Expected]>([
    ['PATCH', '/bucket-name/key', { status: 405, code: 'MethodNotAllowed' }],
    ['POST', '/bucket-name/key', { status: 405, code: 'MethodNotAllowed' }],
    ['GET', '/bucket-name/key?torrent', { status: 501, code: 'NotImplemented' }],
    ['PUT', '/bucket-name/key?tagging', { status: 501, code: 'NotImplemented' }],
    ['PUT', '/bucket-name?cors', { status: 501, code: 'NotImplemented' }],
    ['PUT', '/bucket-name?website', { status: 501, code: 'NotImplemented' }],
    ['PUT', '/bucket-name/key?acl&tagging', { status: 400, code: 'InvalidArgument' }],
  ])('%s %s', async (method, path, expected) => {
    const answer = await sendRaw({ method, path, headers: { 'content-length': '0' } });
    expectError(answer, expected);
  });

  test.each<[string, Headers, Expected]>([
    [
      'a customer key',
      { 'x-amz-server-side-encryption-customer-algorithm': 'AES256' },
      { status: 501, code: 'NotImplemented' },
    ],
    [
      'a key of a key service',
      { 'x-amz-server-side-encryption': 'aws:kms' },
      { status: 501, code: 'NotImplemented' },
    ],
    ['a write condition', { 'if-none-match': '*' }, { status: 501, code: 'NotImplemented' }],
    ['a write condition by ETag', { 'if-match': '"0"' }, { status: 501, code: 'NotImplemented' }],
    ['tags', { 'x-amz-tagging': 'a=b' }, { status: 501, code: 'NotImplemented' }],
    ['a lock', { 'x-amz-object-lock-mode': 'COMPLIANCE' }, { status: 501, code: 'NotImplemented' }],
    ['a legal hold', { 'x-amz-object-lock-legal-hold': 'ON' }, { status: 501, code: 'NotImplemented' }],
    ['a public ACL', { 'x-amz-acl': 'public-read' }, { status: 501, code: 'NotImplemented' }],
    ['a grant', { 'x-amz-grant-read': 'id="1"' }, { status: 501, code: 'NotImplemented' }],
    ['an unknown class', { 'x-amz-storage-class': 'COLD' }, { status: 400, code: 'InvalidStorageClass' }],
    [
      'another owner expected',
      { 'x-amz-expected-bucket-owner': '999999999999' },
      { status: 403, code: 'AccessDenied' },
    ],
  ])('%s is refused, never ignored', async (name, headers, expected) => {
    expectError(await put(name, headers), expected);
    await expectAbsent(name);
  });
});
