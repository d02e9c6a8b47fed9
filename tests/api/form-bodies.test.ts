// The body of a form: what is malformed, too much, there twice or not at all, and that nothing of it is ever taken for a request.
import { randomBytes } from 'node:crypto';
import { request } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { beforeAll, expect, test } from 'vitest';
import {
  BOUNDARY,
  END,
  type Fields,
  FORM_TYPE,
  type Form,
  formBody,
  partOf,
  postBody,
  postForm,
  signForm,
} from '../support/servers/forms.ts';
import { ownServerTest } from '../support/servers/own-server-test.ts';
import { answerOf, pathOf, type RawAnswer, sendBare } from '../support/servers/raw-s3.ts';
import { openSocket } from '../support/servers/raw-socket.ts';
import { expectError, expectStatus, useApi } from '../support/servers/s3-api.ts';

const MiB = 1024 * 1024;
const api = useApi({ settings: { domain: 's3.test', 'memory.bodyBuffer': '64MiB' } });
let bucket: string;
beforeAll(async () => {
  bucket = await api.makeBucket();
});

const get = (key: string) => api.send({ method: 'GET', path: pathOf(bucket, key) });

/** Signs by version 4, each field with a condition that it is as it is. */
const post = (fields: Fields, form: Omit<Form, 'fields'> = {}, conditions?: readonly unknown[]) =>
  postForm(api.server, bucket, { fields: signForm(api.server, bucket, fields, conditions), ...form });

const fields = () => signForm(api.server, bucket, [['key', 'odd']]);
const leading = () => Buffer.concat(fields().map(([name, value]) => partOf(name, value)));
const unchanged = async () => expectStatus(await get('odd'), 404);

test.each([undefined, 'text/html', 'application/x-www-form-urlencoded'])(
  'a body of type %s: 412',
  async (type) => {
    const body = formBody({ fields: fields() });
    const headers = {
      'content-length': String(body.length),
      ...(type !== undefined && { 'content-type': type }),
    };
    const answer = await sendBare(api.server, { method: 'POST', path: `/${bucket}`, headers, body });
    const Condition = 'Bucket POST must be of the enclosure-type multipart/form-data';
    expectError(answer, { status: 412, code: 'PreconditionFailed', Condition });
  },
);

test.each<[string, () => Buffer]>([
  ['without its last boundary', () => Buffer.concat([leading(), partOf('file', 'x')])],
  ['that ends in the head of a part', () => Buffer.concat([leading(), partOf('file', 'x').subarray(0, 40)])],
  ['that is empty', () => Buffer.alloc(0)],
  [
    'with a part without a name',
    () => Buffer.concat([leading(), Buffer.from(`--${BOUNDARY}\r\n\r\nx\r\n${END}`)]),
  ],
  [
    'with a megabyte and more behind the file',
    () =>
      Buffer.concat([leading(), partOf('file', 'x'), partOf('more', randomBytes(MiB + 1)), Buffer.from(END)]),
  ],
])('a form %s is MalformedPOSTRequest', async (_what, body) => {
  expectError(await postBody(api.server, bucket, body()), { status: 400, code: 'MalformedPOSTRequest' });
  await unchanged();
});

test('another boundary than the head says, and none', async () => {
  const malformed = { status: 400, code: 'MalformedPOSTRequest' } as const;
  for (const type of ['multipart/form-data; boundary=other', 'multipart/form-data']) {
    const body = formBody({ fields: fields() });
    expectError(await postBody(api.server, bucket, body, { 'content-type': type }), malformed);
  }
});

test('no file, and two files', async () => {
  const Message = 'POST requires exactly one file upload per request.';
  const none = Buffer.concat([leading(), partOf('files', 'x', 'x.txt'), Buffer.from(END)]);
  const error = { status: 400, code: 'InvalidArgument', Message, ArgumentName: 'file' } as const;
  expectError(await postBody(api.server, bucket, none), { ...error, ArgumentValue: 0 });
  const two = Buffer.concat([leading(), partOf('file', 'x'), partOf('file', 'y'), Buffer.from(END)]);
  expectError(await postBody(api.server, bucket, two), error);
  await unchanged();
});

test('fields behind the file are ignored', async () => {
  const behind: Fields = [
    ['x-amz-meta-late', 'x'],
    ['key', 'late'],
    ['submit', 'x'],
  ];
  expectStatus(await post([['key', 'early']], { behind }), 204);
  expect((await get('early')).headers).not.toHaveProperty('x-amz-meta-late');
  expectStatus(await get('late'), 404);
  expectError(await postForm(api.server, bucket, { fields: [], behind: fields() }), {
    status: 400,
    code: 'InvalidArgument',
    ArgumentName: 'key',
  });
});

test('more than 20 KiB of fields', async () => {
  const large: Fields = [['x-ignore-a', 'x'.repeat(20_480)], ...fields()];
  const expected = {
    status: 400,
    code: 'MaxPostPreDataLengthExceeded',
    MaxPostPreDataLengthBytes: 20_480,
  } as const;
  expectError(await postForm(api.server, bucket, { fields: large }), expected);
  const most: Fields = [['x-ignore-a', 'x'.repeat(18_000)], ...fields()];
  expectStatus(await postForm(api.server, bucket, { fields: most }), 204);
  await api.send({ method: 'DELETE', path: pathOf(bucket, 'odd') });
});

