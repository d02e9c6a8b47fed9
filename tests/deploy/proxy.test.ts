// The example of a proxy: taken by HAProxy, and between clients and a real server, with its own addresses in the place of
// the gateways'. What a client sends and signs must arrive as it was, at any size, and without waiting; and over HTTPS, to
// nobody but gateways.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer as createPlainServer, type RequestOptions } from 'node:http';
import { createServer, request, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { connect } from 'node:tls';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { must } from '../../src/base/assert.ts';
import { freePorts } from '../support/cluster/free-ports.ts';
import { keyHeaders } from '../support/servers/customer-keys.ts';
import { readCompose } from '../support/servers/deploy-files.ts';
import { HAPROXY, openExampleProxies } from '../support/servers/example-proxy.ts';
import { signedHeaders } from '../support/servers/raw-s3.ts';
import { startServer, type TestServer } from '../support/servers/start-server.ts';

const MiB = 1024 * 1024;
const NAME = 's3.example.net';

const proxies = openExampleProxies(NAME);
/** Answers everything but its health. */
let unwell: Server;
let server: TestServer;
let port = 0;
let alivePort = 0;

beforeAll(async () => {
  const [own, other] = [await proxies.certificateOf('gateway-1'), await proxies.certificateOf('gateway-2')];
  const tls = { 'tls.mode': 'files', 'tls.cert': own.cert, 'tls.key': own.key };
  server = await startServer({ settings: { trustedProxies: '127.0.0.1', domain: NAME, ...tls } });
  const identity = { cert: readFileSync(other.cert), key: readFileSync(other.key) };
  unwell = createServer(identity, (asked, response) => {
    response.writeHead(asked.url === '/health/ready' ? 503 : 418).end();
  });
  unwell.listen(0, '127.0.0.1');
  await once(unwell, 'listening');
  [port = 0, alivePort = 0] = await freePorts(2);
  const ports = [port, alivePort] as const;
  const unwellAt = `127.0.0.1:${(unwell.address() as AddressInfo).port}`;
  await proxies.start(
    await proxies.configure({ gateways: [new URL(server.endpoint).host, unwellAt], ports }),
  );
});
afterAll(async () => {
  proxies.end();
  unwell.close();
  await server.stop();
});

interface Wanted {
  method: string;
  path: string;
  host?: string;
  headers?: Record<string, string>;
  /** What the client did not sign. */
  added?: Record<string, string>;
}

/** Signed for the name by which the client knows the service. */
function open({ method, path, host = NAME, headers = {}, added = {} }: Wanted) {
  const options: RequestOptions & { rejectUnauthorized: boolean } = {
    host: '127.0.0.1',
    port,
    method,
    path,
    rejectUnauthorized: false,
    headers: { ...signedHeaders(server, { method, path, headers: { host, ...headers } }), ...added },
  };
  return request(options);
}

async function send(wanted: Wanted, body?: Buffer) {
  const sent = open({
    ...wanted,
    headers: { ...(body && { 'content-length': String(body.length) }), ...wanted.headers },
  });
  sent.end(body);
  const [answer] = await once(sent, 'response');
  return { status: answer.statusCode as number, body: await buffer(answer), headers: answer.headers };
}

test('HAProxy accepts the example without warnings', async () => {
  const path = await proxies.configure({ gateways: ['127.0.0.1:1', '127.0.0.1:2'], ports: [3, 4] });
  const { status, stderr } = spawnSync(HAPROXY, ['-c', '-q', '-f', path], { encoding: 'utf8' });
  expect([status, stderr]).toEqual([0, '']);
});

test('paths and hosts arrive as they were signed, in both styles', async () => {
  expect((await send({ method: 'PUT', path: '/through' })).status).toBe(200);
  for (const key of ['a%20b//c', '../up', '%2F%E2%82%AC', 'x%2e%2e']) {
    const path = `/through/${key}`;
    const put = await send({ method: 'PUT', path }, Buffer.from(key));
    expect([key, put.status]).toEqual([key, 200]);
    expect((await send({ method: 'GET', path })).body.toString()).toBe(key);
  }
  const inHost = await send({ method: 'GET', path: '/a%20b//c', host: `through.${NAME}` });
  expect([inHost.status, inHost.body.toString()]).toEqual([200, 'a%20b//c']);
});

test("a client's forwarding headers are ignored", async () => {
  const added = {
    'x-forwarded-host': `through.${NAME}`,
    'x-forwarded-proto': 'http',
    'x-forwarded-for': '127.0.0.1',
  };
  await send({ method: 'PUT', path: '/through' });
  await send({ method: 'PUT', path: '/through/some-object' }, Buffer.from('some'));
  // By the name in Host it is a bucket that is not there; by the other, which was not signed, it would be the object.
  expect((await send({ method: 'GET', path: '/some-object', added })).status).toBe(404);
});

test('a body is passed on while it arrives, without a limit of its size', async () => {
  await send({ method: 'PUT', path: '/through' });
  const size = 96 * MiB;
  const put = open({ method: 'PUT', path: '/through/large', headers: { 'content-length': String(size) } });
  const answered = once(put, 'response');
  const piece = Buffer.alloc(MiB, 'p');
  for (let sent = 0; sent < size; sent += MiB) if (!put.write(piece)) await once(put, 'drain');
  put.end();
  const [answer] = await answered;
  expect(answer.statusCode).toBe(200);
  const get = open({ method: 'GET', path: '/through/large' });
  get.end();
  const [response] = await once(get, 'response');
  let received = 0;
  for await (const part of response) received += part.length;
  expect([response.statusCode, received]).toEqual([200, size]);
});

test('a client that waits for 100 Continue is answered by the gateway', async () => {
  const headers = { expect: '100-continue', 'content-length': '4' };
  const good = open({ method: 'PUT', path: '/through/asked', headers });
  good.flushHeaders();
  await once(good, 'continue');
  const answered = once(good, 'response');
  good.end('body');
  expect((await answered)[0].statusCode).toBe(200);
  const bad = open({ method: 'PUT', path: '/no-such-bucket/asked', headers });
  let isTold = false;
  bad.once('continue', () => {
    isTold = true;
  });
  bad.flushHeaders();
  const [refused] = await once(bad, 'response');
  expect([refused.statusCode, isTold]).toEqual([404, false]);
  bad.destroy();
});

test('a head as large as gateways accept passes', async () => {
  const headers = Object.fromEntries(
    Array.from({ length: 20 }, (_, index) => [`x-padding-${index}`, 'p'.repeat(1400)]),
  );
  expect((await send({ method: 'GET', path: '/', headers })).status).toBe(200);
});

test('as many headers as 2 KiB of metadata need pass both ways, and more are refused by the gateway', async () => {
  await send({ method: 'PUT', path: '/through' });
  const named = (count: number) =>
    Object.fromEntries(
      Array.from({ length: count }, (_, index) => [`x-amz-meta-${index.toString(36)}`, 'v'] as const),
    );
  // 36 names of 1 letter, the others of 2: 2,020 bytes with their values.
  const headers = named(684);
  const path = `/through/${'%E2%82%AC'.repeat(341)}`;
  expect((await send({ method: 'PUT', path, headers }, Buffer.from('body'))).status).toBe(200);
  const head = await send({ method: 'HEAD', path });
  expect(head.headers).toMatchObject({ 'content-length': '4', ...headers });
  const refused = await send({ method: 'PUT', path, headers: named(720) }, Buffer.from('body'));
  expect([refused.status, refused.body.toString()]).toEqual([
    400,
    expect.stringContaining('MetadataTooLarge'),
  ]);
});

test('status pages of the gateways are refused to everybody, however they are requested', async () => {
  const authorization = 'AWS4-HMAC-SHA256 Credential=any';
  for (const [path, headers] of [
    ['/metrics', {}],
    ['/metrics?x', {}],
    ['/metrics?X-Amz-Signature=any', {}],
    ['/metrics', { authorization }],
    ['/metrics/', {}],
    ['/metrics', { 'x-forwarded-for': '127.0.0.1' }],
  ] as const) {
    const asked = request({ host: '127.0.0.1', port, path, headers, rejectUnauthorized: false }).end();
    const [answer] = await once(asked, 'response');
    const isTold = (await buffer(answer)).includes('holdfast_');
    expect([path, answer.statusCode, isTold]).toEqual([path, 404, false]);
  }
  // It is a key of a bucket in the host.
  await send({ method: 'PUT', path: '/through' });
  expect((await send({ method: 'PUT', path: '/through/metrics' }, Buffer.from('mine'))).status).toBe(200);
  const inHost = await send({ method: 'GET', path: '/metrics', host: `through.${NAME}` });
  expect([inHost.status, inHost.body.toString()]).toEqual([200, 'mine']);
});

test('keys of customers are accepted, because the client uses HTTPS', async () => {
  await send({ method: 'PUT', path: '/through' });
  const headers = keyHeaders(Buffer.alloc(32, 'k'));
  expect((await send({ method: 'PUT', path: '/through/sealed', headers }, Buffer.from('s'))).status).toBe(
    200,
  );
  expect((await send({ method: 'GET', path: '/through/sealed', headers })).body.toString()).toBe('s');
});

test('HTTP/2 is not spoken, not even to who begins with its preface', async () => {
  const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false });
  // With the settings that follow it.
  socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0');
  const [answer] = await once(socket, 'data');
  expect(String(answer)).toMatch(/^HTTP\/1\.1 400 /);
  socket.destroy();
});

