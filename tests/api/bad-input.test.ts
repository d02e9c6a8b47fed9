// Requests that no client should send: each gets its exact error, stores nothing, and is never a 500 (useApi checks
// that). One row each. Refusals of one operation only are in that operation's file; broken connections and heads that
// are no HTTP are in src/gateway/http/server.test.ts.
import { createHash } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import type { ErrorCode } from '../../src/types/errors.ts';
import { openSocket, type SocketAnswer } from '../support/servers/raw-socket.ts';
import { expectError, expectStatus, useApi } from '../support/servers/s3-api.ts';
import { chunkedBody, presign, sha256Hex, signHeaders } from '../support/servers/s3-client.ts';

const api = useApi();
const KEY = 'refused';
const BODY = Buffer.from('some bytes to store');
const HOUR_MS = 3_600_000;
let bucket: string;
let path: string;
beforeAll(async () => {
  bucket = await api.makeBucket();
  path = `/${bucket}/${KEY}`;
});

interface Crafted {
  method?: string;
  uri?: string;
  /** Signed. */
  headers?: Record<string, string>;
  /** Put on, or in place of others, after signing. */
  unsigned?: Record<string, string>;
  body?: Buffer | string;
  nowMs?: number;
  secretKey?: string;
  accessKey?: string;
  signedNames?: readonly string[];
}

const hostOf = () => new URL(api.server.endpoint).host;
const digestOf = (algorithm: string, bytes = BODY) => createHash(algorithm).update(bytes).digest('base64');

/** Sends exactly these bytes on a connection of their own. */
async function exchange(head: string, body: Buffer | string): Promise<SocketAnswer | undefined> {
  const socket = await openSocket(api.server);
  socket.write(Buffer.concat([Buffer.from(head, 'latin1'), Buffer.from(body)]));
  const answer = await socket.answer();
  socket.destroy();
  return answer;
}

