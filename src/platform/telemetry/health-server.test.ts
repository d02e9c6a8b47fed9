import diagnostics from 'node:diagnostics_channel';
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { LIMITS } from '../../types/limits.ts';
import { AT_ONCE_MAX } from '../few-at-once.ts';
import { type HealthServer, startHealthServer } from './health-server.ts';

const log = { debug() {}, info() {}, warn() {}, error() {} };
const clock = { nowMs: 0, monotonicMs: () => clock.nowMs };
const state = { isReady: false, readCount: 0 };
let release: () => void = () => {};
let server: HealthServer | undefined;
afterEach(() => server?.close());

async function open(readMetrics: () => Promise<{ contentType: string; text: string }>) {
  server = await startHealthServer({
    listen: { host: '127.0.0.1', port: 0 },
    log,
    clock,
    readMetrics,
    isReady: () => state.isReady,
  });
  const base = `http://${server.address}`;
  return (path: string, init?: RequestInit) => fetch(base + path, init);
}

const metrics = async () => ({ contentType: 'text/plain; version=0.0.4', text: 'holdfast_objects 7\n' });

test('reports whether the process lives and is ready, and its metrics', async () => {
  const ask = await open(metrics);
  state.isReady = false;
  expect((await ask('/health/live')).status).toBe(200);
  const unready = await ask('/health/ready');
  expect(unready.status).toBe(503);
  expect(await unready.json()).toEqual({ status: 'unavailable' });
  state.isReady = true;
  const ready = await ask('/health/ready?probe=1');
  expect(ready.status).toBe(200);
  expect(await ready.json()).toEqual({ status: 'ok' });
  const scraped = await ask('/metrics');
  expect(scraped.headers.get('content-type')).toBe('text/plain; version=0.0.4');
  expect(await scraped.text()).toBe('holdfast_objects 7\n');
});

test('HEAD answers without a body; other methods, paths and bodies are refused', async () => {
  const ask = await open(metrics);
  const head = await ask('/metrics', { method: 'HEAD' });
  expect(head.status).toBe(200);
  expect(head.headers.get('content-length')).toBe('19');
  expect(await head.text()).toBe('');
  const put = await ask('/health/live', { method: 'PUT', body: 'x'.repeat(100_000) });
  expect(put.status).toBe(405);
  expect(put.headers.get('allow')).toBe('GET, HEAD');
  for (const path of ['/', '/health', '/metrics/', '/holdfast-admin/v1/status'])
    expect((await ask(path)).status, path).toBe(404);
  const tooMuch = await ask('/health/live', { headers: { 'x-long': 'x'.repeat(LIMITS.peerHeaderBytesMax) } });
  expect(tooMuch.status).toBe(431);
});

test('scrapes at the same time share one reading; a failed one is reported and does no harm', async () => {
  state.readCount = 0;
  const ask = await open(async () => {
    state.readCount++;
    await new Promise<void>((resolve) => {
      release = resolve;
    });
    if (state.readCount === 2) throw new Error('no');
    return metrics();
  });
  const three = [ask('/metrics'), ask('/metrics'), ask('/metrics')];
  // All three have come in when this one is answered, on connections of its own.
  while (state.readCount === 0) await ask('/health/live');
  await ask('/health/live');
  release();
  expect((await Promise.all(three)).map(({ status }) => status)).toEqual([200, 200, 200]);
  expect(state.readCount).toBeLessThanOrEqual(2);
});

test('an error of a scrape is answered 500', async () => {
  const ask = await open(() => Promise.reject(new Error('no')));
  expect((await ask('/metrics')).status).toBe(500);
  expect((await ask('/health/live')).status).toBe(200);
});

test('a scrape answers all callers within a second', async () => {
  state.readCount = 0;
  const ask = await open(() => {
    state.readCount++;
    return metrics();
  });
  for (let count = 0; count < 3; count++) expect((await ask('/metrics')).status).toBe(200);
  expect(state.readCount).toBe(1);
  clock.nowMs += LIMITS.metricsKeptMs;
  expect((await ask('/metrics')).status).toBe(200);
  expect(state.readCount).toBe(2);
});

