// What a gateway with too much to do answers, over real sockets: 503 to requests of S3, IAM and STS, early and on a connection
// that stays where HTTP allows it; health, metrics and the operator API are served, and what is under way goes on.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { type GatewayWorld, openGatewayWorld } from '../../../tests/support/objects/gateway-world.ts';
import { countedTelemetry } from '../../../tests/support/run/counted-telemetry.ts';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import { callIam } from '../../../tests/support/servers/iam-api.ts';
import { type Access, send } from '../../../tests/support/servers/raw-s3.ts';
import {
  headOf,
  openSocket,
  presignedHeadOf,
  type RawSocket,
} from '../../../tests/support/servers/raw-socket.ts';
import { must } from '../../base/assert.ts';
import { signRequest } from '../../cli/sign-request.ts';
import { LIMITS } from '../../types/limits.ts';
import type { GatewayDependencies, GatewaySettings } from './server.ts';

const MiB = 1024 * 1024;
let world: GatewayWorld | undefined;
afterEach(() => world?.close());

async function open(settings: Partial<GatewaySettings>, deps: Partial<GatewayDependencies> = {}) {
  const shed: unknown[] = [];
  const telemetry = {
    count(name: string, labels?: object) {
      if (name === 'holdfast_requests_shed_total') shed.push(labels);
    },
    observe() {},
    gauge() {},
    gaugeAll() {},
  };
  world = await openGatewayWorld({ settings, deps: { telemetry, ...deps } });
  const clock = deps.clock;
  const root: Access = {
    endpoint: world.endpoint,
    ...world.root,
    ...(clock && { nowMs: () => clock.wallMs() }),
  };
  await send(root, { method: 'PUT', path: '/bucket' });
  return { root, shed };
}

const get = (root: Access, path = '/bucket?location=') => headOf(root, { method: 'GET', path });
const bare = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;

test('the gauge of requests is 0 from the start', async () => {
  const { telemetry, linesOf } = countedTelemetry();
  world = await openGatewayWorld({ deps: { telemetry } });
  expect(await linesOf('holdfast_requests_in_flight')).toEqual(['0']);
});

/** A PUT whose body does not come to its end until more is written; resolves when it is under way. */
async function beginPut(root: Access, key: string, { bucket = 'bucket' } = {}): Promise<RawSocket> {
  const socket = await openSocket(root);
  const headers = { 'content-length': '4', expect: '100-continue' };
  socket.write(headOf(root, { method: 'PUT', path: `/${bucket}/${key}`, headers }));
  expect((await socket.answer())?.status).toBe(100);
  socket.write('ha');
  return socket;
}

test('too many requests: SlowDown on connections that stay, of S3, IAM and STS; the other services answer', async () => {
  const { root, shed } = await open({ requestsInFlightMax: 3 });
  const busy = [await beginPut(root, 'busy-0'), await beginPut(root, 'busy-1')];
  const socket = await openSocket(root);
  for (let count = 0; count < 3; count++) {
    socket.write(get(root));
    const answer = await socket.answer();
    expect(answer?.status).toBe(503);
    expect(answer?.body).toContain('<Code>SlowDown</Code>');
    expect(answer?.headers.get('connection')).toBe('keep-alive');
  }
  expect(shed).toEqual(Array.from({ length: 3 }, () => ({ reason: 'requests', share: 'tenant' })));
  // Another account finds a place.
  const other = await world?.makeAccount('other');
  socket.write(headOf({ ...root, ...other }, { method: 'GET', path: '/' }));
  expect((await socket.answer())?.status).toBe(200);
  for (const path of ['/health/live', '/health/ready', '/metrics']) {
    socket.write(bare(path));
    expect((await socket.answer())?.status).toBe(200);
  }
  // Of IAM and STS, too; operators must be able to act.
  const asRoot = (Action: string, service: 'iam' | 'sts') => callIam(root, { Action }, { service });
  for (const answer of [await asRoot('GetUser', 'iam'), await asRoot('GetCallerIdentity', 'sts')])
    expect(answer).toMatchObject({ status: 503, code: 'SlowDown' });
  socket.write(get(root, '/holdfast-admin/v1/status'));
  expect((await socket.answer())?.status).not.toBe(503);
  expect(await callIam({ ...root, ...other }, { Action: 'GetUser' })).toMatchObject({ status: 200 });
  // With 100-continue nothing of a refused body is asked for.
  const headers = { 'content-length': String(64 * MiB), expect: '100-continue' };
  const large = await openSocket(root);
  large.write(headOf(root, { method: 'PUT', path: '/bucket/large', headers }));
  expect((await large.answer())?.status).toBe(503);
  for (const one of busy) one.write('lf');
  expect(await Promise.all(busy.map(async (one) => (await one.answer())?.status))).toEqual([200, 200]);
  socket.write(get(root));
  expect((await socket.answer())?.status).toBe(200);
  for (const one of [...busy, large, socket]) one.destroy();
});

