// PUT ?append over HTTP (service 4.2, append rules 1 to 4; service 8; extensions 2.4): bytes behind those that are there,
// each acknowledged append once, and every refusal leaves the object as it was.
import { createHash, randomBytes } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { toBase64 } from '../../src/base/bytes/bytes.ts';
import { crcOf } from '../../src/base/crypto/crc.ts';
import type { ErrorCode } from '../../src/types/errors.ts';
import { keyHeaders } from '../support/servers/customer-keys.ts';
import { completeUpload } from '../support/servers/multipart.ts';
import { pathOf, type RawAnswer, sendBare, signedHeaders } from '../support/servers/raw-s3.ts';
import { expectError, expectStatus, fieldsOf, useApi } from '../support/servers/s3-api.ts';
import {
  listVersions,
  makeVersionedBucket,
  setVersioning,
  versionOf,
  versionsIn,
} from '../support/servers/versions.ts';

const MiB = 1024 * 1024;
const GiB = 1024 * MiB;
const OFFSET = 'x-amz-write-offset-bytes';
const api = useApi();
let bucket: string;
beforeAll(async () => {
  bucket = await api.makeBucket();
});

const append = (key: string, body: Buffer | string, headers: Record<string, string> = {}, into = bucket) =>
  api.send({ method: 'PUT', path: `${pathOf(into, key)}?append`, headers, body: Buffer.from(body) });
const get = (key: string, headers: Record<string, string> = {}, from = bucket) =>
  api.send({ method: 'GET', path: pathOf(from, key), headers });
const textOf = async (key: string, from?: string) => (await get(key, {}, from)).body.toString();
const md5 = (text: string | Buffer) => createHash('md5').update(text).digest();
const etagOf = (md5s: readonly Buffer[]) => `"${md5(Buffer.concat(md5s)).toString('hex')}-${md5s.length}"`;
const composite = (...texts: (string | Buffer)[]) => etagOf(texts.map(md5));

describe('service 4.2, append rule 1: the original data plus the appended data', () => {
  test('the body as it is, of Content-Length bytes; with the new ETag and size in the answer, which has no body', async () => {
    await api.put(bucket, 'log', 'one ', { 'content-type': 'text/plain', 'x-amz-tagging': 'a=b' });
    const headers = { 'content-type': 'image/png', 'x-amz-meta-a': 'b' };
    const answer = await append('log', 'two ', headers);
    expectStatus(answer, 200);
    expect(answer.headers).toMatchObject({ etag: composite('one ', 'two '), 'x-amz-object-size': '8' });
    expect(answer.body.length).toBe(0);
    expect((await append('log', 'three')).headers).toMatchObject({
      etag: composite('one ', 'two ', 'three'),
      'x-amz-object-size': '13',
    });
    const got = await get('log');
    expect(got.body.toString()).toBe('one two three');
    expect(got.headers).toMatchObject({ 'content-type': 'text/plain', 'x-amz-tagging-count': '1' });
    expect(got.headers, 'headers stay the object’s').not.toHaveProperty('x-amz-meta-a');
  });

  test('large bodies after small ones and multipart objects, and the other way round', async () => {
    const parts = [randomBytes(5 * MiB), randomBytes(10)];
    const { etag } = await completeUpload(api, { bucket, key: 'mixed', parts });
    const [small, large] = [randomBytes(100), randomBytes(3 * MiB)];
    expectStatus(await append('mixed', small), 200);
    // A multipart object counts as one, by the MD5 in its own ETag.
    const ofMulti = Buffer.from(etag.slice(0, 32), 'hex');
    const expectedETag = etagOf([ofMulti, md5(small), md5(large)]);
    expect((await append('mixed', large)).headers.etag).toBe(expectedETag);
    const expected = Buffer.concat([...parts, small, large]);
    expect((await get('mixed')).body.equals(expected)).toBe(true);
    const range = await get('mixed', { range: `bytes=${5 * MiB}-${5 * MiB + 300}` });
    expect(range.body.equals(expected.subarray(5 * MiB, 5 * MiB + 301))).toBe(true);
  });

  test('no byte: the data stays, and so does its ETag (extensions 2.4)', async () => {
    const etag = await api.put(bucket, 'same', 'same');
    const answer = await append('same', '');
    expect([answer.status, answer.headers.etag]).toEqual([200, `"${etag}"`]);
    await api.put(bucket, 'empty', '');
    expect((await append('empty', 'x')).headers.etag).toBe(composite('', 'x'));
    expect(await textOf('empty')).toBe('x');
  });

  test('the checksum of the whole, where the object has a CRC', async () => {
    const sum = (text: string) => toBase64(crcOf('CRC64NVME', Buffer.from(text)));
    await api.put(bucket, 'crc', 'ab', { 'x-amz-checksum-crc64nvme': sum('ab') });
    const other = { 'x-amz-checksum-crc32': toBase64(crcOf('CRC32', Buffer.from('cd'))) };
    const expected = { 'x-amz-checksum-crc64nvme': sum('abcd'), 'x-amz-checksum-type': 'FULL_OBJECT' };
    expect((await append('crc', 'cd', other)).headers).toMatchObject(expected);
    expect((await get('crc', { 'x-amz-checksum-mode': 'ENABLED' })).headers).toMatchObject(expected);
  });
});

