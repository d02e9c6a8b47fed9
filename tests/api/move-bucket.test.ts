// MoveBucket (service 4.1, 4.5, 7.4; extensions 2.2): the new name at once, all that the bucket has under it, and
// every refusal, after which it has the name that it had.
import { beforeEach, expect, test } from 'vitest';
import { beginUpload, putPart, sendComplete } from '../support/servers/multipart.ts';
import type { Access } from '../support/servers/raw-s3.ts';
import { headOf, openSocket } from '../support/servers/raw-socket.ts';
import {
  type Api,
  expectError,
  expectStatus,
  fieldsOf,
  freshWord,
  useApi,
} from '../support/servers/s3-api.ts';
import { listVersions, setVersioning, versionsIn } from '../support/servers/versions.ts';

const api = useApi({ settings: { domain: 's3.test' } });
const freshName = () => `moved-${freshWord()}`;

const move = (from: string, to: string | undefined, as?: Access) => {
  const headers: Record<string, string> = to === undefined ? {} : { destination: to };
  return api.send({ method: 'MOVE', path: `/${from}`, headers }, as);
};
const statusOf = async (line: string, as?: Access) => {
  const [method = '', path = ''] = line.split(' ');
  return (await api.send({ method, path }, as)).status;
};

let old: string;
beforeEach(async () => {
  old = await api.makeBucket();
});

test.each(['NAME', '/NAME'])(
  'service 4.1, MOVE: the new name leads to the bucket at once, the old one is free: Destination %s',
  async (form) => {
    await api.put(old, 'kept', 'x');
    const name = freshName();
    const answer = await move(old, form.replace('NAME', name));
    expectStatus(answer, 200);
    expect(answer.headers.location).toBe(`/${name}`);
    expect(answer.body).toHaveLength(0);
    expect(await statusOf(`HEAD /${old}`)).toBe(404);
    expect(await api.keysOf(name)).toEqual(['kept']);
    const account = await api.makeAccount();
    expectStatus(await api.send({ method: 'PUT', path: `/${old}` }, account), 200);
    expect(await api.keysOf(name)).toEqual(['kept']);
  },
);

test('service 4.5: a bucket whose policy would become longer than 20 KB keeps its name', async () => {
  const Resource = Array.from({ length: 200 }, (_, at) => `arn:aws:s3:::${old}/${at}${'x'.repeat(30)}`);
  const Statement = [{ Effect: 'Deny', Principal: '*', Action: 's3:GetObject', Resource }];
  const body = Buffer.from(JSON.stringify({ Version: '2012-10-17', Statement }));
  const policy = { path: `/${old}?policy` };
  expectStatus(await api.send({ ...policy, method: 'PUT', body }), 204);
  const name = freshName().padEnd(63, '0');
  for (let times = 0; times < 2; times++)
    expectError(await move(old, name), { status: 400, code: 'InvalidRequest' });
  expect(await statusOf(`HEAD /${name}`)).toBe(404);
  expect((await api.send({ ...policy, method: 'GET' })).body).toEqual(body);
  expectStatus(await api.send({ ...policy, method: 'DELETE' }), 204);
  expectStatus(await move(old, name), 200);
});

test('a MOVE of a prefix that names none renames no bucket', async () => {
  const name = freshName();
  const headers = { destination: name, 'x-svc-prefix': 'True' };
  for (const path of [`/${old}`, `/${old}/`]) {
    const answer = await api.send({ method: 'MOVE', path, headers });
    expectError(answer, { status: 400, code: 'InvalidRequest' });
  }
  const unsure = { ...headers, 'x-svc-prefix': 'perhaps' };
  expectError(await api.send({ method: 'MOVE', path: `/${old}`, headers: unsure }), {
    status: 400,
    code: 'InvalidArgument',
  });
  expect(await statusOf(`HEAD /${old}`)).toBe(200);
  expect(await statusOf(`HEAD /${name}`)).toBe(404);
});

