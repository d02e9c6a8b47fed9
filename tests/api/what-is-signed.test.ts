// What a signature covers, over HTTP: whoever holds a presigned URL does with it what its maker meant and nothing else;
// headers and parameters that decide are there once; a path is the same however its slashes were signed.
import { randomBytes } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { signRequest } from '../../src/cli/sign-request.ts';
import { pathOf, type RawAnswer, send, sendBare } from '../support/servers/raw-s3.ts';
import { headOf, openSocket, type SocketAnswer } from '../support/servers/raw-socket.ts';
import { expectError, expectStatus, fieldsOf, useApi } from '../support/servers/s3-api.ts';
import { chunkedBody, presign, signHeaders } from '../support/servers/s3-client.ts';
import { presignV2 } from '../support/servers/sigv2-client.ts';

const api = useApi();
let bucket: string;
beforeEach(async () => {
  bucket = await api.makeBucket();
});

const hostOf = () => new URL(api.server.endpoint).host;
const denied = { status: 403, code: 'AccessDenied' } as const;
const codeOf = (answer: SocketAnswer | undefined) =>
  answer && [answer.status, /<Code>(\w+)<|"code":"(\w+)"/.exec(answer.body)?.slice(1).find(Boolean)];

/** Uses a URL that was presigned with `signed` headers, and sends `added` ones besides. */
function use(
  method: string,
  uri: string,
  {
    signed = {},
    added = {},
    body,
  }: { signed?: Record<string, string>; added?: Record<string, string>; body?: Buffer },
): Promise<RawAnswer> {
  const headers = { host: hostOf(), ...signed };
  const path = presign({
    method,
    uri,
    headers,
    credentials: api.server,
    nowMs: Date.now(),
    expiresSeconds: 60,
  });
  const length = body === undefined ? {} : { 'content-length': String(body.length) };
  return sendBare(api.server, {
    method,
    path,
    headers: { ...headers, ...length, ...added },
    ...(body && { body }),
  });
}

async function exchange(text: string): Promise<SocketAnswer | undefined> {
  const socket = await openSocket(api.server);
  socket.write(text);
  const answer = await socket.answer();
  socket.destroy();
  return answer;
}

describe('a presigned MOVE', () => {
  beforeEach(async () => {
    for (const key of ['a', 'a/1', 'b']) await api.put(bucket, key, key);
  });
  const unchanged = async () => expect(await api.keysOf(bucket)).toEqual(['a', 'a/1', 'b']);

  test('moves to its signed destination, with its signed options', async () => {
    const signed = { destination: 'b', overwrite: 'true', 'x-svc-quiet': 'true' };
    expectStatus(await use('MOVE', pathOf(bucket, 'a'), { signed }), 200);
    expect(await api.keysOf(bucket)).toEqual(['a/1', 'b']);
  });

  test.each([
    [{ destination: 'c' }, 'destination'],
    [{ destination: 'c', 'x-svc-prefix': 'true' }, 'destination, x-svc-prefix'],
  ])('without a signed Destination takes no %j', async (added, HeadersNotSigned) => {
    expectError(await use('MOVE', pathOf(bucket, 'a'), { added }), { ...denied, HeadersNotSigned });
    await unchanged();
  });

  test.each([
    [{ overwrite: 'true' }, 'overwrite'],
    [{ 'x-svc-prefix': 'true' }, 'x-svc-prefix'],
    [{ 'x-wasabi-prefix': 'true' }, 'x-wasabi-prefix'],
    [{ 'x-svc-idempotency-token': 't' }, 'x-svc-idempotency-token'],
    [{ 'if-match': '*' }, 'if-match'],
  ])('with one takes no %j besides', async (added, HeadersNotSigned) => {
    const options = { signed: { destination: 'c' }, added };
    expectError(await use('MOVE', pathOf(bucket, 'a'), options), { ...denied, HeadersNotSigned });
    const other = { signed: { destination: 'c' }, added: { destination: 'd' } };
    expectError(await use('MOVE', pathOf(bucket, 'a'), other), {
      status: 403,
      code: 'SignatureDoesNotMatch',
    });
    await unchanged();
  });

  test.each(['a  new name', 'a\tnew name'])(
    'to a key with a blank takes no other blanks: %j',
    async (destination) => {
      const options = { signed: { destination: 'a new name' }, added: { destination } };
      expectError(await use('MOVE', pathOf(bucket, 'a'), options), {
        ...denied,
        HeadersNotSigned: 'destination',
      });
      await unchanged();
      const encoded = { signed: { destination: encodeURIComponent(destination) } };
      expectStatus(await use('MOVE', pathOf(bucket, 'a'), encoded), 200);
      expect(await api.keysOf(bucket)).toEqual([destination, 'a/1', 'b'].sort());
    },
  );

  test('of a bucket renames the signed one', async () => {
    const added = { destination: `${bucket}-stolen` };
    expectError(await use('MOVE', `/${bucket}`, { added }), { ...denied, HeadersNotSigned: 'destination' });
    await unchanged();
  });

  test('by version 2, which cannot sign the destination, is refused', async () => {
    const path = pathOf(bucket, 'a');
    const query = presignV2({
      method: 'MOVE',
      resource: path,
      credentials: api.server,
      expires: 2_000_000_000,
    });
    for (const headers of [{}, { destination: 'c' }]) {
      const answer = await sendBare(api.server, { method: 'MOVE', path: `${path}?${query}`, headers });
      expectError(answer, { ...denied, HeadersNotSigned: 'destination' });
    }
    await unchanged();
  });
});