describe('service 4.2, append rule 2: versions', () => {
  const put = async (into: string, text: string) =>
    versionOf(await api.send({ method: 'PUT', path: pathOf(into, 'k'), body: Buffer.from(text) }));
  const textOfVersion = async (from: string, versionId: string) =>
    (await api.send({ method: 'GET', path: `${pathOf(from, 'k')}?versionId=${versionId}` })).body.toString();
  const idsOf = async (from: string) =>
    versionsIn(await listVersions(api, from)).map(({ versionId }) => versionId);

  test('in a versioned bucket the original stays as a version', async () => {
    const versioned = await makeVersionedBucket(api);
    const before = await put(versioned, 'a');
    const answer = await append('k', 'b', {}, versioned);
    expect(answer.headers['x-amz-version-id']).toMatch(/^[\w-]{32}$/);
    expect(answer.headers['x-amz-version-id']).not.toBe(before);
    expect(await textOf('k', versioned)).toBe('ab');
    expect(await textOfVersion(versioned, before)).toBe('a');
    await api.send({ method: 'DELETE', path: pathOf(versioned, 'k') });
    expectError(await append('k', 'c', {}, versioned), { status: 404, code: 'NoSuchKey' });
  });

  test('no byte: a new version of the same data (extensions 2.4)', async () => {
    const versioned = await makeVersionedBucket(api);
    const before = await put(versioned, 'a');
    const answer = await append('k', '', {}, versioned);
    expectStatus(answer, 200);
    expect(answer.headers.etag).toBe(`"${md5('a').toString('hex')}"`);
    expect(await idsOf(versioned)).toEqual([versionOf(answer), before]);
    expect(await textOf('k', versioned)).toBe('a');
    expect(await textOfVersion(versioned, before)).toBe('a');
  });

  test('in a suspended bucket the null version is replaced, and all others stay', async () => {
    const suspended = await api.makeBucket();
    await put(suspended, 'replaced');
    await setVersioning(api, suspended, 'Enabled');
    const kept = await put(suspended, 'a');
    await setVersioning(api, suspended, 'Suspended');
    for (const text of ['b', 'c'])
      expect(versionOf(await append('k', text, {}, suspended)), text).toBe('null');
    expect(await idsOf(suspended)).toEqual(['null', kept]);
    expect(await textOf('k', suspended)).toBe('abc');
    expect(await textOfVersion(suspended, kept)).toBe('a');
  });

  test('elsewhere it is replaced', async () => {
    await api.put(bucket, 'plain', 'a');
    const answer = await append('plain', 'b');
    expect(answer.headers).not.toHaveProperty('x-amz-version-id');
    expect(await textOf('plain')).toBe('ab');
  });
});

test('50 at once: each is there, once, whole (extensions 2.4)', async () => {
  await api.put(bucket, 'many', '');
  const lines = Array.from({ length: 50 }, (_, at) => `line ${at}\n`);
  const answers = await Promise.all(lines.map((line) => append('many', line)));
  for (const answer of answers) expectStatus(answer, 200);
  const got = (await textOf('many')).split('\n').slice(0, -1);
  expect(got.map((line) => `${line}\n`).sort()).toEqual([...lines].sort());
  const sizes = answers.map(({ headers }) => Number(headers['x-amz-object-size']));
  expect(new Set(sizes).size, 'each saw another size').toBe(50);
});

