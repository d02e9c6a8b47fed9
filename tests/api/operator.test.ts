// The operator API itself: who may call it, what it refuses, and the shape of its errors.
import { createHash, createHmac } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type CliContext, connect } from '../../src/cli/connect.ts';
import { signRequest } from '../../src/cli/sign-request.ts';
import {
  OPERATOR_BODY_BYTES_MAX,
  OPERATOR_SIGNED_BODY_BYTES_MAX,
} from '../../src/gateway/operator-api/operator-api.ts';
import { ownServerTest } from '../support/servers/own-server-test.ts';
import { openSocket } from '../support/servers/raw-socket.ts';
import { freshWord } from '../support/servers/s3-api.ts';
import { startServer, type TestServer } from '../support/servers/start-server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server.stop());

interface Call {
  method?: string;
  path?: string;
  body?: string;
  /** After signing. */
  headers?: Record<string, string>;
  credentials?: { accessKey: string; secretKey: string };
  sentBody?: string;
  nowMs?: number;
}

async function call(options: Call = {}) {
  const { method = 'GET', path = '/holdfast-admin/v1/accounts', body = '', credentials = server } = options;
  const host = new URL(server.endpoint).host;
  const signed = signRequest({ method, host, path, body, credentials, nowMs: options.nowMs ?? Date.now() });
  const { host: _, ...headers } = { ...signed, ...options.headers };
  const sentBody = options.sentBody ?? body;
  const answer = await fetch(server.endpoint + path, {
    method,
    headers,
    ...(sentBody !== '' && { body: sentBody }),
  });
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, json: text === '' ? undefined : JSON.parse(text) };
}

test('the root account is served, in JSON', async () => {
  const answer = await call();
  expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/json']);
  const root = answer.json.accounts.filter(({ isRoot }: { isRoot: boolean }) => isRoot);
  expect(root).toMatchObject([{ name: 'root', state: 'paid' }]);
});

ownServerTest(
  'every request is in the log, with whose it was and what came of it; no secret is',
  async () => {
    const isOperators = (line: { event: string; path?: unknown }) =>
      line.event === 'request' && line.path === '/holdfast-admin/v1/accounts';
    const before = server.logs().filter(isOperators).length;
    await call();
    const body = JSON.stringify({ name: 'logged', email: 'logged@example.com' });
    const { json: made } = await call({ method: 'POST', body });
    const refused = await call({ credentials: made });
    await expect.poll(() => server.logs().filter(isOperators)).toHaveLength(before + 3);
    const [read, created, denied] = server.logs().filter(isOperators).slice(before);
    expect(read).toMatchObject({ level: 'info', method: 'GET', status: 200, receivedBytes: 0 });
    expect(created).toMatchObject({ method: 'POST', status: 201, receivedBytes: body.length });
    expect(denied).toMatchObject({ account: made.id, status: 403, errorCode: 'AccessDenied' });
    expect(denied?.requestId).toBe(refused.json.requestId);
    expect(JSON.stringify(server.logs())).not.toContain(made.secretKey);
  },
);

test('the API describes itself to its callers', async () => {
  const path = '/holdfast-admin/v1/openapi.json';
  const answer = await call({ path });
  expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/json']);
  const { openapi, paths } = answer.json;
  expect([openapi, Object.keys(paths)]).toEqual(['3.1.0', expect.arrayContaining([path])]);
  const { properties, required } =
    paths['/holdfast-admin/v1/status'].get.responses[200].content['application/json'].schema;
  const { json: status } = await call({ path: '/holdfast-admin/v1/status' });
  expect(Object.keys(properties)).toEqual(expect.arrayContaining(Object.keys(status)));
  expect(Object.keys(status)).toEqual(expect.arrayContaining(required));
  expect(await call({ path, headers: { authorization: '' } })).toMatchObject({ status: 403 });
});

test('another account is refused', async () => {
  const body = JSON.stringify({
    name: `not the operator ${freshWord()}`,
    email: `${freshWord()}@example.com`,
  });
  const { json: account, status } = await call({ method: 'POST', body });
  expect(status).toBe(201);
  const answer = await call({ credentials: account });
  expect(answer).toMatchObject({ status: 403, json: { error: { code: 'AccessDenied' } } });
  expect(answer.json.requestId).toMatch(/^[0-9A-F]{16}$/);
});

test.each<[string, Call, number, string]>([
  ['no signature', { headers: { authorization: '' } }, 403, 'AccessDenied'],
  [
    'an unknown key',
    { credentials: { accessKey: 'HFNOBODY', secretKey: 'x'.repeat(40) } },
    403,
    'InvalidAccessKeyId',
  ],
  [
    'another body than the signed one',
    { method: 'POST', body: '{}', sentBody: '{"a":1}' },
    400,
    'XAmzContentSHA256Mismatch',
  ],
  ['an old signature', { nowMs: Date.now() - 16 * 60_000 }, 403, 'RequestTimeTooSkewed'],
  [
    'a signature for S3',
    {
      headers: {
        authorization:
          'AWS4-HMAC-SHA256 Credential=HF/20250101/us-east/s3/aws4_request, SignedHeaders=host, Signature=00',
      },
    },
    400,
    'AuthorizationHeaderMalformed',
  ],
  [
    'a signature of version 2, good or not',
    { headers: { authorization: 'AWS HF:c2lnbmF0dXJl' } },
    400,
    'InvalidRequest',
  ],
  [
    'a query of version 2',
    {
      path: '/holdfast-admin/v1/accounts?AWSAccessKeyId=HF&Expires=2000000000&Signature=x',
      headers: { authorization: '' },
    },
    400,
    'InvalidArgument',
  ],
  ['an unknown endpoint', { path: '/holdfast-admin/v1/nothing' }, 404, 'NoSuchEntity'],
  ['another version of the API', { path: '/holdfast-admin/v2/accounts' }, 404, 'NoSuchEntity'],
  ['a method that it has not', { method: 'PUT' }, 405, 'MethodNotAllowed'],
  ['a body that is no JSON', { method: 'POST', body: '{' }, 400, 'ValidationError'],
  ['a body that is no object', { method: 'POST', body: '[]' }, 400, 'ValidationError'],
  ['a bad escape in the path', { path: '/holdfast-admin/v1/accounts/%zz' }, 400, 'InvalidURI'],
])('refuses %s', async (_, options, status, code) => {
  expect(await call(options)).toMatchObject({ status, json: { error: { code } } });
});