test('bodies for IAM that do not come hold a share of memory, and the next account has room', async () => {
  const { root, shed } = await open({});
  const credentials = await must(world, 'it is open').makeAccount('other');
  const unitBytes = LIMITS.identityBodyBytesMax;
  const signed = signRequest({
    method: 'POST',
    host: new URL(root.endpoint).host,
    path: '/',
    query: '',
    body: 'x'.repeat(unitBytes),
    service: 'iam',
    credentials,
    headers: { 'content-type': 'application/x-www-form-urlencoded', 'content-length': String(unitBytes) },
    nowMs: Date.now(),
  });
  const lines = Object.entries(signed).map(([name, value]) => `${name}: ${value}\r\n`);
  const statuses: (number | undefined)[] = [];
  const sockets: RawSocket[] = [];
  // So much of all is for one address.
  const heldCount = Math.floor((LIMITS.provedBodiesBytesMax / unitBytes) * 0.72);
  for (let at = 0; at < heldCount + 5; at++) {
    const socket = await openSocket(root);
    sockets.push(socket);
    socket.write(`POST / HTTP/1.1\r\n${lines.join('')}\r\n`);
    void socket.answer().then((answer) => statuses.push(answer?.status));
  }
  await expect.poll(() => statuses).toEqual(new Array(5).fill(503));
  expect(shed).toEqual(new Array(5).fill({ reason: 'bodies', share: 'tenant' }));
  expect(await callIam(root, { Action: 'GetUser' })).toMatchObject({ status: 200 });
  for (const socket of sockets) socket.destroy();
});

test('whoever has presigned URLs, from however many addresses, leaves places to who has signed them', async () => {
  const { root, shed } = await open({ requestsInFlightMax: 20 });
  const crowd: RawSocket[] = [];
  for (let at = 0; shed.length === 0 && at < 20; at++) {
    const socket = await openSocket(root, { localAddress: `127.0.1.${at + 1}` });
    crowd.push(socket);
    const headers = { 'content-length': '4', expect: '100-continue' };
    socket.write(presignedHeadOf(root, { method: 'PUT', path: `/bucket/${at}`, headers }));
    expect((await socket.answer())?.status).toBe(shed.length === 0 ? 100 : 503);
  }
  expect([crowd.length, shed]).toEqual([17, [{ reason: 'requests', share: 'tenant' }]]);
  const own = await openSocket(root);
  own.write(get(root));
  expect((await own.answer())?.status).toBe(200);
  for (const socket of [...crowd, own]) socket.destroy();
});

test('readiness fails only while S3 refuses everybody; liveness always succeeds', async () => {
  const { root } = await open({ requestsInFlightMax: 3 });
  const probe = await openSocket(root);
  const ask = async (path: string) => {
    probe.write(bare(path));
    return (await probe.answer())?.status;
  };
  const busy = [await beginPut(root, 'busy-0'), await beginPut(root, 'busy-1')];
  expect(await ask('/health/ready')).toBe(200);
  const other = await world?.makeAccount('other');
  const theirs: Access = { ...root, ...other };
  await send(theirs, { method: 'PUT', path: '/theirs' });
  busy.push(await beginPut(theirs, 'busy', { bucket: 'theirs' }));
  expect([await ask('/health/ready'), await ask('/health/live')]).toEqual([503, 200]);
  expect(world?.gateway.hasRoom()).toBe(false);
  const third = { ...root, ...(await world?.makeAccount('third')) };
  expect(await callIam(third, { Action: 'GetUser' })).toMatchObject({ status: 503, code: 'SlowDown' });
  for (const one of busy) one.destroy();
  await expect.poll(() => ask('/health/ready')).toBe(200);
  probe.destroy();
});