describe('other presigned extensions', () => {
  const body = Buffer.from('more');
  beforeEach(() => api.put(bucket, 'log', 'some'));

  test.each([
    [{ 'x-amz-write-offset-bytes': '0' }, 'x-amz-write-offset-bytes'],
    [{ 'x-svc-idempotency-token': 't' }, 'x-svc-idempotency-token'],
    [{ 'if-match': '*' }, 'if-match'],
  ])('an append takes no unsigned %j', async (added, HeadersNotSigned) => {
    const answer = await use('PUT', `${pathOf(bucket, 'log')}?append=`, { added, body });
    expectError(answer, { ...denied, HeadersNotSigned });
    expectStatus(await use('PUT', `${pathOf(bucket, 'log')}?append=`, { signed: {}, body }), 200);
  });

  test('a PUT cannot be turned into an append, a copy or a token', async () => {
    for (const added of [
      { 'x-amz-write-offset-bytes': '4' },
      { 'x-amz-copy-source': pathOf(bucket, 'log') },
      { 'x-svc-idempotency-token': 't' },
    ]) {
      const HeadersNotSigned = Object.keys(added).join();
      expectError(await use('PUT', pathOf(bucket, 'log'), { added, body }), { ...denied, HeadersNotSigned });
    }
    expect((await api.send({ method: 'GET', path: pathOf(bucket, 'log') })).body.toString()).toBe('some');
  });

  test('force_delete cannot be added to the deletion of a bucket', async () => {
    const uri = `/${bucket}`;
    const headers = { host: hostOf() };
    const path = presign({
      method: 'DELETE',
      uri,
      headers,
      credentials: api.server,
      nowMs: Date.now(),
      expiresSeconds: 60,
    });
    expectError(await sendBare(api.server, { method: 'DELETE', path: `${path}&force_delete=true` }), {
      status: 403,
      code: 'SignatureDoesNotMatch',
    });
    const query = presignV2({
      method: 'DELETE',
      resource: `${uri}/`,
      credentials: api.server,
      expires: 2_000_000_000,
    });
    const answer = await sendBare(api.server, {
      method: 'DELETE',
      path: `${uri}?${query}&force_delete=true`,
    });
    expectError(answer, { status: 403, code: 'SignatureDoesNotMatch' });
  });
});

test('SigV2: a granted version cannot be hidden in the value of another parameter', async () => {
  await api.put(bucket, 'k', 'now');
  const resource = `${pathOf(bucket, 'k')}?response-content-type=x&versionId=null`;
  const query = presignV2({ method: 'GET', resource, credentials: api.server, expires: 2_000_000_000 });
  const get = (parameters: string) =>
    sendBare(api.server, { method: 'GET', path: `${pathOf(bucket, 'k')}?${parameters}&${query}` });
  expect((await get('response-content-type=x&versionId=null')).headers['content-type']).toBe('x');
  expectError(await get('response-content-type=x%26versionId%3Dnull'), {
    status: 400,
    code: 'InvalidArgument',
  });
});

