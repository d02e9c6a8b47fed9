// How long a body is: said before it comes, or told by the end of its chunks; and the refusals of requests that do neither, or
// say it wrongly.
import { createHash, randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { beforeAll, describe, expect, test } from 'vitest';
import { beginUpload, sendComplete, uploadPath } from '../support/servers/multipart.ts';
import type { RawAnswer } from '../support/servers/raw-s3.ts';
import { headOf, openSocket } from '../support/servers/raw-socket.ts';
import { expectError, expectStatus, useApi } from '../support/servers/s3-api.ts';
import { presign } from '../support/servers/s3-client.ts';

const api = useApi();
let path: string;
beforeAll(async () => {
  path = `/${await api.makeBucket()}/key`;
});

/** A signed PUT with these headers and no others, its body as it stands. */
async function put(headers: Record<string, string>, body = '0123456789'): Promise<RawAnswer> {
  const connection = await openSocket(api.server);
  connection.write(headOf(api.server, { method: 'PUT', path, headers }) + body);
  const answer = await connection.answer();
  connection.destroy();
  expect(answer).toBeDefined();
  return {
    status: answer?.status ?? 0,
    headers: Object.fromEntries(answer?.headers ?? []),
    body: Buffer.from(answer?.body ?? ''),
  };
}

async function expectAbsent(): Promise<void> {
  expectStatus(await api.send({ method: 'HEAD', path }), 404);
}

test('no length', async () => {
  expectError(await put({}), { status: 411, code: 'MissingContentLength' });
  await expectAbsent();
});

describe('Transfer-Encoding: chunked without a length is a body of unknown size', () => {
  // Chunks of the store, and some bytes.
  const body = randomBytes(9 * 1024 * 1024 + 5);
  const sha256 = createHash('sha256').update(body).digest('hex');
  const etag = `"${createHash('md5').update(body).digest('hex')}"`;
  const stream = (bytes = body) => Readable.from([bytes.subarray(0, 70_000), bytes.subarray(70_000)]);
  const stored = async (at: string) => (await api.send({ method: 'GET', path: at })).body;

  test.each<[string, Record<string, string>]>([
    ['an unsigned payload', {}],
    ['the hash of the payload', { 'x-amz-content-sha256': sha256 }],
    ['its MD5', { 'content-md5': createHash('md5').update(body).digest('base64') }],
    ['Expect: 100-continue', { expect: '100-continue' }],
  ])('PutObject with %s', async (_what, headers) => {
    const answer = await api.send({ method: 'PUT', path: `${path}-stream`, headers, body: stream() });
    expectStatus(answer, 200);
    expect(answer.headers.etag).toBe(etag);
    expect((await stored(`${path}-stream`)).equals(body)).toBe(true);
  });

  test('PutObject by a presigned URL, as `| curl -T - URL` sends it', async () => {
    const { host } = new URL(api.server.endpoint);
    const signing = { credentials: api.server, nowMs: Date.now(), expiresSeconds: 60 };
    const uri = presign({ method: 'PUT', uri: `${path}-piped`, headers: { host }, ...signing });
    const connection = await openSocket(api.server);
    const headers = `Host: ${host}\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n`;
    connection.write(`PUT ${uri} HTTP/1.1\r\n${headers}\r\n`);
    expect((await connection.answer())?.status).toBe(100);
    connection.write('6\r\nINSERT\r\n5;a=b\r\n INTO\r\n0\r\nX-Trailer: 1\r\n\r\n');
    expect((await connection.answer())?.status).toBe(200);
    // The connection goes on.
    connection.write(headOf(api.server, { method: 'GET', path: `${path}-piped` }));
    expect((await connection.answer())?.body).toBe('INSERT INTO');
    connection.destroy();
  });

  test('an empty body is an empty object', async () => {
    expectStatus(await put({ 'transfer-encoding': 'chunked' }, '0\r\n\r\n'), 200);
    expect((await stored(path)).length).toBe(0);
    await api.send({ method: 'DELETE', path });
  });

  test('UploadPart', async () => {
    const [, bucket = '', key = ''] = path.split('/');
    const upload = await beginUpload(api, { bucket, key: `${key}-parts` });
    const at = uploadPath(upload, 'partNumber=1&');
    const part = await api.send({ method: 'PUT', path: at, body: stream() });
    expectStatus(part, 200);
    expect(part.headers.etag).toBe(etag);
    const etagOfPart = etag.replaceAll('"', '');
    expectStatus(await sendComplete(api, upload, [{ partNumber: 1, etag: etagOfPart }]), 200);
    expect((await stored(`${path}-parts`)).equals(body)).toBe(true);
  });

  test('AppendObject, small and large', async () => {
    const at = `${path}-log`;
    expectStatus(await api.send({ method: 'PUT', path: at, body: Buffer.from('first ') }), 200);
    for (const next of [Buffer.from('second '), body, Buffer.alloc(0)]) {
      expectStatus(await api.send({ method: 'PUT', path: `${at}?append`, body: stream(next) }), 200);
    }
    expect((await stored(at)).equals(Buffer.concat([Buffer.from('first second '), body]))).toBe(true);
  });

  test('another hash than that of the payload', async () => {
    const headers = { 'x-amz-content-sha256': '0'.repeat(64) };
    const answer = await api.send({ method: 'PUT', path, headers, body: stream() });
    expectError(answer, { status: 400, code: 'XAmzContentSHA256Mismatch' });
    await expectAbsent();
  });

  test('a cut body is not stored', async () => {
    const connection = await openSocket(api.server);
    connection.write(
      headOf(api.server, { method: 'PUT', path, headers: { 'transfer-encoding': 'chunked' } }),
    );
    connection.write('5\r\nhello\r\n');
    connection.end();
    expect((await connection.answer())?.body).toContain('<Code>IncompleteBody</Code>');
    await connection.closed;
    await expectAbsent();
  });

  test.each(['gzip, chunked', 'identity', 'xchunked'])('%s is another coding', async (coding) => {
    const answer = await put({ 'transfer-encoding': coding }, 'a\r\n0123456789\r\n0\r\n\r\n');
    expectError(answer, { status: 501, code: 'NotImplemented' });
    await expectAbsent();
  });

  test('a document needs its length', async () => {
    const document = Readable.from(['<Tagging><TagSet/></Tagging>']);
    const answer = await api.send({ method: 'PUT', path: `${path}-stream?tagging`, body: document });
    expectError(answer, { status: 501, code: 'NotImplemented' });
  });

  test('aws-chunked needs the length of its payload', async () => {
    const headers = {
      'transfer-encoding': 'chunked',
      'x-amz-content-sha256': 'STREAMING-UNSIGNED-PAYLOAD-TRAILER',
    };
    expectError(await put(headers, '5\r\n0\r\n\r\n\r\n0\r\n\r\n'), {
      status: 411,
      code: 'MissingContentLength',
    });
    await expectAbsent();
  });
});

test.each(['-1', 'ten', '1e3', '10, 10', '10 10'])('Content-Length: %s', async (length) => {
  expectStatus(await put({ 'content-length': length }), 400);
  await expectAbsent();
});
