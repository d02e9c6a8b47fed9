// Conditions on writes, copies and deletes: s3-behaviour 25 to 28, which others get wrong.
import { createHash } from 'node:crypto';
import { PassThrough } from 'node:stream';
import { beforeAll, describe, expect, test } from 'vitest';
import { childrenOf, textOf } from '../../src/base/xml/parse-xml.ts';
import { beginUpload, putPart, sendComplete, uploadPath } from '../support/servers/multipart.ts';
import { pathOf, type RawAnswer } from '../support/servers/raw-s3.ts';
import { headOf, openSocket } from '../support/servers/raw-socket.ts';
import { expectError, expectStatus, useApi, xmlOf } from '../support/servers/s3-api.ts';
import { makeVersionedBucket, versionOf } from '../support/servers/versions.ts';

const api = useApi();
let bucket: string;
let versioned: string;
beforeAll(async () => {
  bucket = await api.makeBucket();
  versioned = await makeVersionedBucket(api);
});

type Headers = Record<string, string>;
const FAILED = { status: 412, code: 'PreconditionFailed' } as const;
const MISSING = { status: 404, code: 'NoSuchKey' } as const;

const put = (key: string, body: string, headers: Headers = {}, where = bucket): Promise<RawAnswer> =>
  api.send({ method: 'PUT', path: pathOf(where, key), headers, body: Buffer.from(body) });
const remove = (key: string, headers: Headers = {}, query = '', where = bucket) =>
  api.send({ method: 'DELETE', path: pathOf(where, key) + query, headers });
const get = (key: string, where = bucket) => api.send({ method: 'GET', path: pathOf(where, key) });
const textOfKey = async (key: string) => (await get(key)).body.toString();

describe('s3-behaviour 25: DELETE with If-Match', () => {
  test('another ETag is 412, the ETag and * delete, and a missing key counts as deleted', async () => {
    const etag = await api.put(bucket, 'd', 'one');
    const refused = await remove('d', { 'if-match': '"0"' });
    expectError(refused, { ...FAILED, Condition: 'If-Match' });
    expectStatus(await get('d'), 200);
    expectStatus(await remove('d', { 'if-match': `"${etag}"` }), 204);
    expectStatus(await get('d'), 404);
    await api.put(bucket, 'd', 'two');
    for (const value of ['*', '*', '"0"']) expectStatus(await remove('d', { 'if-match': value }), 204);
    expectStatus(await get('d'), 404);
  });

  test('it is compared with the named version, else with the current one', async () => {
    const first = await put('v', 'one', {}, versioned);
    const second = await put('v', 'two', {}, versioned);
    const query = `?versionId=${versionOf(first)}`;
    expectError(await remove('v', { 'if-match': String(second.headers.etag) }, query, versioned), FAILED);
    expectStatus(await remove('v', { 'if-match': String(first.headers.etag) }, query, versioned), 204);
    expectError(await remove('v', { 'if-match': String(first.headers.etag) }, '', versioned), FAILED);
    const marked = await remove('v', { 'if-match': String(second.headers.etag) }, '', versioned);
    expect(marked.headers['x-amz-delete-marker']).toBe('true');
  });
});

