// Objects under keys of customers (SSE-C): PUT, GET and HEAD, what is told without the key, over which connections keys
// are taken, and what is left of them on disk and in the log. Copies and uploads: sse-c-copies.test.ts.
import { createHash, randomBytes } from 'node:crypto';
import { cp, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { GetObjectCommand, HeadObjectCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import { beforeAll, describe, expect, test } from 'vitest';
import { rotateKeys } from '../../src/cli/keys-commands.ts';
import { ENCRYPTION, keyAnswer, keyHeaders, md5Of } from '../support/servers/customer-keys.ts';
import { ownServerTest } from '../support/servers/own-server-test.ts';
import { pathOf, type RawAnswer, send } from '../support/servers/raw-s3.ts';
import { headOf, openSocket } from '../support/servers/raw-socket.ts';
import { expectError, expectStatus, useApi } from '../support/servers/s3-api.ts';
import { startServer } from '../support/servers/start-server.ts';

const MiB = 1024 * 1024;
const [MINE, OTHER] = [randomBytes(32), randomBytes(32)];
const NEEDED =
  'The object was stored using a form of Server Side Encryption. The correct parameters must be provided to retrieve the object.';
const WRONG =
  'Requests specifying Server Side Encryption with Customer provided keys must provide the correct secret key.';
const NEEDLESS = 'The encryption parameters are not applicable to this object.';

const api = useApi({ settings: { domain: 's3.localhost' } });
let bucket: string;
beforeAll(async () => {
  bucket = await api.makeBucket();
});

const request = (method: string, key: string, headers: Record<string, string> = {}, query = '') =>
  api.send({ method, path: pathOf(bucket, key) + query, headers });
const get = (key: string, headers?: Record<string, string>, query?: string) =>
  request('GET', key, headers, query);
const invalidRequest = (answer: RawAnswer, Message: string) =>
  expectError(answer, { status: 400, code: 'InvalidRequest', Message });

test.each([0, 10, 100_000, 3 * MiB + 1])(
  '%i bytes are stored and returned with the key only',
  async (size) => {
    const Key = `size-${size}`;
    const Body = randomBytes(size);
    const place = { Bucket: bucket, Key };
    const under = { SSECustomerAlgorithm: 'AES256', SSECustomerKey: MINE.toString('base64') };
    const put = await api.s3.send(
      new PutObjectCommand({ ...place, ...under, Body, Metadata: { colour: 'red' }, ContentType: 'text/x' }),
    );
    const etag = `"${createHash('md5').update(Body).digest('hex')}"`;
    expect(put).toMatchObject({
      ETag: etag,
      SSECustomerAlgorithm: 'AES256',
      SSECustomerKeyMD5: md5Of(MINE),
    });
    expect(put).not.toHaveProperty('ServerSideEncryption');
    const told = {
      ETag: etag,
      SSECustomerAlgorithm: 'AES256',
      SSECustomerKeyMD5: md5Of(MINE),
      Metadata: { colour: 'red' },
      ContentType: 'text/x',
      ContentLength: size,
    };
    expect(await api.s3.send(new HeadObjectCommand({ ...place, ...under }))).toMatchObject(told);
    const got = await api.s3.send(new GetObjectCommand({ ...place, ...under }));
    expect(got).toMatchObject({ ...told, ChecksumCRC32: put.ChecksumCRC32 });
    expect(Buffer.from((await got.Body?.transformToByteArray()) ?? []).equals(Body)).toBe(true);
  },
);

describe('answers', () => {
  const body = Buffer.from('0123456789');
  beforeAll(async () => {
    await api.put(bucket, 'sealed', body, { ...keyHeaders(MINE), 'x-amz-meta-colour': 'red' });
    await api.put(bucket, 'plain', body);
  });

  test('name the key by its MD5, and no other encryption', async () => {
    const headers = { ...keyHeaders(MINE), 'content-length': '1' };
    const put = await api.send({
      method: 'PUT',
      path: pathOf(bucket, 'named'),
      headers,
      body: Buffer.from('x'),
    });
    for (const answer of [
      put,
      await get('named', keyHeaders(MINE)),
      await request('HEAD', 'named', keyHeaders(MINE)),
    ]) {
      expectStatus(answer, 200);
      expect(answer.headers).toMatchObject(keyAnswer(MINE));
      expect(answer.headers).not.toHaveProperty(ENCRYPTION);
    }
  });

  test('without the key, and with an unneeded key', async () => {
    invalidRequest(await get('sealed'), NEEDED);
    invalidRequest(await get('plain', keyHeaders(MINE)), NEEDLESS);
    expectStatus(await get('plain'), 200);
    const bare = await request('HEAD', 'sealed');
    expect([bare.status, bare.body.length]).toEqual([400, 0]);
    expect(bare.headers).not.toHaveProperty('x-amz-meta-colour');
    expect(bare.headers).not.toHaveProperty('etag');
  });

  test('s3-behaviour 34: another key than the object’s is 400, not 403', async () => {
    invalidRequest(await get('sealed', keyHeaders(OTHER)), WRONG);
    expectStatus(await request('HEAD', 'sealed', keyHeaders(OTHER)), 400);
  });

  test.each([
    ['a condition that holds not', { 'if-match': '"x"' }, 412],
    ['one that the client has it already', { 'if-none-match': '*' }, 304],
    ['a range beyond the end', { range: 'bytes=100-' }, 416],
    ['a range', { range: 'bytes=2-4' }, 206],
  ] as [string, Record<string, string>, number][])(
    'the key comes before %s',
    async (_name, headers, status) => {
      for (const method of ['GET', 'HEAD']) {
        expectStatus(await request(method, 'sealed', headers), 400);
        expectStatus(await request(method, 'sealed', { ...headers, ...keyHeaders(OTHER) }), 400);
        expectStatus(await request(method, 'sealed', { ...headers, ...keyHeaders(MINE) }), status);
      }
    },
  );

  test('ranges and part numbers', async () => {
    const range = await get('sealed', { range: 'bytes=2-4', ...keyHeaders(MINE) });
    expect(range.body.toString()).toBe('234');
    const part = await get('sealed', keyHeaders(MINE), '?partNumber=1');
    expectStatus(part, 206);
    expect(part.body.equals(body)).toBe(true);
    invalidRequest(await get('sealed', {}, '?partNumber=1'), NEEDED);
  });

  test('the spelling of the service, a bucket in the host, a key that is not there', async () => {
    const spelt = Object.fromEntries(
      Object.entries(keyHeaders(MINE)).map(([name, value]) => [name.replace('x-amz-', 'x-std-'), value]),
    );
    expectStatus(await get('sealed', spelt), 200);
    const port = new URL(api.server.endpoint).port;
    const host = { host: `${bucket}.s3.localhost:${port}` };
    const path = '/sealed';
    expectStatus(await api.send({ method: 'GET', path, headers: { ...host, ...keyHeaders(MINE) } }), 200);
    invalidRequest(await api.send({ method: 'GET', path, headers: host }), NEEDED);
    expectError(await get('missing', keyHeaders(MINE)), { status: 404, code: 'NoSuchKey' });
  });

  test('conditional writes', async () => {
    const headers = { 'if-none-match': '*', ...keyHeaders(MINE) };
    const put = () =>
      api.send({ method: 'PUT', path: pathOf(bucket, 'once'), headers, body: Buffer.from('x') });
    expectStatus(await put(), 200);
    expectError(await put(), { status: 412, code: 'PreconditionFailed' });
  });

  test('deleting and listing need no key', async () => {
    await api.put(bucket, 'gone', body, keyHeaders(MINE));
    expect(await api.keysOf(bucket)).toContain('gone');
    expectStatus(await request('DELETE', 'gone'), 204);
    expect(await api.keysOf(bucket)).not.toContain('gone');
    await api.put(bucket, 'gone', body, keyHeaders(MINE));
    expectStatus(await request('DELETE', 'gone', keyHeaders(OTHER)), 204);
  });
});

test('presigned: the key is in signed headers, which the user of the URL sends', async () => {
  const place = { Bucket: bucket, Key: 'presigned' };
  const under = { SSECustomerAlgorithm: 'AES256', SSECustomerKey: MINE.toString('base64') };
  const headers = keyHeaders(MINE);
  const putUrl = await getSignedUrl(api.s3, new PutObjectCommand({ ...place, ...under }), { expiresIn: 60 });
  expect(putUrl).not.toContain(encodeURIComponent(MINE.toString('base64')));
  expect((await fetch(putUrl, { method: 'PUT', body: 'presigned', headers })).status).toBe(200);
  const getUrl = await getSignedUrl(api.s3, new GetObjectCommand({ ...place, ...under }), { expiresIn: 60 });
  expect(await (await fetch(getUrl, { headers })).text()).toBe('presigned');
  expect((await fetch(getUrl, { headers: keyHeaders(OTHER) })).status).toBeGreaterThanOrEqual(400);
  invalidRequest(await get('presigned'), NEEDED);
});

describe('malformed headers', () => {
  const mine = keyHeaders(MINE);
  const must = 'Requests specifying Server Side Encryption with Customer provided keys must provide';
  const algorithm = `${ENCRYPTION}-customer-algorithm`;
  const CASES: [string, Record<string, string | undefined>, string, string][] = [
    ['no algorithm', { [algorithm]: undefined }, 'InvalidArgument', `${must} a valid encryption algorithm.`],
    [
      'no key',
      { [`${ENCRYPTION}-customer-key`]: undefined },
      'InvalidArgument',
      `${must} an appropriate secret key.`,
    ],
    [
      'no MD5',
      { [`${ENCRYPTION}-customer-key-md5`]: undefined },
      'InvalidArgument',
      `${must} the client calculated MD5 of the secret key.`,
    ],
    [
      'another algorithm',
      { [algorithm]: 'AES128' },
      'InvalidEncryptionAlgorithmError',
      'The Encryption request you specified is not valid. Supported value: AES256.',
    ],
    [
      'the MD5 of another key',
      { [`${ENCRYPTION}-customer-key-md5`]: md5Of(OTHER) },
      'InvalidArgument',
      'The calculated MD5 hash of the key did not match the hash that was provided.',
    ],
    [
      'a key of 128 bits',
      keyHeaders(randomBytes(16)),
      'InvalidArgument',
      'The secret key was invalid for the specified algorithm.',
    ],
    [
      'two encryptions at once',
      { [ENCRYPTION]: 'AES256' },
      'InvalidArgument',
      'Server Side Encryption with Customer provided key is incompatible with the encryption method specified',
    ],
  ];
  test.each(CASES)('%s', async (_name, change, code, Message) => {
    const headers = Object.fromEntries(
      Object.entries({ ...mine, ...change }).filter(
        (entry): entry is [string, string] => entry[1] !== undefined,
      ),
    );
    const path = pathOf(bucket, 'refused');
    const put = await api.send({ method: 'PUT', path, headers, body: Buffer.from('x') });
    const ArgumentName = ENCRYPTION;
    expectError(put, { status: 400, code: code as 'InvalidArgument', Message, ArgumentName });
    expectError(await get('refused', headers), { status: 400, code: code as 'InvalidArgument', Message });
    expectStatus(await request('HEAD', 'refused', headers), 400);
    expectError(await get('refused'), { status: 404, code: 'NoSuchKey' });
  });
});

describe('over plain and secure connections', () => {
  const Message =
    'Requests specifying Server Side Encryption with Customer provided keys must be made over a secure connection.';
  const body = Buffer.from('secret');
  const path = '/behind/k';

  ownServerTest('a proxy’s: only where it says https, and before the body is read', async () => {
    const server = await startServer({ settings: { trustedProxies: '127.0.0.1' } });
    try {
      expectStatus(await send(server, { method: 'PUT', path: '/behind' }), 200);
      const put = (headers: Record<string, string>) =>
        send(server, { method: 'PUT', path, headers: { ...keyHeaders(MINE), ...headers }, body });
      const https = { 'x-forwarded-proto': 'https' };
      const http = { 'x-forwarded-proto': 'http', 'x-forwarded-for': '192.0.2.1' };
      invalidRequest(await put(http), Message);
      invalidRequest(await put({ 'x-forwarded-for': '192.0.2.1' }), Message);
      expectStatus(await put(https), 200);
      expectStatus(await put({}), 200);
      const headers = { ...keyHeaders(MINE), ...http };
      invalidRequest(await send(server, { method: 'GET', path, headers }), Message);
      const source = { ...keyHeaders(MINE, 'source'), 'x-amz-copy-source': path, ...http };
      invalidRequest(await send(server, { method: 'PUT', path: '/behind/copy', headers: source }), Message);
      const socket = await openSocket(server);
      const waiting = { ...headers, 'content-length': '100000', expect: '100-continue' };
      socket.write(headOf(server, { method: 'PUT', path, headers: waiting }));
      expect((await socket.answer())?.status).toBe(400);
      socket.destroy();
    } finally {
      await server.stop();
    }
  });

  ownServerTest('any, where the operator does not mind', async () => {
    const settings = { trustedProxies: '127.0.0.1', 'requests.secretsOverHttp': 'true' };
    const server = await startServer({ settings });
    try {
      expectStatus(await send(server, { method: 'PUT', path: '/behind' }), 200);
      const headers = { ...keyHeaders(MINE), 'x-forwarded-proto': 'http', 'x-forwarded-for': '192.0.2.1' };
      expectStatus(await send(server, { method: 'PUT', path, headers, body }), 200);
    } finally {
      await server.stop();
    }
  });
});

/** The forms in which a key may have been written down. */
const formsOf = (key: Buffer) => [
  key,
  Buffer.from(key.toString('base64')),
  Buffer.from(key.toString('base64url')),
  Buffer.from(key.toString('hex')),
  Buffer.from(key.toString('hex').toUpperCase()),
  Buffer.from(createHash('md5').update(key).digest()),
  Buffer.from(md5Of(key)),
];

ownServerTest('a key is in no log line, and in no answer', async () => {
  const headers = keyHeaders(MINE);
  const path = pathOf(bucket, 'quiet');
  const stranger = { ...api.server, secretKey: 'x'.repeat(40) };
  const answers = [
    await api.send({ method: 'PUT', path, headers, body: Buffer.from('x') }),
    await api.send({ method: 'GET', path, headers: { ...headers, ...keyHeaders(MINE, 'source') } }),
    await api.send({ method: 'GET', path, headers: { ...headers, [ENCRYPTION]: 'AES256' } }),
    await api.send({ method: 'GET', path, headers }, stranger),
  ];
  expectError(answers[3] as RawAnswer, { status: 403, code: 'SignatureDoesNotMatch' });
  expect(answers[3]?.body.toString()).toContain(`${ENCRYPTION}-customer-key:***`);
  const told =
    JSON.stringify(api.server.logs()) + answers.map(({ body }) => body.toString('latin1')).join('');
  const secret = MINE.toString('base64');
  for (const form of [secret, MINE.toString('hex'), Buffer.from(secret).toString('hex'), secret.slice(0, 20)])
    expect(told).not.toContain(form);
});

ownServerTest('a rotation of the master key leaves it alone', async () => {
  await api.put(bucket, 'rotated', 'sealed', keyHeaders(MINE));
  const context = { env: {}, print() {}, nowMs: Date.now, sleep };
  await rotateKeys(context, { dataDir: api.server.dataDir, wait: true });
  expect((await get('rotated', keyHeaders(MINE))).body.toString()).toBe('sealed');
});

ownServerTest('the data folder, master key and all, does not open without the key', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-sse-c-'));
  const [kept, copied] = [join(folder, 'kept'), join(folder, 'copied')];
  const first = await startServer({ dataDir: kept });
  const body = Buffer.alloc(2 * MiB, 'Marked-Body-55ac1e');
  const headers = { ...keyHeaders(MINE), 'x-amz-meta-note': 'Marked-Note-71be90' };
  await send(first, { method: 'PUT', path: '/closed' });
  expectStatus(await send(first, { method: 'PUT', path: '/closed/k', headers, body }), 200);
  await first.stop();
  await cp(kept, copied, { recursive: true });
  const files = await readdir(copied, { recursive: true, withFileTypes: true });
  for (const file of files.filter((entry) => entry.isFile())) {
    const bytes = await readFile(join(file.parentPath, file.name));
    for (const form of [...formsOf(MINE), 'Marked-Body-55ac1e', 'Marked-Note-71be90'])
      expect(bytes.includes(form), file.name).toBe(false);
  }
  const second = await startServer({ dataDir: copied });
  const read = (more = {}) => send(second, { method: 'GET', path: '/closed/k', headers: more });
  invalidRequest(await read(), NEEDED);
  invalidRequest(await read(keyHeaders(OTHER)), WRONG);
  expect((await read(keyHeaders(MINE))).body.equals(body)).toBe(true);
  await second.stop();
  await rm(folder, { recursive: true });
});