test('refused clients that still send keep nobody out', async () => {
  const { root, shed } = await open({ requestsInFlightMax: 3 });
  const refused = await Promise.all([openSocket(root), openSocket(root), openSocket(root)]);
  for (const socket of refused) {
    socket.write('PUT /bucket/key HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n');
    expect((await socket.answer())?.status).toBe(403);
  }
  const socket = await openSocket(root);
  socket.write(get(root));
  expect((await socket.answer())?.status).toBe(200);
  expect(shed).toEqual([]);
  for (const other of [...refused, socket]) other.destroy();
});

test.each([
  ['health', 'GET', '/health/live', 200],
  ['metrics', 'GET', '/metrics', 200],
  ['a preflight', 'OPTIONS', '/bucket/key', 200],
  ['the operator API', 'POST', '/holdfast-admin/v1/accounts', 403],
  ['S3', 'PUT', '/bucket/key', 403],
])(
  'strangers whose bodies never come: %s is answered at once, and another tenant is not refused',
  async (_name, method, path, status) => {
    const { root, shed } = await open({ requestsInFlightMax: 3, connectionsMax: 50 });
    const head = `${method} ${path} HTTP/1.1\r\nHost: x\r\nOrigin: http://x\r\nContent-Length: 1000\r\n\r\n`;
    const sockets: RawSocket[] = [];
    // More than there are places of requests, and of connections.
    for (let count = 0; count < 60; count++) {
      const socket = await openSocket(root, { localAddress: '127.0.0.2' });
      sockets.push(socket);
      socket.write(head);
      const answer = await socket.answer();
      expect([answer?.status, answer?.headers.get('connection')]).toEqual([status, 'close']);
    }
    const put = await send(root, { method: 'PUT', path: '/bucket/mine', body: Buffer.from('mine') });
    expect(put.status).toBe(200);
    const ready = await openSocket(root);
    ready.write(bare('/health/ready'));
    expect((await ready.answer())?.status).toBe(200);
    expect(shed).toEqual([]);
    for (const socket of [ready, ...sockets]) socket.destroy();
  },
);

test.each([
  ['a form', () => 'POST /bucket HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=b\r\n'],
  ['IAM, by the name of a key', ofKey],
])('strangers whose bodies are waited for hold no connection: %s', async (_name, headOfBody) => {
  // They are never told off for being slow.
  const { root } = await open({ connectionsMax: 20 }, { clock: createManualClock(Date.now()) });
  const crowd: RawSocket[] = [];
  let endedCount = 0;
  for (let count = 0; count < 60; count++) {
    const socket = await openSocket(root, { localAddress: '127.0.0.2' });
    crowd.push(socket);
    // Those that came first.
    if (count < 10) void socket.closed.then(() => endedCount++);
    socket.write(`${headOfBody(root)}Host: x\r\nContent-Length: 1\r\n\r\n`);
  }
  await expect.poll(() => endedCount, { timeout: 10_000 }).toBe(10);
  const socket = await openSocket(root, { localAddress: '127.0.0.4' });
  socket.write(get(root));
  const answer = await socket.answer();
  expect([answer?.status, answer?.headers.get('connection')]).toEqual([200, 'keep-alive']);
  for (const each of [socket, ...crowd]) each.destroy();
});

/** A head for IAM that names a key, and has a signature that nobody has made. */
function ofKey({ accessKey }: Access): string {
  const time = new Date().toISOString().replace(/[-:]|\.\d+/g, '');
  const credential = `${accessKey}/${time.slice(0, 8)}/us-east/iam/aws4_request`;
  const form = 'Content-Type: application/x-www-form-urlencoded\r\n';
  const signature = `SignedHeaders=content-type;host;x-amz-date, Signature=${'0'.repeat(64)}`;
  return `POST / HTTP/1.1\r\n${form}X-Amz-Date: ${time}\r\nAuthorization: AWS4-HMAC-SHA256 Credential=${credential}, ${signature}\r\n`;
}

function operatorHead(credentials: Access): string {
  const asked = { method: 'GET', path: '/holdfast-admin/v1/accounts', body: '' };
  const { host } = new URL(credentials.endpoint);
  const signed = signRequest({ ...asked, host, credentials, nowMs: Date.now() });
  const lines = Object.entries(signed).map(([name, value]) => `${name}: ${value}\r\n`);
  return `GET ${asked.path} HTTP/1.1\r\n${lines.join('')}\r\n`;
}