test('a wrong secret is refused', async () => {
  const credentials = { accessKey: server.accessKey, secretKey: 'x'.repeat(40) };
  expect(await call({ credentials })).toMatchObject({
    status: 403,
    json: { error: { code: 'SignatureDoesNotMatch' } },
  });
});

test('fields are validated, each with its message', async () => {
  const body = JSON.stringify({ name: 5, emial: 'a@b' });
  expect((await call({ method: 'POST', body })).json.error).toEqual({
    code: 'ValidationError',
    message: 'emial is not a known field; name must be a string; email is required',
    fields: { emial: 'is not a known field', name: 'must be a string', email: 'is required' },
  });
});

test('a field called __proto__ is refused like any other unknown one', async () => {
  const { json, status } = await call({
    method: 'POST',
    body: '{"name": "n", "email": "e@x", "__proto__": "p"}',
  });
  expect([status, json.error.message]).toEqual([400, '__proto__ is not a known field']);
});

test('a body beyond the limit is refused', async () => {
  const body = JSON.stringify({ name: 'x'.repeat(OPERATOR_SIGNED_BODY_BYTES_MAX) });
  expect(await call({ method: 'POST', body })).toMatchObject({
    status: 400,
    json: { error: { code: 'MaxMessageLengthExceeded' } },
  });
});

test('a wrong signature is refused before a byte of the body is read', async () => {
  const path = '/holdfast-admin/v1/accounts';
  const host = new URL(server.endpoint).host;
  const credentials = { ...server, secretKey: 'x'.repeat(40) };
  const signed = signRequest({ method: 'POST', host, path, body: '{}', credentials, nowMs: Date.now() });
  const socket = await openSocket(server);
  const lines = Object.entries({ ...signed, 'content-length': '2' }).map((line) => `${line.join(': ')}\r\n`);
  socket.write(`POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n`);
  expect((await socket.answer())?.status).toBe(403);
  socket.destroy();
});

test('the signed digest of the body need not be sent', async () => {
  const path = '/holdfast-admin/v1/accounts';
  const { host } = new URL(server.endpoint);
  const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
  const hmac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest();
  const post = (body: string, signedBody = body) => {
    const time = new Date().toISOString().replace(/[-:]|\.\d{3}/g, '');
    const scope = `${time.slice(0, 8)}/us-east/holdfast/aws4_request`;
    const names = 'host;x-amz-date';
    const canonical = `POST\n${path}\n\nhost:${host}\nx-amz-date:${time}\n\n${names}\n${sha256(signedBody)}`;
    const key = scope.split('/').reduce<string | Buffer>(hmac, `AWS4${server.secretKey}`);
    const toSign = ['AWS4-HMAC-SHA256', time, scope, sha256(canonical)].join('\n');
    const authorization = `AWS4-HMAC-SHA256 Credential=${server.accessKey}/${scope}, SignedHeaders=${names}, Signature=${hmac(key, toSign).toString('hex')}`;
    return fetch(server.endpoint + path, {
      method: 'POST',
      body,
      headers: { authorization, 'x-amz-date': time },
    });
  };
  const body = JSON.stringify({
    name: `by another client ${freshWord()}`,
    email: `${freshWord()}@example.com`,
  });
  expect((await post(body)).status).toBe(201);
  expect((await post(body, '{}')).status).toBe(403);
  // Who it is from shows when all of it is there: so much less may come.
  const long = await post(JSON.stringify({ name: 'x'.repeat(OPERATOR_BODY_BYTES_MAX) }));
  expect([long.status, await long.json()]).toMatchObject([
    400,
    { error: { code: 'MaxMessageLengthExceeded' } },
  ]);
});

test('the tool takes its credentials from the environment, and explains errors', async () => {
  const context: CliContext = { env: {}, print: () => {}, nowMs: Date.now, sleep: async () => {} };
  const nowhere = { dataDir: '/nowhere', endpoint: server.endpoint };
  await expect(connect(context, nowhere)).rejects.toThrow(
    'no credentials: cannot read /nowhere/root-credentials.json',
  );
  const env = { HOLDFAST_ROOT_ACCESS_KEY: server.accessKey, HOLDFAST_ROOT_SECRET_KEY: server.secretKey };
  const client = await connect({ ...context, env }, nowhere);
  expect(await client.call('GET', '/keys')).toMatchObject({ olderKeyIds: [] });
  const lost = await connect({ ...context, env }, { endpoint: 'http://127.0.0.1:1' });
  await expect(lost.call('GET', '/keys')).rejects.toThrow('cannot reach the server at http://127.0.0.1:1');
  await expect(connect({ ...context, env }, { endpoint: 'nowhere' })).rejects.toThrow(
    'the endpoint must be a URL',
  );
});