test('service 4.2, 8, append rule 4: 1023 appends to an object and no more; the count goes with a copy and with a rename', async () => {
  await api.put(bucket, 'often', 'x');
  let expected = 'x';
  for (let round = 0; round < 33; round++) {
    const digit = String(round % 10);
    const answers = await Promise.all(Array.from({ length: 31 }, () => append('often', digit)));
    for (const answer of answers) expectStatus(answer, 200);
    expected += digit.repeat(answers.length);
  }
  const refused = { status: 400, code: 'InvalidRequest' as const };
  expectError(await append('often', 'y'), refused);
  expect(await textOf('often')).toBe(expected);
  expect((await get('often')).headers.etag).toMatch(/-1024"$/);
  const headers = { 'x-amz-copy-source': `${bucket}/often` };
  expectStatus(await api.send({ method: 'PUT', path: pathOf(bucket, 'copied'), headers }), 200);
  expectError(await append('copied', 'y'), refused);
  const body = Buffer.from('<ComposeRequest><Component><Key>often</Key></Component></ComposeRequest>');
  const path = `${pathOf(bucket, 'composed')}?compose`;
  expectError(await api.send({ method: 'PUT', path, body }), refused);
  const renamed = { destination: 'renamed' };
  expectStatus(await api.send({ method: 'MOVE', path: pathOf(bucket, 'often'), headers: renamed }), 200);
  expectError(await append('renamed', 'y'), {
    ...refused,
    Message: 'The object has been appended to 1023 times, which is as often as an object may be.',
  });
}, 120_000);

describe('service 4.2, append: refused, and the object stays as it was', () => {
  beforeAll(() => api.put(bucket, 'kept', 'kept'));
  const refused = async (answer: Promise<RawAnswer>, status: number, code: ErrorCode) => {
    expectError(await answer, { status, code });
    expect(await textOf('kept')).toBe('kept');
  };

  test('to a missing key', () => refused(append('missing', 'x'), 404, 'NoSuchKey'));

  test('in the framing of SDKs, with a trailer', async () => {
    await api.put(bucket, 'framed', 'a');
    const headers = {
      'x-amz-content-sha256': 'STREAMING-UNSIGNED-PAYLOAD-TRAILER',
      'x-amz-decoded-content-length': '10',
      'x-amz-trailer': 'x-amz-checksum-crc32',
    };
    const framed = (crc: string) => `a\r\n0123456789\r\n0\r\nx-amz-checksum-crc32:${crc}\r\n\r\n`;
    await refused(append('kept', framed('AAAAAA=='), headers), 400, 'BadDigest');
    const crc = toBase64(crcOf('CRC32', Buffer.from('0123456789')));
    expectStatus(await append('framed', framed(crc), headers), 200);
    expect(await textOf('framed')).toBe('a0123456789');
  });

  test('append rule 3: by another account, or by nobody: who lacks s3:PutObject, and s3:DeleteObject', async () => {
    const other = await api.makeAccount();
    const path = `${pathOf(bucket, 'kept')}?append`;
    const sent = { method: 'PUT', path, body: Buffer.from('x') };
    await refused(api.send(sent, other), 403, 'AccessDenied');
    await refused(api.sendAnonymous({ method: 'PUT', path }), 403, 'AccessDenied');
  });

  test('another offset than the object’s size, which the error has', async () => {
    const answer = await append('kept', 'x', { [OFFSET]: '3' });
    expectError(answer, { status: 400, code: 'InvalidWriteOffset' });
    expect(fieldsOf(answer).ObjectSize).toBe('4');
    await refused(append('kept', 'x', { [OFFSET]: '-1' }), 400, 'InvalidArgument');
    await api.put(bucket, 'offset', 'abc');
    expectStatus(await append('offset', 'def', { [OFFSET]: '3' }), 200);
    await refused(append('offset', 'def', { [OFFSET]: '3' }), 400, 'InvalidWriteOffset');
  });

  test.each(['', 'abc', '1.5', '4e0', '+4', '0x4', '9'.repeat(30)])('an offset of "%s"', (offset) =>
    refused(append('kept', 'x', { [OFFSET]: offset }), 400, 'InvalidArgument'),
  );

  test('an offset beyond any object', () =>
    refused(append('kept', 'x', { [OFFSET]: '999999999999999' }), 400, 'InvalidWriteOffset'));

  test('the source of a copy beside it', () =>
    refused(append('kept', 'x', { 'x-amz-copy-source': `${bucket}/kept` }), 400, 'InvalidArgument'));

  test('conditions', async () => {
    await refused(append('kept', 'x', { 'if-match': '"0"' }), 412, 'PreconditionFailed');
    await refused(append('kept', 'x', { 'if-none-match': '*' }), 412, 'PreconditionFailed');
    const etag = await api.put(bucket, 'matched', 'a');
    expectStatus(await append('matched', 'b', { 'if-match': `"${etag}"` }), 200);
    expectError(await append('matched', 'b', { 'if-match': `"${etag}"` }), {
      status: 412,
      code: 'PreconditionFailed',
    });
  });

  test('bodies that do not match their declaration', async () => {
    const wrong = md5('other').toString('base64');
    await refused(append('kept', 'x', { 'content-md5': wrong }), 400, 'BadDigest');
    const crc = toBase64(crcOf('CRC32', Buffer.from('other')));
    await refused(append('kept', 'x', { 'x-amz-checksum-crc32': crc }), 400, 'BadDigest');
    const sha256 = { 'x-amz-content-sha256': createHash('sha256').update('other').digest('hex') };
    await refused(append('kept', 'x', sha256), 400, 'XAmzContentSHA256Mismatch');
    const chunked = {
      'x-amz-content-sha256': 'STREAMING-UNSIGNED-PAYLOAD-TRAILER',
      'x-amz-decoded-content-length': '11',
    };
    const body = 'a\r\n0123456789\r\n0\r\n\r\n';
    await refused(append('kept', body, chunked), 400, 'IncompleteBody');
  });

  test('customers’ keys, of the request or the object (compose rule 5)', async () => {
    const headers = keyHeaders(randomBytes(32));
    await refused(append('kept', 'x', headers), 400, 'EncryptionNotAllowed');
    await api.put(bucket, 'secret', 'x', headers);
    await refused(append('secret', 'x'), 400, 'EncryptionNotAllowed');
  });

  test('more than 5 GB at once', async () => {
    const path = `${pathOf(bucket, 'kept')}?append`;
    const headers = { 'content-length': String(5 * GiB + 1) };
    await refused(api.send({ method: 'PUT', path, headers }), 400, 'EntityTooLarge');
  });
});

test('a token: a repeated request appends once', async () => {
  await api.put(bucket, 'token', 'a');
  const headers = { 'x-svc-idempotency-token': 'append once' };
  const first = await append('token', 'b', headers);
  await append('token', 'c');
  const again = await append('token', 'b', headers);
  expect(again.headers.etag).toBe(first.headers.etag);
  expect(again.headers['x-amz-object-size']).toBe('2');
  expect(await textOf('token')).toBe('abc');
  expectError(await append('token', 'other', headers), {
    status: 400,
    code: 'IdempotencyParameterMismatch',
  });
});

test('a repeated signed request appends twice; a token, an offset or an ETag prevents that', async () => {
  const etag = await api.put(bucket, 'replayed', 'a');
  const body = Buffer.from('b');
  const twice = async (more: Record<string, string>) => {
    const wanted = { method: 'PUT', path: `${pathOf(bucket, 'replayed')}?append=` };
    const headers = signedHeaders(api.server, { ...wanted, headers: { 'content-length': '1', ...more } });
    const statuses = [];
    for (let count = 2; count > 0; count--)
      statuses.push((await sendBare(api.server, { ...wanted, headers, body })).status);
    return [...statuses, await textOf('replayed')];
  };
  expect(await twice({ 'if-match': `"${etag}"` })).toEqual([200, 412, 'ab']);
  expect(await twice({ 'x-svc-idempotency-token': 'replayed once' })).toEqual([200, 200, 'abb']);
  expect(await twice({ 'x-amz-write-offset-bytes': '3' })).toEqual([200, 400, 'abbb']);
  expect(await twice({})).toEqual([200, 200, 'abbbbb']);
});

describe('a token whose object has changed', () => {
  const again = async (key: string, headers: Record<string, string>, change: () => Promise<unknown>) => {
    await api.put(bucket, key, 'a');
    const tokened = { 'x-svc-idempotency-token': `appended ${key}`, ...headers };
    const first = await append(key, 'b', tokened);
    expectStatus(first, 200);
    await change();
    const second = await append(key, 'b', tokened);
    expect([second.status, second.headers.etag]).toEqual([200, first.headers.etag]);
  };

  test('it has grown by the append itself, and the client waits for 100 Continue', async () => {
    const headers = { [OFFSET]: '1', 'if-match': `"${md5('a').toString('hex')}"`, expect: '100-continue' };
    await again('asked before', headers, async () => {});
    expect(await textOf('asked before')).toBe('ab');
  });

  test('it is gone, or under a customer’s key; another request gets that error', async () => {
    const path = pathOf(bucket, 'gone since');
    await again('gone since', {}, () => api.send({ method: 'DELETE', path }));
    const other = { 'x-svc-idempotency-token': 'of another append' };
    expectError(await append('gone since', 'b', other), { status: 404, code: 'NoSuchKey' });
    await again('secret since', {}, () => api.put(bucket, 'secret since', 'x', keyHeaders(randomBytes(32))));
    expectError(await append('secret since', 'b', other), { status: 400, code: 'EncryptionNotAllowed' });
  });
});

describe('PutObject with x-amz-write-offset-bytes is the same, as AWS has it', () => {
  const put = (key: string, body: string, offset: number, headers: Record<string, string> = {}) =>
    api.send({
      method: 'PUT',
      path: pathOf(bucket, key),
      headers: { [OFFSET]: String(offset), ...headers },
      body: Buffer.from(body),
    });

  test('at 0 it creates a missing object; then it appends', async () => {
    expectStatus(await put('express', 'a', 0), 200);
    expect((await put('express', 'b', 1)).headers['x-amz-object-size']).toBe('2');
    expectError(await put('express', 'b', 0), { status: 400, code: 'InvalidWriteOffset' });
    expectError(await put('express', 'b', 1), { status: 400, code: 'InvalidWriteOffset' });
    expect(await textOf('express')).toBe('ab');
    expectError(await put('nothing', 'b', 1), { status: 404, code: 'NoSuchKey' });
    const secret = keyHeaders(randomBytes(32));
    expectError(await put('express', 'b', 2, secret), { status: 400, code: 'EncryptionNotAllowed' });
  });

  test('a token is valid for the same append in the other form', async () => {
    await api.put(bucket, 'once', 'a');
    const token = { 'x-svc-idempotency-token': 'append once by offset' };
    const first = await put('once', 'b', 1, token);
    expectStatus(first, 200);
    const answers = [
      await put('once', 'b', 1, token),
      await append('once', 'b', { ...token, [OFFSET]: '1' }),
    ];
    for (const { status, headers } of answers) {
      expect([status, headers.etag, headers['x-amz-object-size']]).toEqual([200, first.headers.etag, '2']);
    }
    expectError(await put('once', 'c', 1, token), { status: 400, code: 'IdempotencyParameterMismatch' });
    expectError(await put('once', 'b', 2, token), { status: 400, code: 'IdempotencyParameterMismatch' });
    expect(await textOf('once')).toBe('ab');
  });

  test('at 0 a token is refused, whether the object exists or not, and so is a malformed one', async () => {
    const token = { 'x-svc-idempotency-token': 'make once' };
    await api.put(bucket, 'none yet', '');
    for (const key of ['none yet', 'never made']) {
      expectError(await put(key, 'b', 0, token), { status: 400, code: 'InvalidRequest' });
    }
    expect(await textOf('none yet')).toBe('');
    expectError(await get('never made'), { status: 404, code: 'NoSuchKey' });
    const malformed = { 'x-svc-idempotency-token': '' };
    for (const offset of [0, 1]) {
      expectError(await put('none yet', 'b', offset, malformed), { status: 400, code: 'InvalidArgument' });
    }
  });
});