test('too many busy connections: the first answer closes, S3 is refused, health and operators are answered', async () => {
  // One of them is kept by the client that made the bucket, and makes room.
  const { root, shed } = await open({ connectionsMax: 6 });
  const busy: RawSocket[] = [];
  for (let at = 0; at < 4; at++) busy.push(await beginPut(root, `busy-${at}`));
  const excess = await openSocket(root);
  excess.write(get(root));
  const answer = await excess.answer();
  expect([answer?.status, answer?.headers.get('connection')]).toEqual([503, 'close']);
  expect(answer?.body).toContain('<Code>SlowDown</Code>');
  await excess.closed;
  expect(shed).toEqual([{ reason: 'connections', share: 'tenant' }]);
  // The last place is another's.
  const probe = await openSocket(root, { localAddress: '127.0.0.3' });
  probe.write(bare('/health/live'));
  expect((await probe.answer())?.status).toBe(200);
  const more = await openSocket(root, { localAddress: '127.0.0.3' });
  more.write(bare('/health/live'));
  expect((await more.answer())?.status).toBe(200);
  // Beyond all places an operator is served, at the address of those that took them, too.
  const operator = await openSocket(root);
  operator.write(operatorHead(root));
  expect((await operator.answer())?.status).toBe(200);
  for (const socket of busy) {
    socket.write('lf');
    expect((await socket.answer())?.status).toBe(200);
  }
  for (const socket of [...busy, probe, more, operator]) socket.destroy();
});

test('idle connections and incomplete heads of one address are closed first, and keep nobody out', async () => {
  const { root } = await open({ connectionsMax: 20 });
  const mine = await openSocket(root, { localAddress: '127.0.0.3' });
  mine.write(get(root));
  expect((await mine.answer())?.status).toBe(200);
  const crowd: RawSocket[] = [];
  for (let count = 0; count < 60; count++) {
    const socket = await openSocket(root, { localAddress: '127.0.0.2' });
    crowd.push(socket);
    if (count % 2 === 0) socket.write('GET / HTTP/1.1\r\nHo');
  }
  await Promise.all(crowd.slice(0, 40).map((socket) => socket.closed));
  // The one that was there, a new one, and an operator's probe.
  for (const socket of [mine, await openSocket(root, { localAddress: '127.0.0.4' })]) {
    socket.write(get(root));
    const answer = await socket.answer();
    expect([answer?.status, answer?.headers.get('connection')]).toEqual([200, 'keep-alive']);
    socket.destroy();
  }
  for (const socket of crowd) socket.destroy();
});

test('a flood of requests behind an unanswered one ends its connection', async () => {
  const { root } = await open({});
  const socket = await openSocket(root);
  const headers = { 'content-length': '4' };
  const put = headOf(root, { method: 'PUT', path: '/bucket/first', headers });
  socket.write(`${put}body${bare('/health/live').repeat(LIMITS.pipelinedRequestsMax + 2)}`);
  await socket.closed;
  const other = await openSocket(root);
  other.write(bare('/health/live'));
  expect((await other.answer())?.status).toBe(200);
  other.destroy();
});

/** Requests that Node's parser makes on connections from `localAddress` while `run` goes on. */
async function countParsed(localAddress: string, run: () => Promise<void>): Promise<number> {
  let count = 0;
  const note = (message: unknown) => {
    if ((message as { socket: Socket }).socket.remoteAddress === localAddress) count++;
  };
  subscribe('http.server.request.start', note);
  await run().finally(() => unsubscribe('http.server.request.start', note));
  return count;
}

test('a read full of small requests creates none behind the one that is too many', async () => {
  const { root } = await open({});
  const localAddress = '127.0.0.9';
  const flood = 'GET / HTTP/1.1\r\n\r\n'.repeat(3500);
  const parsed = await countParsed(localAddress, async () => {
    const socket = await openSocket(root, { localAddress });
    socket.write(flood);
    await socket.closed;
  });
  // The first one is at work, and others wait behind it.
  expect(parsed).toBe(1 + LIMITS.pipelinedRequestsMax + 1);
});

test('a read full of small requests creates none behind an answer that ends the connection', async () => {
  const { root } = await open({});
  const localAddress = '127.0.0.9';
  let status: number | undefined;
  const parsed = await countParsed(localAddress, async () => {
    const socket = await openSocket(root, { localAddress });
    socket.write(`GET / HTTP/1.0\r\n\r\n${bare('/health/live').repeat(40)}`);
    status = (await socket.answer())?.status;
    await socket.closed;
    socket.destroy();
  });
  expect(status).toBe(403);
  expect(parsed).toBeLessThanOrEqual(1 + 40);
});