const HEALTH = 'GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n';

/** One connection to the server, from an address of this machine. */
async function connectFrom(localAddress: string) {
  const port = Number(server?.address.split(':')[1]);
  const socket = connect({ port, host: '127.0.0.1', localAddress });
  // It may end by a reset, when it has sent more than was read.
  socket.on('error', () => {});
  const closed = new Promise<unknown[]>((resolve) => socket.once('close', () => resolve([])));
  await once(socket, 'connect');
  return {
    socket,
    closed,
    async ask() {
      const answered = Promise.race([once(socket, 'data'), closed]);
      socket.write(HEALTH);
      const [data] = await answered;
      return String(data).slice(0, 'HTTP/1.1 200'.length);
    },
  };
}

test('idle connections keep no probe out: those that have been idle longest end first', async () => {
  await open(metrics);
  const asked = await connectFrom('127.0.0.2');
  const idle = [];
  for (let count = 0; count < LIMITS.healthConnectionsMax; count++) idle.push(await connectFrom('127.0.0.2'));
  for (let count = 0; count < 50; count++) {
    const probe = await connectFrom('127.0.0.1');
    expect(await probe.ask()).toBe('HTTP/1.1 200');
    probe.socket.destroy();
    await probe.closed;
  }
  // The first of them went for the last, and one that asks stays.
  await asked.closed;
  const last = idle.at(-1);
  expect(await last?.ask()).toBe('HTTP/1.1 200');
  for (const { socket } of idle) socket.destroy();
});

test('many connections of one address do not end those of another', async () => {
  await open(metrics);
  const kept = await connectFrom('127.0.0.3');
  expect(await kept.ask()).toBe('HTTP/1.1 200');
  const others = [];
  for (let count = 0; count < 3 * LIMITS.healthConnectionsMax; count++) {
    others.push(await connectFrom('127.0.0.2'));
  }
  expect(await kept.ask()).toBe('HTTP/1.1 200');
  for (const { socket } of [kept, ...others]) socket.destroy();
});

test('a body in chunks is not looked at: the connection ends at its head', async () => {
  await open(metrics);
  const { socket, closed } = await connectFrom('127.0.0.1');
  let answered = '';
  socket.on('data', (bytes) => {
    answered += bytes;
  });
  socket.write(HEALTH.replace('Host', 'Transfer-Encoding: chunked\r\nHost') + '1\r\nx\r\n'.repeat(1000));
  await closed;
  expect(answered).toBe('');
});

test.each([
  ['', 200],
  ['Expect: what\r\n', 417],
])(
  'of thousands of requests in one read a few are made, and the connection ends: %j',
  async (line, status) => {
    await open(metrics);
    const made: unknown[] = [];
    const note = (message: unknown) => made.push(message);
    diagnostics.subscribe('http.server.request.start', note);
    const { socket, closed } = await connectFrom('127.0.0.1');
    const request = HEALTH.replace('Host', `${line}Host`);
    const last = request.replace('Host', 'Connection: close\r\nHost');
    socket.write(request.repeat(2000) + last);
    socket.resume();
    await closed;
    expect(made).toHaveLength(AT_ONCE_MAX);
    // One after another goes on.
    const patient = await connectFrom('127.0.0.1');
    for (let count = 0; count < 3 * AT_ONCE_MAX; count++) {
      patient.socket.write(request);
      const [data] = await once(patient.socket, 'data');
      expect(String(data)).toContain(`HTTP/1.1 ${status}`);
    }
    patient.socket.destroy();
    diagnostics.unsubscribe('http.server.request.start', note);
  },
);

test('an address in use is refused', async () => {
  await open(metrics);
  const [host = '', port] = server?.address.split(':') ?? [];
  const again = startHealthServer({
    listen: { host, port: Number(port) },
    log,
    clock,
    readMetrics: metrics,
    isReady: () => true,
  });
  await expect(again).rejects.toThrow('another program listens there');
});