describe('once', () => {
  test('two Authorization headers, to S3 and to the operator API', async () => {
    await api.put(bucket, 'k', 'x');
    const head = headOf(api.server, { method: 'GET', path: pathOf(bucket, 'k') });
    const doubled = head.replace(/^(authorization: .*\r\n)/m, '$1$1');
    expect(doubled.length).toBeGreaterThan(head.length);
    expect(codeOf(await exchange(doubled))).toEqual([400, 'InvalidArgument']);
    const path = '/holdfast-admin/v1/accounts';
    const signed = signRequest({
      method: 'GET',
      host: hostOf(),
      path,
      body: '',
      credentials: api.server,
      nowMs: Date.now(),
    });
    const lines = Object.entries(signed)
      .map(([name, value]) => `${name}: ${value}\r\n`)
      .join('');
    const operator = (more: string) => exchange(`GET ${path} HTTP/1.1\r\n${lines}${more}\r\n`);
    expect((await operator(''))?.status).toBe(200);
    for (const more of ['Authorization: x\r\n', `X-Amz-Date: ${signed['x-amz-date']}\r\n`, 'Host: other\r\n'])
      expect(codeOf(await operator(more))).toEqual([400, 'InvalidArgument']);
  });

  test.each([
    ['range', 'bytes=0-0'],
    ['x-amz-date', '20200101T000000Z'],
    ['x-amz-content-sha256', 'UNSIGNED-PAYLOAD'],
    ['x-amz-server-side-encryption-customer-algorithm', 'AES256'],
  ])('two %s headers', async (name, value) => {
    await api.put(bucket, 'k', 'x');
    const head = headOf(api.server, { method: 'GET', path: pathOf(bucket, 'k'), headers: { [name]: value } });
    const twice = head.replace(/\r\n\r\n$/, `\r\n${name}: ${value}\r\n\r\n`);
    expect(codeOf(await exchange(twice))).toEqual([400, 'InvalidArgument']);
  });

  test.each([
    'force_delete=true&force_delete=false',
    'force_delete=false&force_delete=true',
    'force_delete=true&force_delete=true',
  ])('DELETE ?%s deletes nothing', async (query) => {
    await api.put(bucket, 'k', 'x');
    const answer = await api.send({ method: 'DELETE', path: `/${bucket}?${query}` });
    expectError(answer, { status: 400, code: 'InvalidArgument', ArgumentName: 'force_delete' });
    expect(await api.keysOf(bucket)).toEqual(['k']);
  });

  test.each(['versionId=null&versionId=null', 'uploadId=a&uploadId=a', 'partNumber=1&partNumber=2'])(
    'DELETE of an object with ?%s deletes nothing',
    async (query) => {
      await api.put(bucket, 'k', 'x');
      const answer = await api.send({ method: 'DELETE', path: `${pathOf(bucket, 'k')}?${query}` });
      expectError(answer, { status: 400, code: 'InvalidArgument' });
      expect(await api.keysOf(bucket)).toEqual(['k']);
    },
  );
});