test('a request with options of objects only is refused, because it has probably lost its key', async () => {
  const name = freshName();
  for (const more of [
    { overwrite: 'true' },
    { 'x-svc-quiet': 'true' },
    { 'if-match': '"x"' },
    { 'if-none-match': '*' },
    { 'x-svc-destination-if-none-match': '*' },
    { 'x-svc-idempotency-token': 'once' },
  ]) {
    const answer = await api.send({
      method: 'MOVE',
      path: `/${old}/`,
      headers: { destination: name, ...more },
    });
    expectError(answer, { status: 400, code: 'InvalidRequest' });
  }
  expect(await statusOf(`HEAD /${name}`)).toBe(404);
  const headers = { destination: name, overwrite: 'False', 'x-svc-prefix': 'false' };
  expectStatus(await api.send({ method: 'MOVE', path: `/${old}`, headers }), 200);
});

test('everything moves along: versions, markers, versioning, open uploads, the date of creation', async () => {
  await setVersioning(api, old, 'Enabled');
  for (const body of ['one', 'two']) await api.put(old, 'k', body);
  expect(await statusOf(`DELETE /${old}/k`)).toBe(204);
  const before = versionsIn(await listVersions(api, old));
  const upload = await beginUpload(api, { bucket: old, key: 'parts' });
  const first = await putPart(api, upload, { partNumber: 1, body: Buffer.alloc(5 * 2 ** 20, 'a') });
  const createdAt = await creationDate(api, old);
  const name = freshName();
  expectStatus(await move(old, name), 200);
  expect(versionsIn(await listVersions(api, name))).toEqual(before);
  expect(await creationDate(api, name)).toBe(createdAt);
  expect(await creationDate(api, old)).toBeUndefined();
  const renamed = { ...upload, bucket: name };
  const second = await putPart(api, renamed, { partNumber: 2, body: Buffer.from('b') });
  const parts = [
    { partNumber: 1, etag: first },
    { partNumber: 2, etag: second },
  ];
  expectStatus(await sendComplete(api, renamed, parts), 200);
  const versioning = await api.send({ method: 'GET', path: `/${name}?versioning` });
  expect(fieldsOf(versioning).Status).toBe('Enabled');
  expect(await api.keysOf(name)).toEqual(['parts']);
  const whole = await api.send({ method: 'GET', path: `/${name}/k?versionId=${before[1]?.versionId}` });
  expect(whole.body.toString()).toBe('two');
});

async function creationDate({ send }: Api, bucket: string): Promise<string | undefined> {
  const list = (await send({ method: 'GET', path: '/' })).body.toString();
  return new RegExp(`<Name>${bucket}</Name><CreationDate>([^<]*)`).exec(list)?.[1];
}

test('there and back, and forward again', async () => {
  await api.put(old, 'kept', 'x');
  const name = freshName();
  for (const [from, to] of [
    [old, name],
    [name, old],
    [old, name],
  ] as const) {
    expectStatus(await move(from, to), 200);
    expect(await api.keysOf(to)).toEqual(['kept']);
    expect(await statusOf(`GET /${from}/kept`)).toBe(404);
  }
});

test('a bucket in the host (virtual-host style), and a preflight for it', async () => {
  const name = freshName();
  await api.put(old, 'kept', 'x');
  const host = `${old}.s3.test`;
  expectStatus(await api.send({ method: 'MOVE', path: '/', headers: { host, destination: name } }), 200);
  const there = { method: 'GET', path: '/kept', headers: { host: `${name}.s3.test` } };
  expect((await api.send(there)).body.toString()).toBe('x');
  const asked = await api.sendAnonymous({
    method: 'OPTIONS',
    path: `/${name}`,
    headers: { origin: 'https://example.com', 'access-control-request-method': 'MOVE' },
  });
  expectStatus(asked, 200);
  expect(asked.headers['access-control-allow-methods']).toContain('MOVE');
});

test.each([undefined, ''])('service 4.1, MOVE: Destination %j is refused', async (to) => {
  expectError(await move(old, to), { status: 400, code: 'InvalidArgument', ArgumentName: 'Destination' });
  expect(await statusOf(`HEAD /${old}`)).toBe(200);
});

