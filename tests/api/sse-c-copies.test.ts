// Keys of customers (SSE-C) in copies and multipart uploads: whose key opens what afterwards, and every refusal.
import { createHash, randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import { must } from '../../src/base/assert.ts';
import { LIMITS } from '../../src/types/limits.ts';
import { ENCRYPTION, keyAnswer, keyHeaders } from '../support/servers/customer-keys.ts';
import {
  beginUpload,
  type ListedPart,
  putPart,
  sendComplete,
  sendPart,
  type UploadAddress,
  uploadPath,
} from '../support/servers/multipart.ts';
import { pathOf, type RawAnswer } from '../support/servers/raw-s3.ts';
import { expectError, expectStatus, fieldsOf, useApi } from '../support/servers/s3-api.ts';
import { makeVersionedBucket, versionOf } from '../support/servers/versions.ts';

const MiB = 1024 * 1024;
/** Longer than copies take that come behind their answers, and than the figures of one scrape are told. */
const COPIES_TAKE_MS = LIMITS.metricsKeptMs + 100;
const [FIRST, SECOND, THIRD] = [randomBytes(32), randomBytes(32), randomBytes(32)];
const BODY = randomBytes(2 * MiB + 1);
const ETAG = `"${createHash('md5').update(BODY).digest('hex')}"`;
const NEEDED =
  'The object was stored using a form of Server Side Encryption. The correct parameters must be provided to retrieve the object.';
const WRONG =
  'Requests specifying Server Side Encryption with Customer provided keys must provide the correct secret key.';
const NEEDLESS = 'The encryption parameters are not applicable to this object.';
const PART_NEEDED =
  'The multipart upload initiate requested encryption. Subsequent part requests must include the appropriate encryption parameters.';
const PART_WRONG = 'The provided encryption parameters did not match the ones used originally.';

const api = useApi();
let bucket: string;
const headersOfKey = (key: Buffer | undefined, role?: 'source') =>
  key === undefined ? {} : keyHeaders(key, role);
const read = (key: string, under?: Buffer, query = '', method = 'GET') =>
  api.send({ method, path: pathOf(bucket, key) + query, headers: headersOfKey(under) });
const copy = (to: string, from: string, headers: Record<string, string> = {}) =>
  api.send({
    method: 'PUT',
    path: pathOf(bucket, to),
    headers: { 'x-amz-copy-source': `${bucket}/${from}`, ...headers },
  });
const invalidRequest = (answer: RawAnswer, Message: string) =>
  expectError(answer, { status: 400, code: 'InvalidRequest', Message });

beforeAll(async () => {
  bucket = await api.makeBucket();
  const headers = { 'x-amz-meta-colour': 'red', 'x-amz-checksum-algorithm': 'CRC32' };
  await api.put(bucket, 'plain', BODY, headers);
  await api.put(bucket, 'sealed', BODY, { ...headers, ...keyHeaders(FIRST) });
});

/** Once it stands still: the last copy of a chunk may come behind the answer. */
async function storedChunks(): Promise<string> {
  const count = async () => {
    const metrics = await (await fetch(`${api.server.endpoint}/metrics`)).text();
    return must(/^holdfast_chunks (\d+)$/m.exec(metrics)?.[1], 'chunks are counted');
  };
  for (let before = await count(); ; ) {
    await sleep(COPIES_TAKE_MS);
    const now = await count();
    if (now === before) return now;
    before = now;
  }
}

describe('CopyObject', () => {
  test.each([
    ['none to a key', 'plain', undefined, SECOND],
    ['a key to none', 'sealed', FIRST, undefined],
    ['a key to the same', 'sealed', FIRST, FIRST],
    ['a key to another', 'sealed', FIRST, SECOND],
    ['none to none', 'plain', undefined, undefined],
  ])('s3-behaviour 34: %s: only what wraps the key changes', async (name, from, sourceKey, targetKey) => {
    const to = `copied ${name}`;
    const headers = { ...headersOfKey(sourceKey, 'source'), ...headersOfKey(targetKey) };
    const answer = await copy(to, from, headers);
    expectStatus(answer, 200);
    expect(fieldsOf(answer)).toMatchObject({ ETag: ETAG });
    if (targetKey !== undefined) expect(answer.headers).toMatchObject(keyAnswer(targetKey));
    else expect(answer.headers).not.toHaveProperty(`${ENCRYPTION}-customer-algorithm`);
    const got = await read(to, targetKey);
    expectStatus(got, 200);
    expect(got.headers).toMatchObject({ etag: ETAG, 'x-amz-meta-colour': 'red' });
    expect(got.body.equals(BODY)).toBe(true);
    if (targetKey !== undefined) invalidRequest(await read(to), NEEDED);
    invalidRequest(await read(to, THIRD), targetKey === undefined ? NEEDLESS : WRONG);
    // The source is as it was.
    expectStatus(await read(from, sourceKey), 200);
  });

  test('moves no bytes', async () => {
    const before = await storedChunks();
    for (const to of ['cheap', 'cheaper'])
      expectStatus(await copy(to, 'sealed', { ...keyHeaders(FIRST, 'source'), ...keyHeaders(SECOND) }), 200);
    expect(await storedChunks()).toBe(before);
  });

  test('new headers, another checksum, and a deleted source', async () => {
    await api.put(bucket, 'fleeting', BODY, keyHeaders(FIRST));
    const replaced = await copy('replaced', 'fleeting', {
      ...keyHeaders(FIRST, 'source'),
      ...keyHeaders(SECOND),
      'x-amz-metadata-directive': 'REPLACE',
      'x-amz-meta-size': 'big',
      'x-amz-checksum-algorithm': 'SHA256',
    });
    expectStatus(replaced, 200);
    const ChecksumSHA256 = createHash('sha256').update(BODY).digest('base64');
    expect(fieldsOf(replaced)).toMatchObject({ ChecksumSHA256 });
    expectStatus(await api.send({ method: 'DELETE', path: pathOf(bucket, 'fleeting') }), 204);
    const got = await read('replaced', SECOND);
    expect(got.headers).toMatchObject({ 'x-amz-meta-size': 'big' });
    expect(got.body.equals(BODY)).toBe(true);
  });

  test('onto itself: a new key, no key, and a key again are changes', async () => {
    await api.put(bucket, 'self', BODY);
    const steps: [Buffer | undefined, Buffer | undefined][] = [
      [undefined, FIRST],
      [FIRST, SECOND],
      [SECOND, SECOND],
      [SECOND, undefined],
    ];
    for (const [from, to] of steps) {
      const headers = { ...headersOfKey(from, 'source'), ...headersOfKey(to) };
      expectStatus(await copy('self', 'self', headers), 200);
      expect((await read('self', to)).body.equals(BODY)).toBe(true);
      if (from !== to) expectStatus(await read('self', from), 400);
    }
    expectError(await copy('self', 'self'), { status: 400, code: 'InvalidRequest' });
  });

  test('onto itself with versions: each version keeps its key', async () => {
    const versioned = await makeVersionedBucket(api);
    const path = pathOf(versioned, 'k');
    const old = versionOf(await api.send({ method: 'PUT', path, body: BODY, headers: keyHeaders(FIRST) }));
    const headers = { 'x-amz-copy-source': `${versioned}/k`, ...keyHeaders(FIRST, 'source') };
    const copied = await api.send({ method: 'PUT', path, headers: { ...headers, ...keyHeaders(SECOND) } });
    expectStatus(copied, 200);
    const at = (versionId: string, key: Buffer) =>
      api.send({ method: 'GET', path: `${path}?versionId=${versionId}`, headers: keyHeaders(key) });
    expectStatus(await at(old, FIRST), 200);
    invalidRequest(await at(old, SECOND), WRONG);
    expectStatus(await at(versionOf(copied), SECOND), 200);
    // An older version, by its id.
    const source = `${versioned}/k?versionId=${old}`;
    const again = { 'x-amz-copy-source': source, ...keyHeaders(FIRST, 'source') };
    expectStatus(await api.send({ method: 'PUT', path, headers: again }), 200);
    expect((await api.send({ method: 'GET', path })).body.equals(BODY)).toBe(true);
  });

  test('service 4.2, compose rule 5: a copy of what was composed or appended to comes under no key, onto itself neither', async () => {
    const composition = Buffer.from(
      '<ComposeRequest><Component><Key>plain</Key></Component></ComposeRequest>',
    );
    for (const [key, query, body] of [
      ['composed', 'compose', composition],
      ['appended', 'append', Buffer.from('more')],
    ] as const) {
      await api.put(bucket, key, BODY);
      const path = `${pathOf(bucket, key)}?${query}`;
      expectStatus(await api.send({ method: 'PUT', path, body }), 200);
      const before = await read(key);
      const refusal = { status: 400, code: 'EncryptionNotAllowed' } as const;
      expectError(await copy('never', key, keyHeaders(FIRST)), refusal);
      expectError(await copy(key, key, keyHeaders(FIRST)), refusal);
      expect((await read(key)).headers.etag).toBe(before.headers.etag);
      expectStatus(await copy('as it is', key), 200);
    }
    expectStatus(await read('never'), 404);
  });

  test('the source’s key is checked before its conditions', async () => {
    const condition = { 'x-amz-copy-source-if-match': '"x"' };
    invalidRequest(await copy('never', 'sealed', condition), NEEDED);
    invalidRequest(await copy('never', 'sealed', { ...condition, ...keyHeaders(FIRST) }), NEEDED);
    invalidRequest(await copy('never', 'sealed', { ...condition, ...keyHeaders(SECOND, 'source') }), WRONG);
    invalidRequest(await copy('never', 'plain', { ...condition, ...keyHeaders(FIRST, 'source') }), NEEDLESS);
    const fits = { ...condition, ...keyHeaders(FIRST, 'source') };
    expectError(await copy('never', 'sealed', fits), { status: 412, code: 'PreconditionFailed' });
    expectStatus(await read('never'), 404);
  });
});

describe('multipart', () => {
  const parts = [randomBytes(5 * MiB), randomBytes(70_000)];
  const whole = Buffer.concat(parts);

  async function uploadAll(upload: UploadAddress, key: Buffer | undefined): Promise<ListedPart[]> {
    const listed: ListedPart[] = [];
    for (const [index, body] of parts.entries()) {
      const partNumber = index + 1;
      const etag = await putPart(api, upload, { partNumber, body, headers: headersOfKey(key) });
      expect(etag).toBe(createHash('md5').update(body).digest('hex'));
      listed.push({ partNumber, etag });
    }
    return listed;
  }

  test.each([
    ['with the key', keyHeaders(FIRST)],
    ['without', {}],
  ] as [string, Record<string, string>][])('an object of parts, completed %s', async (name, headers) => {
    const key = `multi ${name}`;
    const path = pathOf(bucket, key);
    const sent = { ...keyHeaders(FIRST), 'x-amz-meta-colour': 'red' };
    const created = await api.send({ method: 'POST', path: `${path}?uploads`, headers: sent });
    expect(created.headers).toMatchObject(keyAnswer(FIRST));
    const upload = { bucket, key, uploadId: must(fieldsOf(created).UploadId, 'an id') };
    const listed = await uploadAll(upload, FIRST);
    const again = await sendPart(api, upload, {
      partNumber: 2,
      body: must(parts[1], 'two parts'),
      headers: keyHeaders(FIRST),
    });
    expect(again.headers).toMatchObject(keyAnswer(FIRST));
    expectStatus(await api.send({ method: 'GET', path: uploadPath(upload), headers }), 200);
    expectStatus(await sendComplete(api, upload, listed, headers), 200);
    // Again: the same answer.
    expectStatus(await sendComplete(api, upload, listed, headers), 200);
    const got = await read(key, FIRST);
    expect(got.body.equals(whole)).toBe(true);
    expect(got.headers).toMatchObject({ 'x-amz-meta-colour': 'red', ...keyAnswer(FIRST) });
    expect(got.headers.etag).toMatch(/-2"$/);
    const part = await read(key, FIRST, '?partNumber=2');
    expectStatus(part, 206);
    expect(part.body.equals(must(parts[1], 'two parts'))).toBe(true);
    expect(part.headers['x-amz-mp-parts-count']).toBe('2');
    invalidRequest(await read(key, undefined, '?partNumber=2'), NEEDED);
    invalidRequest(await read(key, SECOND), WRONG);
    // Copied under another key: all its parts come along.
    expectStatus(
      await copy(`${key} copy`, key, { ...keyHeaders(FIRST, 'source'), ...keyHeaders(SECOND) }),
      200,
    );
    expect((await read(`${key} copy`, SECOND)).body.equals(whole)).toBe(true);
  });

  test('each part is sent with the key of the upload', async () => {
    const body = Buffer.from('part');
    const sealed = await beginUpload(api, { bucket, key: 'picky' }, keyHeaders(FIRST));
    const plain = await beginUpload(api, { bucket, key: 'open' });
    const part = (upload: UploadAddress, key?: Buffer) =>
      sendPart(api, upload, { partNumber: 1, body, headers: headersOfKey(key) });
    invalidRequest(await part(sealed), PART_NEEDED);
    invalidRequest(await part(sealed, SECOND), PART_WRONG);
    invalidRequest(await part(plain, FIRST), PART_NEEDED);
    const etag = createHash('md5').update(body).digest('hex');
    for (const [upload, key, message] of [
      [sealed, SECOND, PART_WRONG],
      [plain, FIRST, PART_NEEDED],
    ] as const) {
      const headers = keyHeaders(key);
      invalidRequest(await api.send({ method: 'GET', path: uploadPath(upload), headers }), message);
      invalidRequest(await sendComplete(api, upload, [{ partNumber: 1, etag }], headers), message);
    }
  });

  const copyInto = (upload: UploadAddress, partNumber: number, source: string, headers = {}) =>
    api.send({
      method: 'PUT',
      path: uploadPath(upload, `partNumber=${partNumber}&`),
      headers: { 'x-amz-copy-source': `${bucket}/${source}`, ...headers },
    });

  test.each([
    ['under a key', SECOND],
    ['without one', undefined],
  ])('s3-behaviour 34: parts that are copied from under any key, %s', async (name, own) => {
    const key = `of copies ${name}`;
    const checksum = { 'x-amz-checksum-algorithm': 'SHA256' };
    const upload = await beginUpload(api, { bucket, key }, { ...checksum, ...headersOfKey(own) });
    await api.put(bucket, 'five', must(parts[0], 'two parts'), keyHeaders(FIRST));
    await api.put(bucket, 'five plain', must(parts[0], 'two parts'));
    const range = { 'x-amz-copy-source-range': 'bytes=10-69999' };
    const before = await storedChunks();
    const answers = [
      await copyInto(upload, 1, 'five', { ...keyHeaders(FIRST, 'source'), ...headersOfKey(own) }),
      await copyInto(upload, 2, 'five plain', headersOfKey(own)),
      await copyInto(upload, 3, 'sealed', { ...keyHeaders(FIRST, 'source'), ...headersOfKey(own), ...range }),
    ];
    expect(await storedChunks()).toBe(before);
    const listed = answers.map((answer, index) => {
      expectStatus(answer, 200);
      if (own !== undefined) expect(answer.headers).toMatchObject(keyAnswer(own));
      const { ETag = '', ChecksumSHA256 } = fieldsOf(answer);
      const more = `<ChecksumSHA256>${ChecksumSHA256}</ChecksumSHA256>`;
      return { partNumber: index + 1, etag: ETag.replaceAll('"', ''), more };
    });
    expectStatus(await sendComplete(api, upload, listed), 200);
    const got = await read(key, own);
    const expected = [parts[0], parts[0], BODY.subarray(10, 70_000)].map((part) => must(part, 'a part'));
    expect(got.body.equals(Buffer.concat(expected))).toBe(true);
    invalidRequest(await read(key, FIRST), own === undefined ? NEEDLESS : WRONG);
  });

  test('both keys of a copied part must be right', async () => {
    const upload = await beginUpload(api, { bucket, key: 'picky' }, keyHeaders(SECOND));
    const own = keyHeaders(SECOND);
    invalidRequest(await copyInto(upload, 1, 'plain'), PART_NEEDED);
    invalidRequest(await copyInto(upload, 1, 'plain', keyHeaders(FIRST)), PART_WRONG);
    invalidRequest(await copyInto(upload, 1, 'sealed', own), NEEDED);
    invalidRequest(await copyInto(upload, 1, 'sealed', { ...own, ...keyHeaders(THIRD, 'source') }), WRONG);
    invalidRequest(await copyInto(upload, 1, 'plain', { ...own, ...keyHeaders(FIRST, 'source') }), NEEDLESS);
  });
});

describe('the headers are checked the same way everywhere', () => {
  const algorithm = `${ENCRYPTION}-customer-algorithm`;
  const ofSource = 'x-amz-copy-source-server-side-encryption-customer-algorithm';
  const source = () => ({ 'x-amz-copy-source': `${bucket}/plain` });
  const id = '0'.repeat(44);
  test.each([
    ['POST', '?uploads', {}],
    ['PUT', `?partNumber=1&uploadId=${id}`, {}],
    ['GET', `?uploadId=${id}`, {}],
    ['POST', `?uploadId=${id}`, {}],
    ['PUT', '', source],
    ['PUT', `?partNumber=1&uploadId=${id}`, source],
  ])('%s %s', async (method, query, more) => {
    const path = pathOf(bucket, 'judged') + query;
    const isCopy = typeof more === 'function';
    const headers = isCopy ? more() : {};
    const body = method === 'PUT' && !isCopy ? { body: Buffer.from('x') } : {};
    const names = isCopy ? [algorithm, ofSource] : [algorithm];
    for (const name of names) {
      const whole = { ...keyHeaders(FIRST, name === ofSource ? 'source' : 'own'), ...headers };
      const other = await api.send({ method, path, headers: { ...whole, [name]: 'AES128' }, ...body });
      expectError(other, {
        status: 400,
        code: 'InvalidEncryptionAlgorithmError',
        ArgumentName: ENCRYPTION,
        ArgumentValue: 'AES128',
      });
      const { [name]: _, ...rest } = whole as Record<string, string>;
      const none = await api.send({ method, path, headers: rest, ...body });
      expectError(none, { status: 400, code: 'InvalidArgument', ArgumentValue: 'null' });
    }
  });
});