describe('s3-behaviour 26: deletes by time, size and key', () => {
  test('x-amz-if-match-last-modified-time and x-amz-if-match-size', async () => {
    await api.put(bucket, 'd', 'four');
    const modified = String((await get('d')).headers['last-modified']);
    const time = 'x-amz-if-match-last-modified-time';
    const size = 'x-amz-if-match-size';
    const early = await remove('d', { [time]: 'Sun, 06 Nov 1994 08:49:37 GMT' });
    expectError(early, { ...FAILED, Condition: time });
    expectError(await remove('d', { [time]: modified, [size]: '5' }), { ...FAILED, Condition: size });
    expectStatus(await remove('d', { [time]: modified, [size]: '4' }), 204);
    expectStatus(await get('d'), 404);
    expectStatus(await remove('d', { [time]: modified, [size]: '9' }), 204);
  });

  test('DeleteObjects refuses the keys that differ and deletes the others', async () => {
    const etag = await api.put(bucket, 'a', 'x');
    for (const key of ['b', 'c', 'd', 'e']) await api.put(bucket, key, 'x');
    const modified = String((await get('c')).headers['last-modified']);
    const object = (key: string, more: string) => `<Object><Key>${key}</Key>${more}</Object>`;
    const inner =
      object('a', `<ETag>"${etag}"</ETag>`) +
      object('b', '<ETag>"0"</ETag>') +
      object('c', `<LastModifiedTime>${modified}</LastModifiedTime><Size>1</Size>`) +
      object('d', '<LastModifiedTime>1994-11-06T08:49:37Z</LastModifiedTime>') +
      object('e', '<Size>2</Size>') +
      object('never', '<ETag>"0"</ETag>');
    const body = Buffer.from(`<Delete>${inner}</Delete>`);
    const headers = { 'content-md5': createHash('md5').update(body).digest('base64') };
    const answer = await api.send({ method: 'POST', path: `/${bucket}?delete`, headers, body });
    expectStatus(answer, 200);
    const told = (name: string, field: string) =>
      childrenOf(xmlOf(answer), name).map((entry) => textOf(entry, field));
    expect(told('Deleted', 'Key')).toEqual(['a', 'c', 'never']);
    expect(told('Error', 'Key')).toEqual(['b', 'd', 'e']);
    expect(new Set(told('Error', 'Code'))).toEqual(new Set(['PreconditionFailed']));
    expect(await api.keysOf(bucket)).toEqual(['b', 'd', 'e']);
  });
});