test('a gateway with a certificate for another name gets no requests', async () => {
  const { host } = new URL(server.endpoint);
  const [outer = 0, alive = 0] = await freePorts(2);
  const said = await proxies.start(
    await proxies.configure({ gateways: [host, host], ports: [outer, alive] }),
  );
  expect(said).toMatch(/gateways\/gateway-2 is DOWN, reason: Layer6 invalid response.*certificate different/);
  expect(said).not.toContain('gateways/gateway-1 is DOWN');
});

test('a gateway that is not ready gets no requests, and the proxy reports whether it is of use', async () => {
  const statuses = await Promise.all(Array.from({ length: 20 }, () => send({ method: 'GET', path: '/' })));
  expect(new Set(statuses.map(({ status }) => status))).toEqual(new Set([200]));
  expect((await fetch(`http://127.0.0.1:${alivePort}/alive`)).status).toBe(200);
});

test('its health check in containers reports whether it is of use', async () => {
  const [, ...command] = readCompose('compose.cluster.yaml').services.proxy?.healthcheck?.test ?? [];
  const askAt = async (at: number) => {
    const words = command.map((word) => word.replaceAll('$$', '$').replace('/8404', `/${at}`));
    // Beside this process, which has to answer.
    const asked = spawn(must(words[0], 'a program'), words.slice(1), { stdio: 'ignore' });
    return (await once(asked, 'exit'))[0];
  };
  expect(await askAt(alivePort)).toBe(0);
  const [closed = 0] = await freePorts(1);
  expect(await askAt(closed)).not.toBe(0);
  const unwellAlso = createPlainServer((_, response) => response.writeHead(503).end());
  unwellAlso.listen(0, '127.0.0.1');
  await once(unwellAlso, 'listening');
  expect(await askAt((unwellAlso.address() as AddressInfo).port)).not.toBe(0);
  unwellAlso.close();
});