test.each<[string, Fields, Record<string, string | number>]>([
  ['a key of nothing', [['key', '']], { code: 'InvalidArgument' }],
  ['a key of more than 1024 bytes', [['key', 'x'.repeat(1025)]], { code: 'KeyTooLongError' }],
  [
    'a field twice',
    [
      ['key', 'odd'],
      ['KEY', 'other'],
    ],
    { code: 'InvalidArgument', ArgumentName: 'KEY' },
  ],
  [
    'two fields for one header',
    [
      ['key', 'odd'],
      ['acl', 'private'],
      ['x-amz-acl', 'private'],
    ],
    { code: 'InvalidArgument' },
  ],
  [
    'a line break in a value',
    [
      ['key', 'odd'],
      ['x-amz-meta-a', 'a\r\nb: c'],
    ],
    { code: 'InvalidArgument' },
  ],
  [
    'a name that no header has',
    [
      ['key', 'odd'],
      ['x-amz-meta-a b', 'c'],
    ],
    { code: 'InvalidArgument' },
  ],
  [
    'an MD5 that is none',
    [
      ['key', 'odd'],
      ['content-md5', 'x'],
    ],
    { code: 'InvalidDigest' },
  ],
  [
    'another storage class',
    [
      ['key', 'odd'],
      ['x-amz-storage-class', 'FakeClass'],
    ],
    { code: 'InvalidStorageClass' },
  ],
  [
    'metadata of more than 2 KB',
    [
      ['key', 'odd'],
      ['x-amz-meta-a', 'v'.repeat(2048)],
    ],
    { code: 'MetadataTooLarge' },
  ],
  [
    'an event hold',
    [
      ['key', 'odd'],
      ['x-amz-object-lock-event-hold', 'ON'],
    ],
    { status: 501, code: 'NotImplemented' },
  ],
  [
    'an extension',
    [
      ['key', 'odd'],
      ['x-svc-prefix', 'true'],
    ],
    { status: 501, code: 'NotImplemented' },
  ],
  [
    'an offset',
    [
      ['key', 'odd'],
      ['x-amz-write-offset-bytes', '0'],
    ],
    { status: 501, code: 'NotImplemented' },
  ],
])('%s', async (_what, given, expected) => {
  const conditions = given.map(([name]) => ['starts-with', `$${name}`, '']);
  const answer = await post(given, {}, conditions);
  expectError(answer, { status: 400, ...expected } as Parameters<typeof expectError>[1]);
  await unchanged();
});

test('a key that is no UTF-8', async () => {
  const key = Buffer.concat([partOf('key', Buffer.from([0xff])), partOf('file', 'x'), Buffer.from(END)]);
  const answer = await postBody(api.server, bucket, key);
  expectError(answer, { status: 400, code: 'InvalidArgument', ArgumentName: 'key' });
});

test('a missing bucket, before anything is read', async () => {
  const socket = await openSocket(api.server);
  const { host } = new URL(api.server.endpoint);
  socket.write(
    `POST /not-there-at-all HTTP/1.1\r\nHost: ${host}\r\nContent-Type: ${FORM_TYPE}\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n`,
  );
  const answer = await socket.answer();
  expect([answer?.status, answer?.body]).toEqual([404, expect.stringContaining('NoSuchBucket')]);
  socket.destroy();
});

test('s3-behaviour 16: what is left of a refused form is never taken for a request', async () => {
  const socket = await openSocket(api.server);
  const { host } = new URL(api.server.endpoint);
  const smuggled = `DELETE /${bucket}/odd HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
  const body = Buffer.concat([partOf('key', 'x'), partOf('file', smuggled.repeat(3000)), Buffer.from(END)]);
  socket.write(
    `POST /${bucket} HTTP/1.1\r\nHost: ${host}\r\nContent-Type: ${FORM_TYPE}\r\nContent-Length: ${body.length}\r\n\r\n`,
  );
  socket.write(body);
  socket.end();
  expect((await socket.answer())?.status).toBe(403);
  expect(await socket.answer()).toBeUndefined();
  await socket.closed;
});

test('a form is the same in pieces, and in chunks of unknown length', async () => {
  const sent = (headers: Record<string, string>) => {
    const { hostname, port } = new URL(api.server.endpoint);
    return request({
      host: hostname,
      port,
      method: 'POST',
      path: `/${bucket}`,
      headers: { 'content-type': FORM_TYPE, ...headers },
    });
  };
  const file = randomBytes(200_000);
  const body = formBody({ fields: signForm(api.server, bucket, [['key', 'chunked']]), file });
  for (const headers of [{}, { 'content-length': String(body.length) }]) {
    const form = sent(headers);
    const answered = answerOf(form);
    for (let at = 0; at < body.length; at += 777) form.write(body.subarray(at, at + 777));
    form.end();
    const answer = await answered;
    await buffer(answer);
    expect(answer.statusCode).toBe(204);
    expect((await get('chunked')).body.equals(file)).toBe(true);
  }
});

test('a client that leaves in the middle of the file leaves nothing behind', async () => {
  const body = formBody({ fields: fields(), file: randomBytes(MiB) });
  const { hostname, port } = new URL(api.server.endpoint);
  const headers = { 'content-type': FORM_TYPE, 'content-length': String(body.length) };
  const form = request({ host: hostname, port, method: 'POST', path: `/${bucket}`, headers });
  const failed = new Promise((resolve) => form.once('error', resolve));
  await new Promise((resolve) => form.write(body.subarray(0, MiB / 2), resolve));
  form.destroy(new Error('left'));
  await failed;
  await unchanged();
});

ownServerTest('files of 20 MiB, more together than the memory of bodies', { timeout: 120_000 }, async () => {
  const file = randomBytes(20 * MiB);
  const names = Array.from({ length: 5 }, (_, at) => `large/${at}`);
  const answers = await Promise.all(names.map((name) => post([['key', name]], { file })));
  for (const answer of answers) expectStatus(answer, 204);
  const read: RawAnswer[] = [];
  for (const name of names) read.push(await get(name));
  expect(read.map(({ body }) => body.equals(file))).toEqual(names.map(() => true));
});