describe('s3-behaviour 27: writes with If-Match and If-None-Match', () => {
  test('PUT', async () => {
    expectError(await put('p', 'x', { 'if-match': '*' }), MISSING);
    expectError(await put('p', 'x', { 'if-match': '"0"' }), MISSING);
    const first = await put('p', 'one', { 'if-none-match': '*' });
    expectStatus(first, 200);
    const etag = String(first.headers.etag);
    expectError(await put('p', 'x', { 'if-none-match': '*' }), { ...FAILED, Condition: 'If-None-Match' });
    expectError(await put('p', 'x', { 'if-none-match': etag }), FAILED);
    expectError(await put('p', 'x', { 'if-match': '"0"' }), { ...FAILED, Condition: 'If-Match' });
    expect(await textOfKey('p')).toBe('one');
    expectStatus(await put('p', 'two', { 'if-match': etag }), 200);
    expectStatus(await put('p', 'three', { 'if-none-match': etag }), 200);
    expect(await textOfKey('p')).toBe('three');
    const refused = { status: 400, code: 'InvalidArgument', ArgumentName: 'if-match' } as const;
    expectError(await put('p', 'x', { 'if-match': 'not one' }), refused);
  });

  test('a list holds if one of its ETags does, and several lines are one list', async () => {
    const etag = `"${await api.put(bucket, 'list', 'one')}"`;
    const none = '"0", W/"1"';
    expectError(await put('list', 'x', { 'if-match': none }), { ...FAILED, Condition: 'If-Match' });
    expectError(await put('list', 'x', { 'if-none-match': `${none}, ${etag}` }), FAILED);
    expectError(await put('list', 'x', { 'if-match': `W/${etag}` }), FAILED);
    expectError(await put('list', 'x', { 'if-none-match': `W/${etag}` }), FAILED);
    const invalid = { status: 400, code: 'InvalidArgument', ArgumentName: 'if-match' } as const;
    expectError(await put('list', 'x', { 'if-match': `*, ${etag}` }), invalid);
    expectStatus(await put('list', 'two', { 'if-none-match': none }), 200);
    const second = `"${createHash('md5').update('two').digest('hex')}"`;
    expectStatus(await put('list', 'one', { 'if-match': `${etag} ,${second}` }), 200);
    // As one HTTP client joins them, and as another sends them line by line.
    const head = headOf(api.server, {
      method: 'PUT',
      path: pathOf(bucket, 'list'),
      headers: { 'if-match': `"0",${etag}`, 'content-length': '5' },
    });
    const socket = await openSocket(api.server);
    socket.write(`${head.replace(`"0",${etag}`, `"0"\r\nif-match: ${etag}`)}three`);
    expect((await socket.answer())?.status).toBe(200);
    socket.destroy();
    expectStatus(await remove('list', { 'if-match': none }), 412);
    expectStatus(await remove('list', { 'if-match': `${none}, *` }), 400);
    const third = `"${createHash('md5').update('three').digest('hex')}"`;
    expectStatus(await remove('list', { 'if-match': `${none}, ${third}` }), 204);
  });

  test.each(['if-modified-since', 'if-unmodified-since'])('%s is no condition of a write', async (name) => {
    const headers = { [name]: 'Sun, 06 Nov 1994 08:49:37 GMT' };
    const refused = { status: 501, code: 'NotImplemented', Header: name } as const;
    expectError(await put('dated', 'x', headers), refused);
    expectError(await remove('dated', headers), refused);
    const upload = await beginUpload(api, { bucket, key: 'dated' });
    expectError(await sendComplete(api, upload, [], headers), refused);
  });

  test('a current delete marker counts as no object', async () => {
    const { etag } = (await put('m', 'one', {}, versioned)).headers;
    await remove('m', {}, '', versioned);
    expectError(await put('m', 'x', { 'if-match': String(etag) }, versioned), MISSING);
    expectStatus(await put('m', 'two', { 'if-none-match': '*' }, versioned), 200);
  });

  test('CompleteMultipartUpload, which stays idempotent', async () => {
    const upload = await beginUpload(api, { bucket, key: 'u' });
    const parts = [
      { partNumber: 1, etag: await putPart(api, upload, { partNumber: 1, body: Buffer.from('x') }) },
    ];
    expectError(await sendComplete(api, upload, parts, { 'if-match': '"0"' }), MISSING);
    await api.put(bucket, 'u', 'there');
    expectError(await sendComplete(api, upload, parts, { 'if-match': '"0"' }), FAILED);
    expectError(await sendComplete(api, upload, parts, { 'if-none-match': '*' }), FAILED);
    await remove('u');
    for (const _ of [1, 2])
      expectStatus(await sendComplete(api, upload, parts, { 'if-none-match': '*' }), 200);
  });

  test('CopyObject, also onto itself', async () => {
    const etag = `"${await api.put(bucket, 'from', 'source')}"`;
    const copy = (key: string, headers: Headers) =>
      api.send({
        method: 'PUT',
        path: pathOf(bucket, key),
        headers: { 'x-amz-copy-source': `${bucket}/from`, ...headers },
      });
    expectError(await copy('to', { 'if-match': etag }), MISSING);
    expectStatus(await copy('to', { 'if-none-match': '*' }), 200);
    expectError(await copy('to', { 'if-none-match': '*' }), FAILED);
    expectError(await copy('to', { 'if-match': '"0"' }), FAILED);
    expectStatus(await copy('to', { 'if-match': etag }), 200);
    const change = { 'x-amz-metadata-directive': 'REPLACE', 'x-amz-meta-a': '1' };
    expectError(await copy('from', { ...change, 'if-match': '"0"' }), FAILED);
    expectStatus(await copy('from', { ...change, 'if-match': etag }), 200);
    const changed = await get('from');
    expect([changed.body.toString(), changed.headers['x-amz-meta-a']]).toEqual(['source', '1']);
    expect(await textOfKey('to')).toBe('source');
  });
});

