// Both versions of signatures over HTTP: presigned URLs, bodies and what vouches for them, what the log and the metrics
// say of each, and the switch that refuses version 2. The readers and the strings to sign are tested beside their code.
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ownServerTest } from '../support/servers/own-server-test.ts';
import { type RawAnswer, type RawRequest, sendBare } from '../support/servers/raw-s3.ts';
import { expectError, expectStatus, useApi } from '../support/servers/s3-api.ts';
import { chunkedBody, presign } from '../support/servers/s3-client.ts';
import { presignV2, signHeadersV2 } from '../support/servers/sigv2-client.ts';
import { startServer, type TestServer } from '../support/servers/start-server.ts';

const api = useApi();
let bucket: string;
beforeAll(async () => {
  bucket = await api.makeBucket();
  await api.put(bucket, 'key', 'found');
});

type Wanted = Omit<RawRequest, 'body' | 'agent'> & { body?: Buffer; resource?: string };

/** Signed by version 2; the resource is the path, unless told. */
function sendV2(wanted: Wanted, at: TestServer = api.server): Promise<RawAnswer> {
  const { method, path, resource = path, headers = {}, body } = wanted;
  const length = body === undefined ? {} : { 'content-length': String(body.length) };
  const signed = signHeadersV2({ method, resource, headers, credentials: at, nowMs: Date.now() });
  return sendBare(at, { method, path, headers: { ...signed, ...length }, ...(body && { body }) });
}

const md5 = (body: Buffer) => createHash('md5').update(body).digest('base64');
const denied = { status: 403, code: 'AccessDenied' } as const;
const lastLine = () => api.server.logs().findLast(({ event }) => event === 'request');

describe('version 2', () => {
  const body = Buffer.from('signed by version 2');

  ownServerTest('writes, reads, lists and deletes; the log tells', async () => {
    const path = `/${bucket}/v2%20key`;
    const headers = { 'content-md5': md5(body), 'content-type': 'text/x', 'x-amz-meta-a': 'b' };
    expectStatus(await sendV2({ method: 'PUT', path, body, headers }), 200);
    expect(lastLine()).toMatchObject({ operation: 'PutObject', signatureVersion: 'SigV2' });
    const got = await sendV2({ method: 'GET', path: `${path}?response-content-type=a/b` });
    expect([got.body.toString(), got.headers['content-type'], got.headers['x-amz-meta-a']]).toEqual([
      body.toString(),
      'a/b',
      'b',
    ]);
    const listed = await sendV2({ method: 'GET', path: `/${bucket}?prefix=v2`, resource: `/${bucket}/` });
    expect(listed.body.toString()).toContain('<Key>v2 key</Key>');
    expectStatus(await sendV2({ method: 'DELETE', path }), 204);
    await api.send({ method: 'GET', path: `/${bucket}/key` });
    expect(lastLine()).toMatchObject({ operation: 'GetObject', signatureVersion: 'SigV4' });
    await api.sendAnonymous({ method: 'GET', path: `/${bucket}/key` });
    expect(lastLine()).not.toHaveProperty('signatureVersion', expect.anything());
    const metrics = (await fetch(`${api.server.endpoint}/metrics`)).text();
    expect(await metrics).toMatch(/^holdfast_s3_signatures_total\{version="SigV2"\} [1-9]/m);
  });

  test('a body that does not match its digests is not stored', async () => {
    const put = (headers: Record<string, string>) =>
      sendV2({ method: 'PUT', path: `/${bucket}/digests`, body, headers });
    const other = Buffer.from('another');
    expectError(await put({ 'content-md5': md5(other) }), { status: 400, code: 'BadDigest' });
    const sha256 = createHash('sha256').update(other).digest('hex');
    expectError(await put({ 'x-amz-content-sha256': sha256 }), {
      status: 400,
      code: 'XAmzContentSHA256Mismatch',
    });
    expectStatus(await api.send({ method: 'HEAD', path: `/${bucket}/digests` }), 404);
  });

  test('unsigned chunks with a trailer are accepted, signed ones are not possible', async () => {
    const trailer = {
      name: 'x-amz-checksum-sha256',
      value: createHash('sha256').update(body).digest('base64'),
    };
    const headers = {
      'x-amz-decoded-content-length': String(body.length),
      'content-encoding': 'aws-chunked',
      'x-amz-trailer': trailer.name,
    };
    const unsigned = 'STREAMING-UNSIGNED-PAYLOAD-TRAILER';
    const path = `/${bucket}/chunked`;
    const chunked = chunkedBody({ body, chunkBytes: 8192, trailer });
    const put = (form: string) =>
      sendV2({ method: 'PUT', path, body: chunked, headers: { ...headers, 'x-amz-content-sha256': form } });
    expectStatus(await put(unsigned), 200);
    expect((await sendV2({ method: 'GET', path })).body.equals(body)).toBe(true);
    expectError(await put('STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER'), denied);
  });

  test('another account signs for itself', async () => {
    const stranger = await api.makeAccount();
    const path = `/${bucket}/key`;
    const headers = signHeadersV2({
      method: 'GET',
      resource: path,
      credentials: stranger,
      nowMs: Date.now(),
    });
    expectError(await sendBare(api.server, { method: 'GET', path, headers }), denied);
  });
});