function headOf(method: string, uri: string, headers: Readonly<Record<string, string>>): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${uri} HTTP/1.1\r\n${lines.join('')}\r\n`;
}

async function put(crafted: Crafted): Promise<SocketAnswer | undefined> {
  const { method = 'PUT', uri = path, body = BODY, unsigned = {} } = crafted;
  const { headers } = signHeaders({
    method,
    uri,
    headers: {
      host: hostOf(),
      'content-length': String(Buffer.byteLength(body)),
      'x-amz-content-sha256': 'UNSIGNED-PAYLOAD',
      ...crafted.headers,
    },
    credentials: {
      accessKey: crafted.accessKey ?? api.server.accessKey,
      secretKey: crafted.secretKey ?? api.server.secretKey,
    },
    nowMs: crafted.nowMs ?? Date.now(),
    ...(crafted.signedNames && { signedNames: crafted.signedNames }),
  });
  return exchange(headOf(method, uri, { ...headers, ...unsigned }), body);
}

async function expectRefusal(
  answer: SocketAnswer | undefined,
  status: number,
  code: ErrorCode,
): Promise<void> {
  const told = /<Code>(\w+)<\/Code>/.exec(answer?.body ?? '')?.[1];
  expect([answer?.status, told], answer?.body).toEqual([status, code]);
  expect(await api.keysOf(bucket)).toEqual([]);
}

test('the requests of this file are valid before they are changed', async () => {
  expect((await put({ uri: `/${bucket}/good` }))?.status).toBe(200);
  expectStatus(await api.send({ method: 'DELETE', path: `/${bucket}/good` }), 204);
});

describe('signatures', () => {
  test.each<[string, Crafted, number, ErrorCode]>([
    ['a wrong secret', { secretKey: 'wrong' }, 403, 'SignatureDoesNotMatch'],
    ['an unknown key', { accessKey: 'HFUNKNOWN' }, 403, 'InvalidAccessKeyId'],
    [
      'a changed header',
      { headers: { 'x-amz-meta-a': '1' }, unsigned: { 'x-amz-meta-a': '2' } },
      403,
      'SignatureDoesNotMatch',
    ],
    ['an unsigned header', { unsigned: { 'x-amz-meta-a': '2' } }, 403, 'AccessDenied'],
    ['the host unsigned', { signedNames: ['x-amz-content-sha256', 'x-amz-date'] }, 403, 'AccessDenied'],
    ['an hour ago', { nowMs: Date.now() - HOUR_MS }, 403, 'RequestTimeTooSkewed'],
    ['in an hour', { nowMs: Date.now() + HOUR_MS }, 403, 'RequestTimeTooSkewed'],
    ['a bad date', { unsigned: { 'x-amz-date': 'tomorrow' } }, 403, 'AccessDenied'],
    ['an empty date', { unsigned: { 'x-amz-date': '' } }, 403, 'AccessDenied'],
    ['before 1970', { unsigned: { 'x-amz-date': '19500101T000000Z' } }, 403, 'AccessDenied'],
    ['no authorization', { unsigned: { authorization: '' } }, 403, 'AccessDenied'],
    ['another scheme', { unsigned: { authorization: 'Bearer x' } }, 400, 'InvalidArgument'],
    [
      'half an authorization',
      { unsigned: { authorization: 'AWS4-HMAC-SHA256 Credential=a' } },
      400,
      'AuthorizationHeaderMalformed',
    ],
    ['SigV2 by an unknown key', { unsigned: { authorization: 'AWS key:c2ln' } }, 403, 'InvalidAccessKeyId'],
    ['a session token', { headers: { 'x-amz-security-token': 't' } }, 400, 'InvalidToken'],
    ['a digest that is none', { headers: { 'x-amz-content-sha256': 'abc' } }, 400, 'InvalidArgument'],
    [
      'the digest of another body',
      { headers: { 'x-amz-content-sha256': sha256Hex('x') } },
      400,
      'XAmzContentSHA256Mismatch',
    ],
  ])('%s', async (_name, crafted, status, code) => {
    await expectRefusal(await put(crafted), status, code);
  });

  test.each<[string, number | string, number, number, ErrorCode]>([
    ['an expired URL', 60, -61_000, 403, 'AccessDenied'],
    ['one that lives too long', 604_801, 0, 403, 'AccessDenied'],
    ['one that never lived', 0, 0, 403, 'AccessDenied'],
    ['one of a negative life', -5, 0, 403, 'AccessDenied'],
    ['one whose life is no number', 'x', 0, 400, 'AuthorizationQueryParametersError'],
  ])('%s', async (_name, expiresSeconds, shiftMs, status, code) => {
    const headers = { host: hostOf() };
    const uri = presign({
      method: 'PUT',
      uri: path,
      headers,
      credentials: api.server,
      nowMs: Date.now() + shiftMs,
      expiresSeconds,
    });
    const head = headOf('PUT', uri, { ...headers, 'content-length': String(BODY.length) });
    await expectRefusal(await exchange(head, BODY), status, code);
  });
});

describe('digests', () => {
  test.each<[string, Record<string, string>, ErrorCode]>([
    ['the MD5 of another body', { 'content-md5': digestOf('md5', Buffer.from('x')) }, 'BadDigest'],
    ['an MD5 that is none', { 'content-md5': 'AAAA' }, 'InvalidDigest'],
    ['an empty MD5', { 'content-md5': '' }, 'InvalidDigest'],
    [
      'the SHA-256 of another body',
      { 'x-amz-checksum-sha256': digestOf('sha256', Buffer.from('x')) },
      'BadDigest',
    ],
    ['a CRC of another length', { 'x-amz-checksum-crc32': 'AAA=' }, 'BadDigest'],
    ['a CRC that is no base64', { 'x-amz-checksum-crc32c': '*' }, 'BadDigest'],
    ['a wrong CRC64NVME', { 'x-amz-checksum-crc64nvme': 'AAAAAAAAAAA=' }, 'BadDigest'],
    [
      'two checksums',
      { 'x-amz-checksum-crc32': 'AAAAAA==', 'x-amz-checksum-sha1': digestOf('sha1') },
      'InvalidRequest',
    ],
    ['an announced checksum that is missing', { 'x-amz-sdk-checksum-algorithm': 'CRC32' }, 'InvalidRequest'],
    [
      'an algorithm that does not exist',
      { 'x-amz-sdk-checksum-algorithm': 'CRC16', 'x-amz-checksum-crc32': 'AAAAAA==' },
      'InvalidRequest',
    ],
  ])('%s', async (_name, headers, code) => {
    await expectRefusal(await put({ headers }), 400, code);
  });
});

describe('chunked bodies', () => {
  const SIGNED = 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD';
  const UNSIGNED = 'STREAMING-UNSIGNED-PAYLOAD-TRAILER';

  /** A chunked upload whose framing the test may bend. */
  async function upload(options: {
    form: string;
    bend?: (framed: Buffer) => Buffer;
    trailer?: { name: string; value: string };
    headers?: Record<string, string>;
    forge?: (signature: string, index: number) => string;
  }): Promise<SocketAnswer | undefined> {
    const { form, trailer, bend = (framed) => framed, forge } = options;
    const seed = signHeaders({
      method: 'PUT',
      uri: path,
      headers: {
        host: hostOf(),
        'x-amz-content-sha256': form,
        'x-amz-decoded-content-length': String(BODY.length),
        ...(trailer && { 'x-amz-trailer': trailer.name }),
        ...options.headers,
      },
      credentials: api.server,
      nowMs: Date.now(),
    });
    const body = bend(
      chunkedBody({
        body: BODY,
        chunkBytes: 8,
        ...(form !== UNSIGNED && { seed }),
        ...(trailer && { trailer }),
        ...(forge && { bend: forge }),
      }),
    );
    const socket = await openSocket(api.server);
    socket.write(headOf('PUT', path, { ...seed.headers, 'content-length': String(body.length) }));
    socket.write(body);
    const answer = await socket.answer();
    socket.destroy();
    return answer;
  }

  const replaced = (from: string | RegExp, to: string) => (framed: Buffer) =>
    Buffer.from(framed.toString('latin1').replace(from, to), 'latin1');
  const crc32 = { name: 'x-amz-checksum-crc32', value: 'AAAAAA==' };
  const sha256 = { name: 'x-amz-checksum-sha256', value: digestOf('sha256') };

  test.each<[string, Parameters<typeof upload>[0], number, ErrorCode]>([
    ['a forged chunk signature', { form: SIGNED, forge: () => '0'.repeat(64) }, 403, 'SignatureDoesNotMatch'],
    [
      'a forged last signature',
      { form: SIGNED, forge: (signature, at) => (at === 3 ? '0'.repeat(64) : signature) },
      403,
      'SignatureDoesNotMatch',
    ],
    [
      'a forged trailer signature',
      {
        form: `${SIGNED}-TRAILER`,
        trailer: sha256,
        forge: (signature, at) => (at === 4 ? '0'.repeat(64) : signature),
      },
      403,
      'SignatureDoesNotMatch',
    ],
    ['a changed byte', { form: SIGNED, bend: replaced('some', 'same') }, 403, 'SignatureDoesNotMatch'],
    [
      'chunks without signatures',
      { form: SIGNED, bend: replaced(/;chunk-signature=\w+/g, '') },
      400,
      'IncompleteBody',
    ],
    ['a wrong chunk size', { form: UNSIGNED, bend: replaced('8\r\n', '9\r\n') }, 400, 'IncompleteBody'],
    [
      'a chunk size that is none',
      { form: UNSIGNED, bend: replaced('8\r\n', 'z\r\n') },
      400,
      'IncompleteBody',
    ],
    [
      'more than 16,384 chunks of a byte',
      {
        form: UNSIGNED,
        headers: { 'x-amz-decoded-content-length': '20000' },
        bend: () => Buffer.from(`${'1\r\nx\r\n'.repeat(20_000)}0\r\n\r\n`),
      },
      403,
      'InvalidChunkSizeError',
    ],
    ['no last chunk', { form: UNSIGNED, bend: (framed) => framed.subarray(0, -5) }, 400, 'IncompleteBody'],
    ['no framing at all', { form: UNSIGNED, bend: () => BODY }, 400, 'IncompleteBody'],
    [
      'a decoded length too long',
      { form: UNSIGNED, headers: { 'x-amz-decoded-content-length': '20' } },
      400,
      'IncompleteBody',
    ],
    [
      'a decoded length too short',
      { form: UNSIGNED, headers: { 'x-amz-decoded-content-length': '18' } },
      400,
      'IncompleteBody',
    ],
    [
      'a decoded length that is none',
      { form: UNSIGNED, headers: { 'x-amz-decoded-content-length': '-1' } },
      400,
      'InvalidArgument',
    ],
    ['a trailer that does not fit', { form: UNSIGNED, trailer: crc32 }, 400, 'BadDigest'],
    [
      'a trailer that was not announced',
      { form: UNSIGNED, bend: replaced(/\r\n\r\n$/, '\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n') },
      400,
      'MalformedTrailerError',
    ],
    [
      'an announced trailer that is missing',
      { form: UNSIGNED, headers: { 'x-amz-trailer': 'x-amz-checksum-crc32' } },
      400,
      'MalformedTrailerError',
    ],
    [
      'a trailer that is no checksum',
      { form: UNSIGNED, headers: { 'x-amz-trailer': 'x-other' } },
      400,
      'InvalidRequest',
    ],
    [
      'a header and a trailer',
      { form: UNSIGNED, trailer: sha256, headers: { 'x-amz-checksum-crc32': 'AAAAAA==' } },
      400,
      'InvalidRequest',
    ],
  ])('%s', async (_name, options, status, code) => {
    await expectRefusal(await upload(options), status, code);
  });

  test.each([
    ['signed', { form: SIGNED }],
    ['signed with a trailer', { form: `${SIGNED}-TRAILER`, trailer: sha256 }],
    ['unsigned with a trailer', { form: UNSIGNED, trailer: sha256 }],
    ['unsigned without one', { form: UNSIGNED }],
  ])('as they should be: %s', async (_name, options) => {
    expect((await upload(options))?.status).toBe(200);
    const stored = await api.send({ method: 'GET', path });
    expect(stored.body.equals(BODY)).toBe(true);
    expectStatus(await api.send({ method: 'DELETE', path }), 204);
  });
});

describe('targets and features', () => {
  test.each<[string, string, string, number, ErrorCode]>([
    ['PUT', '/%zz', 'a bad escape', 400, 'InvalidURI'],
    ['PUT', '/{b}/%00', 'a NUL', 400, 'InvalidURI'],
    ['PUT', '/{b}/%FF', 'what is no UTF-8', 400, 'InvalidURI'],
    ['GET', '/{b}?prefix=%C3', 'a prefix that is no UTF-8', 400, 'InvalidURI'],
    ['PUT', '/{b}/k?torrent', 'a sub-resource of another method', 405, 'MethodNotAllowed'],
    ['PUT', '/{b}/k?annotation', 'one that is not there', 501, 'NotImplemented'],
    ['PUT', '/{b}/none?append', 'an append to what is not there', 404, 'NoSuchKey'],
    ['PUT', '/{b}/k?append&compose', 'two extensions at once', 400, 'InvalidArgument'],
    ['PUT', '/{b}/k?lifecycle', 'one of another level', 400, 'InvalidArgument'],
    ['PUT', '/{b}/k?acl&tagging', 'two at once', 400, 'InvalidArgument'],
    ['PUT', '/{b}/k?versionId=x', 'a version to write', 400, 'InvalidArgument'],
    ['POST', '/{b}/k', 'a method that objects have not', 405, 'MethodNotAllowed'],
    ['PUT', '/', 'a method that the service has not', 405, 'MethodNotAllowed'],
    ['COPY', '/{b}/k', 'a method of other protocols', 405, 'MethodNotAllowed'],
    ['MOVE', '/{b}/k', 'a rename to nowhere', 400, 'InvalidArgument'],
    ['MOVE', '/', 'a rename of everything', 405, 'MethodNotAllowed'],
  ])('%s %s: %s', async (method, uri, _name, status, code) => {
    await expectRefusal(await put({ method, uri: uri.replace('{b}', bucket) }), status, code);
  });

  test.each([
    { 'if-unmodified-since': 'Sun, 06 Nov 1994 08:49:37 GMT' },
    { 'x-amz-copy-source-if-match': '"x"' },
    { 'x-amz-server-side-encryption': 'aws:kms' },
    { 'x-amz-server-side-encryption-aws-kms-key-id': 'k' },
    { 'x-amz-object-lock-event-hold': 'ON' },
    { 'x-amz-grant-anything': 'id=1' },
  ] as Record<string, string>[])('%j is of a feature that is not there yet', async (headers) => {
    await expectRefusal(await put({ headers }), 501, 'NotImplemented');
  });

  test('the expected owner', async () => {
    await expectRefusal(
      await put({ headers: { 'x-amz-expected-bucket-owner': '999999999999' } }),
      403,
      'AccessDenied',
    );
    const answer = await api.sendAnonymous({
      method: 'GET',
      path: `/${bucket}`,
      headers: { 'x-amz-expected-bucket-owner': 'x' },
    });
    expectError(answer, { status: 403, code: 'AccessDenied' });
  });
});

describe('CORS', () => {
  const fixed = {
    'access-control-allow-headers': '*',
    'access-control-allow-methods': 'GET, HEAD, POST, PUT, DELETE, MOVE, OPTIONS',
    'access-control-allow-origin': '*',
    'access-control-expose-headers': '*',
    'access-control-max-age': '86400',
  };

  test('a preflight request to any target', async () => {
    for (const target of ['/', `/${bucket}`, `${path}?uploadId=u&partNumber=1`, '/no-such-bucket-here/k']) {
      const answer = await api.sendAnonymous({
        method: 'OPTIONS',
        path: target,
        headers: { origin: 'https://example.com' },
      });
      expectStatus(answer, 200);
      expect(answer.headers).toMatchObject(fixed);
    }
    expectError(await api.sendAnonymous({ method: 'OPTIONS', path }), { status: 400, code: 'BadRequest' });
  });

  test('every answer to a request with an Origin, errors too', async () => {
    const headers = { origin: 'null' };
    expect((await api.send({ method: 'GET', path: `/${bucket}`, headers })).headers).toMatchObject(fixed);
    expect((await api.sendAnonymous({ method: 'GET', path, headers })).headers).toMatchObject(fixed);
    expect((await api.send({ method: 'GET', path: `/${bucket}` })).headers).not.toHaveProperty(
      'access-control-allow-origin',
    );
  });
});