describe('conditions on the source of a copy', () => {
  const EARLY = 'Sun, 06 Nov 1994 08:49:37 GMT';
  const TOMORROW = new Date(Date.now() + 86_400_000).toUTCString();
  let etag: string;
  beforeAll(async () => {
    etag = `"${await api.put(bucket, 'source', 'source')}"`;
  });

  test.each<[string, () => Headers, string | undefined]>([
    ['If-Match holds', () => ({ 'if-match': etag }), undefined],
    ['If-Match', () => ({ 'if-match': '"0"' }), 'If-Match'],
    ['If-None-Match holds', () => ({ 'if-none-match': '"0"' }), undefined],
    ['If-None-Match', () => ({ 'if-none-match': etag }), 'If-None-Match'],
    ['If-Modified-Since holds', () => ({ 'if-modified-since': EARLY }), undefined],
    ['If-Modified-Since', () => ({ 'if-modified-since': new Date().toUTCString() }), 'If-Modified-Since'],
    ['If-Modified-Since: tomorrow is ignored', () => ({ 'if-modified-since': TOMORROW }), undefined],
    ['If-Unmodified-Since', () => ({ 'if-unmodified-since': EARLY }), 'If-Unmodified-Since'],
    ['If-Match outranks it', () => ({ 'if-match': etag, 'if-unmodified-since': EARLY }), undefined],
    [
      'If-None-Match outranks',
      () => ({ 'if-none-match': etag, 'if-modified-since': EARLY }),
      'If-None-Match',
    ],
  ])('%s', async (_name, conditions, failed) => {
    const headers: Headers = { 'x-amz-copy-source': `${bucket}/source` };
    for (const [name, value] of Object.entries(conditions())) headers[`x-amz-copy-source-${name}`] = value;
    const upload = await beginUpload(api, { bucket, key: 'copy' });
    for (const path of [pathOf(bucket, 'copy'), uploadPath(upload, 'partNumber=1&')]) {
      const answer = await api.send({ method: 'PUT', path, headers });
      if (failed === undefined) expectStatus(answer, 200);
      else expectError(answer, { ...FAILED, Condition: `x-amz-copy-source-${failed}` });
    }
  });
});

describe('s3-behaviour 28: races are decided by the commit', () => {
  test('readers see the old object during a conditional PUT; of two with one ETag the first to commit wins', async () => {
    const etag = `"${await api.put(bucket, 'race', 'old')}"`;
    const body = new PassThrough();
    body.write('slo');
    const headers = { 'if-match': etag, 'content-length': '4' };
    const slow = api.send({ method: 'PUT', path: pathOf(bucket, 'race'), headers, body });
    expect(await textOfKey('race')).toBe('old');
    expectStatus(await put('race', 'fast', { 'if-match': etag }), 200);
    expect(await textOfKey('race')).toBe('fast');
    body.end('w');
    expectError(await slow, FAILED);
    expect(await textOfKey('race')).toBe('fast');
  });

  test('a PUT that must fail is refused before its body is requested', async () => {
    await api.put(bucket, 'early', 'there');
    let socket = await openSocket(api.server);
    const answerTo = async (key: string, condition: Headers) => {
      socket.destroy();
      socket = await openSocket(api.server);
      const headers = { ...condition, 'content-length': '4', expect: '100-continue' };
      socket.write(headOf(api.server, { method: 'PUT', path: pathOf(bucket, key), headers }));
      return socket.answer();
    };
    expect((await answerTo('early', { 'if-none-match': '*' }))?.status).toBe(412);
    expect((await answerTo('early', { 'if-match': '"0"' }))?.status).toBe(412);
    expect((await answerTo('never', { 'if-match': '*' }))?.status).toBe(404);
    expect((await answerTo('early', { 'if-match': '*' }))?.status).toBe(100);
    socket.write('next');
    expect((await socket.answer())?.status).toBe(200);
    expect(await textOfKey('early')).toBe('next');
    socket.destroy();
  });

  test('a PUT that must fail, with a body that is sent at once, is read to its end so that its client gets the answer', async () => {
    await api.put(bucket, 'early', 'there');
    const socket = await openSocket(api.server);
    const body = Buffer.alloc(4 * 1024 ** 2, 'x');
    const headers = { 'if-none-match': '*', 'content-length': String(body.length) };
    for (const _ of [1, 2]) {
      socket.write(headOf(api.server, { method: 'PUT', path: pathOf(bucket, 'early'), headers }));
      socket.write(body);
      const answer = await socket.answer();
      expect([answer?.status, answer?.headers.get('connection')]).toEqual([412, 'keep-alive']);
    }
    socket.destroy();
    expect(await textOfKey('early')).toBe('there');
  });

  test('of many racing creators exactly one wins', async () => {
    const bodies = Array.from({ length: 24 }, (_, index) => `creator ${index}`);
    const answers = await Promise.all(bodies.map((body) => put('created', body, { 'if-none-match': '*' })));
    const winners = bodies.filter((_, index) => answers[index]?.status === 200);
    expect(winners).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 412)).toHaveLength(23);
    expect(await textOfKey('created')).toBe(winners[0]);
  });
});
