// GetSosObject and HeadSosObject: the virtual objects of Veeam's SOSAPI, in every bucket unless the setting takes them away.
import { createHash } from 'node:crypto';
import { GetObjectCommand, HeadObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { must } from '../../src/base/assert.ts';
import { parseXml, textOf } from '../../src/base/xml/parse-xml.ts';
import { readVersion } from '../../src/platform/version.ts';
import { ownServerTest } from '../support/servers/own-server-test.ts';
import { type RawAnswer, send } from '../support/servers/raw-s3.ts';
import { expectError, expectStatus, useApi, xmlOf } from '../support/servers/s3-api.ts';
import { startServer, type TestServer } from '../support/servers/start-server.ts';

const FOLDER = '.system-d26a9498-cb7c-4a87-a44a-8ae204f5ba6c';
const SYSTEM = `${FOLDER}/system.xml`;
const CAPACITY = `${FOLDER}/capacity.xml`;

const api = useApi();
let bucket: string;
beforeAll(async () => {
  bucket = await api.makeBucket();
});

const read = (method: string, key: string, headers: Record<string, string> = {}, query = '') =>
  api.send({ method, path: `/${bucket}/${key}${query}`, headers });
const md5 = (bytes: Buffer) => createHash('md5').update(bytes).digest('hex');

function numbersOf(answer: RawAnswer): { capacity: number; available: number; used: number } {
  const root = xmlOf(answer);
  const number = (name: string) => Number(must(textOf(root, name), `${name} is there`));
  return { capacity: number('Capacity'), available: number('Available'), used: number('Used') };
}

test('system.xml says what the store can do, with its values in quotes', async () => {
  const answer = await read('GET', SYSTEM);
  expectStatus(answer, 200);
  expect(answer.body.toString()).toBe(
    '<?xml version="1.0" encoding="UTF-8"?>\n' +
      `<SystemInfo><ProtocolVersion>"1.0"</ProtocolVersion><ModelName>"Holdfast ${readVersion()}"</ModelName>` +
      '<ProtocolCapabilities><CapacityInfo>true</CapacityInfo><UploadSessions>false</UploadSessions>' +
      '<IAMSTS>false</IAMSTS></ProtocolCapabilities><SystemRecommendations>' +
      '<S3ConcurrentTaskLimit>64</S3ConcurrentTaskLimit><S3MultiObjectDeleteLimit>1000</S3MultiObjectDeleteLimit>' +
      '<KbBlockSize>1024</KbBlockSize></SystemRecommendations></SystemInfo>',
  );
  expect(answer.headers).toMatchObject({
    'content-type': 'application/xml',
    'content-length': String(answer.body.length),
    etag: `"${md5(answer.body)}"`,
    'accept-ranges': 'bytes',
  });
  expect(answer.headers).not.toHaveProperty('x-amz-version-id');
  expect(Date.parse(answer.headers['last-modified'] ?? '')).toBeLessThanOrEqual(Date.now());
});

test('capacity.xml has the room of the disk, in parts that make up the whole', async () => {
  const answer = await read('GET', CAPACITY);
  expectStatus(answer, 200);
  const { capacity, available, used } = numbersOf(answer);
  expect(capacity).toBeGreaterThan(0);
  expect([available >= 0, used > 0, available + used === capacity]).toEqual([true, true, true]);
});

test('both are the same in every bucket, and no listing has them', async () => {
  const other = await api.makeBucket();
  const there = await api.send({ method: 'GET', path: `/${other}/${SYSTEM}` });
  expect(there.body.equals((await read('GET', SYSTEM)).body)).toBe(true);
  expect(await api.keysOf(other)).toEqual([]);
});

test.each([SYSTEM, CAPACITY])('HEAD of %s says what GET says', async (key) => {
  const [got, headed] = [await read('GET', key), await read('HEAD', key)];
  expectStatus(headed, 200);
  expect(headed.body).toHaveLength(0);
  for (const name of ['content-length', 'content-type', 'accept-ranges']) {
    expect(headed.headers[name]).toBe(got.headers[name]);
  }
  expect(headed.headers.etag).toMatch(/^"[0-9a-f]{32}"$/);
});

test('the SDK reads both as objects', async () => {
  const got = await api.s3.send(new GetObjectCommand({ Bucket: bucket, Key: SYSTEM }));
  const text = must(await got.Body?.transformToString(), 'it has a body');
  expect(parseXml(Buffer.from(text), { depthMax: 8 }).name).toBe('SystemInfo');
  const headed = await api.s3.send(new HeadObjectCommand({ Bucket: bucket, Key: CAPACITY }));
  expect(headed.ContentType).toBe('application/xml');
});

test.each(['GET', 'HEAD'])('%s takes ranges and conditions', async (method) => {
  const { headers, body } = await read('GET', SYSTEM);
  const etag = must(headers.etag, 'it has one');
  const part = await read(method, SYSTEM, { range: 'bytes=2-4' });
  expect([part.status, part.headers['content-range'], part.headers['content-length']]).toEqual([
    206,
    `bytes 2-4/${body.length}`,
    '3',
  ]);
  if (method === 'GET') expect(part.body.toString()).toBe('xml');
  expect((await read(method, SYSTEM, { range: 'bytes=5000-' })).status).toBe(416);
  expect((await read(method, SYSTEM, { range: 'bytes=2-4', 'if-range': '"other"' })).status).toBe(200);
  const unchanged = await read(method, SYSTEM, { 'if-none-match': etag });
  expect([unchanged.status, unchanged.headers.etag]).toEqual([304, etag]);
  expect((await read(method, SYSTEM, { 'if-match': etag })).status).toBe(200);
  expect((await read(method, SYSTEM, { 'if-match': '"other"' })).status).toBe(412);
  // Another gateway may have started later.
  const since = new Date().toUTCString();
  expect((await read(method, SYSTEM, { 'if-modified-since': since })).status).toBe(304);
});

test('headers of the answer are replaced as with any object', async () => {
  const answer = await read('GET', SYSTEM, {}, '?response-content-type=text%2Fplain');
  expect([answer.status, answer.headers['content-type']]).toEqual([200, 'text/plain']);
});

test('it takes the right to read that key, in a bucket that is there', async () => {
  const denied = { status: 403, code: 'AccessDenied' } as const;
  expectError(
    await api.send({ method: 'GET', path: `/${bucket}/${SYSTEM}` }, await api.makeAccount()),
    denied,
  );
  expectError(await api.sendAnonymous({ method: 'GET', path: `/${bucket}/${CAPACITY}` }), denied);
  const nowhere = await api.send({ method: 'GET', path: `/no-such-bucket-here/${SYSTEM}` });
  expectError(nowhere, { status: 404, code: 'NoSuchBucket' });
});

test('a bucket that everybody may read says nothing of the server to anonymous callers', async () => {
  const shared = await api.makeBucket();
  const statement = {
    Effect: 'Allow',
    Principal: '*',
    Action: 's3:GetObject',
    Resource: `arn:aws:s3:::${shared}/*`,
  };
  const body = Buffer.from(JSON.stringify({ Version: '2012-10-17', Statement: [statement] }));
  expectStatus(await api.send({ method: 'PUT', path: `/${shared}?policy`, body }), 204);
  await api.put(shared, 'plain', 'bytes');
  expectStatus(await api.sendAnonymous({ method: 'GET', path: `/${shared}/plain` }), 200);
  for (const key of [SYSTEM, CAPACITY]) {
    const path = `/${shared}/${key}`;
    expectError(await api.sendAnonymous({ method: 'GET', path }), { status: 403, code: 'AccessDenied' });
    expect((await api.sendAnonymous({ method: 'HEAD', path })).status).toBe(403);
    expectStatus(await api.send({ method: 'GET', path }, await api.makeAccount()), 200);
  }
});

test('what is stored under the key stays behind the virtual object, and is reached by its version', async () => {
  const enabled = '<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>';
  const at = `/${await api.makeBucket()}`;
  const ask = (method: string, rest: string, body?: string) =>
    api.send({ method, path: at + rest, ...(body !== undefined && { body: Buffer.from(body) }) });
  expectStatus(await ask('PUT', '?versioning', enabled), 200);
  const written = await ask('PUT', `/${SYSTEM}`, 'stored');
  expectStatus(written, 200);
  const versionId = written.headers['x-amz-version-id'];
  expect(await api.keysOf(at.slice(1))).toEqual([SYSTEM]);
  expect(xmlOf(await ask('GET', `/${SYSTEM}`)).name).toBe('SystemInfo');
  expect((await ask('GET', `/${SYSTEM}?versionId=${versionId}`)).body.toString()).toBe('stored');
  expectStatus(await ask('DELETE', `/${SYSTEM}?versionId=${versionId}`), 204);
  expect(await api.keysOf(at.slice(1))).toEqual([]);
  expect(xmlOf(await ask('GET', `/${SYSTEM}`)).name).toBe('SystemInfo');
});

test('other keys of the folder, and what is asked beside reading, are of stored objects', async () => {
  const absent = { status: 404, code: 'NoSuchKey' } as const;
  expectError(await read('GET', `${FOLDER}/other.xml`), absent);
  expectError(await read('GET', SYSTEM, {}, '?tagging'), absent);
  expectError(await read('GET', SYSTEM, {}, '?partNumber=1'), absent);
});

let without: TestServer | undefined;
afterAll(() => without?.stop());

ownServerTest('a server with the setting off has only what is stored', async () => {
  const server = await startServer({ settings: { sosapi: 'off' } });
  without = server;
  const ask = (method: string, path: string, body?: string) =>
    send(server, { method, path, ...(body !== undefined && { body: Buffer.from(body) }) });
  expectStatus(await ask('PUT', '/vault'), 200);
  for (const key of [SYSTEM, CAPACITY]) {
    expectError(await ask('GET', `/vault/${key}`), { status: 404, code: 'NoSuchKey' });
    expect((await ask('HEAD', `/vault/${key}`)).status).toBe(404);
  }
  await ask('PUT', `/vault/${SYSTEM}`, 'stored');
  expect((await ask('GET', `/vault/${SYSTEM}`)).body.toString()).toBe('stored');
});