describe('a path with %2F that was signed decoded (aws4, aws4fetch, older SDKs)', () => {
  const wire = () => `/${bucket}/dir%2Ffile`;
  const written = () => `/${bucket}/dir/file`;
  const body = Buffer.from('the same key');
  const got = async () => (await api.send({ method: 'GET', path: written() })).body.toString();

  test('by header', async () => {
    const headers = {
      host: hostOf(),
      'x-amz-content-sha256': 'UNSIGNED-PAYLOAD',
      'content-length': String(body.length),
    };
    const signed = signHeaders({
      method: 'PUT',
      uri: written(),
      headers,
      credentials: api.server,
      nowMs: Date.now(),
    });
    expectStatus(
      await sendBare(api.server, { method: 'PUT', path: wire(), headers: signed.headers, body }),
      200,
    );
    expect([await got(), await api.keysOf(bucket)]).toEqual([body.toString(), ['dir/file']]);
  });

  test('presigned', async () => {
    const headers = { host: hostOf() };
    const uri = presign({
      method: 'PUT',
      uri: written(),
      headers,
      credentials: api.server,
      nowMs: Date.now(),
      expiresSeconds: 60,
    });
    const path = uri.replace(written(), wire());
    const length = { 'content-length': String(body.length) };
    expectStatus(
      await sendBare(api.server, { method: 'PUT', path, headers: { ...headers, ...length }, body }),
      200,
    );
    expect([await got(), await api.keysOf(bucket)]).toEqual([body.toString(), ['dir/file']]);
  });

  test('in signed chunks', async () => {
    const headers = {
      host: hostOf(),
      'x-amz-content-sha256': 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD',
      'x-amz-decoded-content-length': String(body.length),
    };
    const seed = signHeaders({
      method: 'PUT',
      uri: written(),
      headers,
      credentials: api.server,
      nowMs: Date.now(),
    });
    const chunks = chunkedBody({ body, chunkBytes: 8192, seed });
    const sent = { ...seed.headers, 'content-length': String(chunks.length) };
    expectStatus(
      await sendBare(api.server, { method: 'PUT', path: wire(), headers: sent, body: chunks }),
      200,
    );
    expect([await got(), await api.keysOf(bucket)]).toEqual([body.toString(), ['dir/file']]);
  });

  test.each([
    ['as they are signed', undefined],
    ['with one signature wrong in the second chunk that is stored', 20],
    ['with the signature of the last, empty chunk wrong', 48],
  ])('a large body in signed chunks, %s', async (_, wrong) => {
    const large = randomBytes(3 * 1024 * 1024);
    const headers = {
      host: hostOf(),
      'x-amz-content-sha256': 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD',
      'x-amz-decoded-content-length': String(large.length),
    };
    const signing = { method: 'PUT', uri: written(), headers, credentials: api.server, nowMs: Date.now() };
    const seed = signHeaders(signing);
    const bend = (signature: string, index: number) => (index === wrong ? '0'.repeat(64) : signature);
    const chunks = chunkedBody({ body: large, chunkBytes: 65_536, seed, bend });
    const sent = { ...seed.headers, 'content-length': String(chunks.length) };
    const put = { method: 'PUT', path: wire(), headers: sent, body: chunks };
    const answer = await sendBare(api.server, put);
    expectStatus(answer, wrong === undefined ? 200 : 403);
    if (wrong !== undefined) expect(String(answer.body)).toContain('<Code>SignatureDoesNotMatch</Code>');
    expect(await api.keysOf(bucket)).toEqual(wrong === undefined ? ['dir/file'] : []);
    if (wrong === undefined)
      expect((await send(api.server, { method: 'GET', path: wire() })).body.equals(large)).toBe(true);
  });

  test('and signed undecoded names the same key', async () => {
    expectStatus(await send(api.server, { method: 'PUT', path: wire(), body }), 200);
    expect(await api.keysOf(bucket)).toEqual(['dir/file']);
  });
});

test('SignatureDoesNotMatch answers a long head with less than the head', async () => {
  const headers = Object.fromEntries(
    Array.from({ length: 28 }, (_, at) => [`x-amz-meta-${at}`, '<&"'.repeat(333)]),
  );
  const sent = { method: 'GET', path: `${pathOf(bucket, 'k')}?a=${'b'.repeat(900)}`, headers };
  const answer = await send({ ...api.server, endpoint: api.server.endpoint, secretKey: 'wrong' }, sent);
  expectError(answer, { status: 403, code: 'SignatureDoesNotMatch' });
  expect(answer.body.length).toBeLessThan(10 * 1024);
  const { CanonicalRequest = '', StringToSign = '', CanonicalRequestBytes } = fieldsOf(answer);
  expect(CanonicalRequest).toMatch(/^GET\n\/b-/);
  expect(StringToSign).toMatch(/^AWS4-HMAC-SHA256\n/);
  expect(CanonicalRequestBytes).toBeUndefined();
});
