// X-Svc-Idempotency-Token at each operation that takes it (extensions 2.1): what is a token and what is none. How each
// is answered a second time: the tests of the operations; for how long: src/metadata/outcomes/tokens.test.ts.
import { beforeAll, describe, expect, test } from 'vitest';
import { headOf, openSocket } from '../support/servers/raw-socket.ts';
import { expectError, expectStatus, useApi } from '../support/servers/s3-api.ts';

const api = useApi();
let bucket: string;
beforeAll(async () => {
  bucket = await api.makeBucket();
});

const TOKEN = 'x-svc-idempotency-token';
const COMPOSE = '<ComposeRequest><Component><Key>part</Key></Component></ComposeRequest>';

type Headers = Record<string, string>;
interface Request {
  method: string;
  path: string;
  headers: Headers;
  body?: Buffer;
}

/** Each about the key `name`, whose object is 'a' before. */
const REQUESTS: [operation: string, request: (name: string) => Request][] = [
  ['MOVE', (name) => ({ method: 'MOVE', path: `/${name}`, headers: { destination: `moved-${name}` } })],
  [
    'MOVE of a prefix',
    (name) => ({
      method: 'MOVE',
      path: `/${name}`,
      headers: { destination: `moved-${name}`, 'x-svc-prefix': 'true' },
    }),
  ],
  [
    'compose',
    (name) => ({ method: 'PUT', path: `/${name}?compose`, headers: {}, body: Buffer.from(COMPOSE) }),
  ],
  [
    'append by its offset',
    (name) => ({
      method: 'PUT',
      path: `/${name}`,
      body: Buffer.from('b'),
      headers: { 'x-amz-write-offset-bytes': '1' },
    }),
  ],
  ['append', (name) => ({ method: 'PUT', path: `/${name}?append`, headers: {}, body: Buffer.from('b') })],
];

describe.each(REQUESTS)('%s', (operation, requestOf) => {
  const name = operation.replaceAll(' ', '-');
  const request = (token: string, header = TOKEN) => {
    const { path, headers, ...rest } = requestOf(name);
    return { ...rest, path: `/${bucket}${path}`, headers: { ...headers, [header]: token } };
  };
  const objects = async () => {
    const { body } = await api.send({ method: 'GET', path: `/${bucket}?list-type=2` });
    return body.toString().match(/<(Key|ETag|Size)>.*?<\/\1>/g);
  };

  beforeAll(async () => {
    await api.put(bucket, 'part', 'p');
    await api.put(bucket, name, 'a');
  });

  test.each([
    ['nothing', ''],
    ['blanks alone', '   '],
    ['65 characters', 't'.repeat(65)],
    ['a letter that is not of ASCII', 'schl\u00fcssel'],
    ['UTF-8', Buffer.from('日本').toString('latin1')],
  ])('refused, with nothing done: %s', async (_, token) => {
    const before = await objects();
    expectError(await api.send(request(token)), { status: 400, code: 'InvalidArgument' });
    expectError(await api.send(request(token, 'x-wasabi-idempotency-token')), {
      status: 400,
      code: 'InvalidArgument',
    });
    expect(await objects()).toEqual(before);
  });

  test.each([
    ['tab', '\t'],
    ['NUL', '\0'],
    ['BEL', '\x07'],
    ['DEL', '\x7f'],
  ])('refused, with nothing done: a control character (%s)', async (_, character) => {
    const before = await objects();
    const { path, headers, body, method } = requestOf(name);
    const sized = body === undefined ? {} : { 'content-length': String(body.length) };
    const signed = { method, path: `/${bucket}${path}`, headers: { ...sized, ...headers } };
    const socket = await openSocket(api.server);
    // Not signed: signers and servers fold white space each in their way.
    socket.write(headOf(api.server, signed).replace(/\r\n$/, `${TOKEN}: a${character}b\r\n\r\n`));
    if (body !== undefined) socket.write(body);
    expect((await socket.answer())?.status).toBe(400);
    socket.destroy();
    expect(await objects()).toEqual(before);
  });

  test('accepted: 64 printable characters; a longer one is refused', async () => {
    // Tokens are the bucket's own: each operation has others. A value begins and ends with no blank.
    const at = REQUESTS.findIndex(([each]) => each === operation);
    const printable = Array.from({ length: 0x7e - 0x20 + 1 }, (_, code) => String.fromCharCode(0x20 + code));
    const tokens = [
      `${'t'.repeat(63)}${at}`,
      printable.slice(1, 64).join('') + at,
      `${printable.slice(-61).join('')} !${at}`,
    ];
    expect(new Set(tokens.join(''))).toEqual(new Set(printable));
    for (const token of tokens) {
      expect(token).toHaveLength(64);
      await api.put(bucket, name, 'a');
      await api.send({ method: 'DELETE', path: `/${bucket}/moved-${name}` });
      const first = await api.send(request(token));
      expectStatus(first, 200);
      const after = await objects();
      const again = await api.send(request(token));
      expect([again.status, again.headers.etag]).toEqual([200, first.headers.etag]);
      expect(await objects()).toEqual(after);
      expectError(await api.send(request(`${token}t`)), { status: 400, code: 'InvalidArgument' });
    }
  });
});

test.each([
  ['PutObject', 'PUT', '/kept'],
  ['DeleteObject', 'DELETE', '/kept'],
  ['PutObjectTagging', 'PUT', '/kept?tagging'],
  ['CreateMultipartUpload', 'POST', '/kept?uploads'],
  ['ForceDeleteBucket', 'DELETE', '?force_delete=true'],
] as const)('%s keeps no token, and refuses one instead of passing it over', async (_, method, path) => {
  await api.put(bucket, 'kept', 'a');
  const answer = await api.send({
    method,
    path: `/${bucket}${path}`,
    headers: { [TOKEN]: 'token' },
    ...(method === 'PUT' && { body: Buffer.from('b') }),
  });
  expectError(answer, { status: 501, code: 'NotImplemented', Header: TOKEN });
  expect((await api.send({ method: 'GET', path: `/${bucket}/kept` })).body.toString()).toBe('a');
});