describe('presigned URLs', () => {
  const nowSeconds = () => Math.floor(Date.now() / 1000);
  const urlV2 = (method: string, expires: number, path = `/${bucket}/key`) =>
    `${path}?${presignV2({ method, resource: path, credentials: api.server, expires })}`;
  const urlV4 = (expiresSeconds: number, nowMs = Date.now()) =>
    presign({
      method: 'GET',
      uri: `/${bucket}/key`,
      headers: { host: new URL(api.server.endpoint).host },
      credentials: api.server,
      nowMs,
      expiresSeconds,
    });
  const get = (path: string) => api.sendAnonymous({ method: 'GET', path });

  ownServerTest('both versions are taken', async () => {
    for (const path of [urlV2('GET', nowSeconds() + 60), urlV4(60)]) {
      expect((await get(path)).body.toString()).toBe('found');
      expect(lastLine()).toMatchObject({ operation: 'GetObject', status: 200 });
    }
  });

  test('s3-behaviour 12: an expiry of zero, negative, beyond seven days or in the past is 403', async () => {
    for (const seconds of [0, -1, 7 * 86_400 + 1]) expectError(await get(urlV4(seconds)), denied);
    expectError(await get(urlV4(60, Date.now() - 61_000)), denied);
    for (const expires of [0, -1, nowSeconds() - 1, 2 ** 31])
      expectError(await get(urlV2('GET', expires)), denied);
  });

  test('s3-behaviour 13: OPTIONS on one needs an Origin', async () => {
    for (const path of [urlV2('GET', nowSeconds() + 60), urlV4(60)]) {
      expectError(await api.sendAnonymous({ method: 'OPTIONS', path }), { status: 400, code: 'BadRequest' });
      const headers = { origin: 'https://example.com' };
      expectStatus(await api.sendAnonymous({ method: 'OPTIONS', path, headers }), 200);
    }
  });

  test('headers in the query are accepted as headers, or refused', async () => {
    const put = (more: string, resource = `/${bucket}/hoisted`) => {
      const headers = { 'x-amz-meta-a': decodeURIComponent(more) };
      const query = presignV2({
        method: 'PUT',
        resource,
        headers,
        credentials: api.server,
        expires: 2_000_000_000,
      });
      return sendBare(api.server, {
        method: 'PUT',
        path: `/${bucket}/hoisted?x-amz-meta-a=${more}&${query}`,
        headers: { 'content-length': '1' },
        body: Buffer.from('x'),
      });
    };
    expectError(await put('b%0Ac'), { status: 400, code: 'InvalidArgument' });
    expectStatus(await put('b%20c'), 200);
    const head = await api.send({ method: 'HEAD', path: `/${bucket}/hoisted` });
    expect([head.status, head.headers['x-amz-meta-a']]).toEqual([200, 'b c']);
  });

  test('one of version 2 lacks a parameter, or is for another method', async () => {
    const url = urlV2('GET', nowSeconds() + 60);
    for (const gone of [/AWSAccessKeyId=[^&]*&/, /Expires=[^&]*&/, /&Signature=.*/]) {
      expectError(await get(url.replace(gone, '')), denied);
    }
    expectError(await api.sendAnonymous({ method: 'DELETE', path: url }), {
      status: 403,
      code: 'SignatureDoesNotMatch',
    });
  });
});

describe('with version 2 disabled', () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer({ settings: { signatureV2: 'off' } });
  });
  afterAll(() => server.stop());

  ownServerTest('its headers and its queries are refused, good or not, and version 4 is taken', async () => {
    const refused = { status: 400, code: 'InvalidRequest' } as const;
    expectError(await sendV2({ method: 'GET', path: '/' }, server), refused);
    const query = presignV2({ method: 'GET', resource: '/', credentials: server, expires: 2_000_000_000 });
    const answer = await sendBare(server, { method: 'GET', path: `/?${query}` });
    expectError(answer, refused);
    expect(answer.body.toString()).toContain('Please use AWS4-HMAC-SHA256.');
    expectStatus(await api.send({ method: 'GET', path: '/' }, server), 200);
  });
});