test('several Destination headers are refused, whatever they are when joined', async () => {
  const names = [freshName(), freshName()];
  const wanted = { method: 'MOVE', path: `/${old}`, headers: { destination: names.join() } };
  const socket = await openSocket(api.server);
  // The signature is that of both.
  socket.write(headOf(api.server, wanted).replace(names.join(), names.join('\r\ndestination: ')));
  const answer = await socket.answer();
  socket.destroy();
  expect(answer?.status).toBe(400);
  expect(fieldsOf({ body: Buffer.from(answer?.body ?? '') })).toMatchObject({
    Code: 'InvalidArgument',
    ArgumentName: 'destination',
    Message: 'The header destination may be sent once only.',
  });
  for (const name of [old, ...names]) expect(await statusOf(`HEAD /${name}`)).toBe(name === old ? 200 : 404);
});

test('the service itself cannot be renamed', async () => {
  const headers = { destination: freshName() };
  const refused = { status: 405, code: 'MethodNotAllowed', Method: 'MOVE' } as const;
  expectError(await api.send({ method: 'MOVE', path: '/', headers }), refused);
  expect(await statusOf(`HEAD /${old}`)).toBe(200);
});

test.each(['ab', 'Upper', '//slashes', '/', 'a/b', 'holdfast-own', 'a'.repeat(64), '%6Eame', '192.168.0.1'])(
  'the name %s is refused',
  async (to) => {
    expectError(await move(old, to), { status: 400, code: 'InvalidBucketName' });
    expect(await statusOf(`HEAD /${old}`)).toBe(200);
  },
);

test('its own name is refused', async () => {
  for (const to of [old, `/${old}`])
    expectError(await move(old, to), { status: 400, code: 'InvalidRequest' });
  expect(await statusOf(`HEAD /${old}`)).toBe(200);
});

test('service 4.5, 7.4: a name in use is refused, whoever has it', async () => {
  await api.put(old, 'kept', 'x');
  const own = await api.makeBucket();
  const account = await api.makeAccount();
  const theirs = await api.makeBucket(account);
  const owned = { status: 409, code: 'BucketAlreadyOwnedByYou', BucketName: own } as const;
  expectError(await move(old, own), owned);
  expectError(await move(old, theirs), { status: 409, code: 'BucketAlreadyExists', BucketName: theirs });
  expect(await api.keysOf(old)).toEqual(['kept']);
  expect(await api.keysOf(own)).toEqual([]);
});

test('a missing bucket, and a second try', async () => {
  const [name, missing] = [freshName(), freshName()];
  expectError(await move(missing, name), { status: 404, code: 'NoSuchBucket', BucketName: missing });
  expectStatus(await move(old, name), 200);
  expectError(await move(old, name), { status: 404, code: 'NoSuchBucket', BucketName: old });
});

test('service 4.5: nobody without s3:CreateBucket renames, nor another account; nor do they learn which names are in use', async () => {
  const denied = { status: 403, code: 'AccessDenied' } as const;
  const account = await api.makeAccount();
  const theirs = await api.makeBucket(account);
  for (const to of [freshName(), theirs]) {
    expectError(await move(old, to, account), denied);
    const headers = { destination: to };
    expectError(await api.sendAnonymous({ method: 'MOVE', path: `/${old}`, headers }), denied);
  }
  expect(await statusOf(`HEAD /${old}`)).toBe(200);
});

test('of racing renames one wins, and the others are refused', async () => {
  let name = old;
  const codes = new Set<string | undefined>();
  for (let round = 0; round < 20 && !codes.has('OperationAborted'); round++) {
    const names = Array.from({ length: 6 }, freshName);
    const answers = await Promise.all(names.map((to) => move(name, to)));
    const won = names.filter((_, at) => answers[at]?.status === 200);
    expect(won).toHaveLength(1);
    for (const answer of answers) if (answer.status !== 200) codes.add(fieldsOf(answer).Code);
    for (const each of names) {
      expect(await statusOf(`HEAD /${each}`)).toBe(each === won[0] ? 200 : 404);
    }
    name = won[0] ?? name;
  }
  expect([...codes].filter((code) => code !== 'NoSuchBucket')).toEqual(['OperationAborted']);
});