/** A head of so many lines in all. */
function headOfLines(method: string, lineCount: number, last = 'x-last: 1'): string {
  const lines = Array.from({ length: lineCount - 2 }, (_, at) => `x-${at.toString(36)}: y`);
  return `${method} /bucket/lines HTTP/1.1\r\nHost: x\r\n${[...lines, last].join('\r\n')}\r\n\r\n`;
}

test('a head with too many lines is refused, and its connection ends', async () => {
  const { root } = await open({});
  const socket = await openSocket(root);
  socket.write(headOfLines('GET', LIMITS.headerLinesMax));
  expect((await socket.answer())?.status).toBe(403);
  socket.write(headOfLines('GET', LIMITS.headerLinesMax + 1));
  const answer = await socket.answer();
  expect([answer?.status, answer?.headers.get('connection')]).toEqual([400, 'close']);
  expect(answer?.body).toContain('<Code>RequestHeaderSectionTooLarge</Code>');
  await socket.closed;
  socket.destroy();
});

test('no line beyond the limit is dropped: what it frames is never read as a request', async () => {
  const { root } = await open({});
  for (const lineCount of [LIMITS.headerLinesMax + 1, LIMITS.headerLinesMax + 2, 2000]) {
    const localAddress = '127.0.0.9';
    const parsed = await countParsed(localAddress, async () => {
      const socket = await openSocket(root, { localAddress });
      const body = bare('/health/live');
      socket.write(headOfLines('GET', lineCount, `Content-Length: ${body.length}`) + body);
      expect((await socket.answer())?.status).toBe(400);
      expect(await socket.answer()).toBeUndefined();
      socket.destroy();
    });
    expect(parsed).toBe(0);
  }
});

test('a head with too many lines behind a request under way ends the connection behind its answer', async () => {
  const asked = Promise.withResolvers<void>();
  const told = Promise.withResolvers<{ contentType: string; text: string }>();
  const readMetrics = () => {
    asked.resolve();
    return told.promise;
  };
  const { root } = await open({}, { readMetrics });
  const socket = await openSocket(root);
  socket.write(bare('/metrics') + headOfLines('GET', LIMITS.headerLinesMax + 1));
  await asked.promise;
  // The read that has brought both is over.
  await new Promise(setImmediate);
  told.resolve({ contentType: 'text/plain', text: 'metrics' });
  const answer = await socket.answer();
  expect([answer?.status, answer?.headers.get('connection')]).toEqual([200, 'close']);
  expect(await socket.answer()).toBeUndefined();
  socket.destroy();
});

test('incomplete heads share memory: the oldest connections of a client with too much end', async () => {
  const { root } = await open({});
  const half = `GET /health/live HTTP/1.1\r\n${'a-name: of\r\n'.repeat(LIMITS.headerLinesMax - 10)}`;
  const crowd: RawSocket[] = [];
  const ended = new Set<RawSocket>();
  // An address may hold four fifths.
  const count = Math.ceil(LIMITS.unfinishedHeadsBytesMax / (LIMITS.headerLinesMax * 80));
  for (let at = 0; at < count; at++) {
    const socket = await openSocket(root, { localAddress: '127.0.0.9' });
    void socket.closed.then(() => ended.add(socket));
    socket.write(half);
    crowd.push(socket);
  }
  const other = await openSocket(root);
  other.write('GET /health/live HTTP/1.1\r\n');
  await crowd[0]?.closed;
  const last = crowd.at(-1) as RawSocket;
  for (const socket of [other, last]) {
    socket.write('Host: x\r\n\r\n');
    expect((await socket.answer())?.status).toBe(200);
  }
  expect(ended.size).toBeLessThan(count / 2);
  for (const socket of [...crowd, other]) socket.destroy();
});

test('a client that does not read the end of its answer is disconnected', async () => {
  const clock = createManualClock(Date.now());
  const text = 'x'.repeat(32 * MiB);
  const readMetrics = async () => ({ contentType: 'text/plain', text });
  const { root } = await open({ idleTimeoutMs: 3000 }, { clock, readMetrics });
  const socket = await openSocket(root);
  socket.socket.pause();
  socket.write(bare('/metrics'));
  const begun = () => world?.gateway.oldestRequestMs();
  while (begun() === undefined) await new Promise(setImmediate);
  for (let second = 0; begun() !== undefined && second < 20; second++) {
    await new Promise((resolve) => setTimeout(resolve, 5));
    clock.advance(1000);
  }
  expect(begun()).toBeUndefined();
  socket.destroy();
});
