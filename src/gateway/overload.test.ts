// What a gateway with too much to do answers, over real sockets: 503 to S3 requests, early and on a connection that
// stays where HTTP allows it; health, metrics and the operator API are served, and what is under way goes on.
import { afterEach, expect, test } from 'vitest';
import { countedTelemetry } from '../../tests/support/counted-telemetry.ts';
import { type GatewayWorld, openGatewayWorld } from '../../tests/support/gateway-world.ts';
import { type Access, send } from '../../tests/support/raw-s3.ts';
import { headOf, openSocket } from '../../tests/support/raw-socket.ts';
import { createManualClock } from '../../tests/support/simulated.ts';
import { LIMITS } from '../model/limits.ts';
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

test('that no request is under way is told from the start', async () => {
  const { telemetry, linesOf } = countedTelemetry();
  world = await openGatewayWorld({ deps: { telemetry } });
  expect(await linesOf('holdfast_requests_in_flight')).toEqual(['0']);
});

test('too many requests: SlowDown on connections that stay, while the doors beside S3 are open', async () => {
  const { root, shed } = await open({ requestsInFlightMax: 2 });
  const busy = await Promise.all([openSocket(root), openSocket(root)]);
  for (const [at, socket] of busy.entries()) {
    const headers = { 'content-length': '4' };
    socket.write(headOf(root, { method: 'PUT', path: `/bucket/busy-${at}`, headers }));
    // It is under way once it has been answered that the next one is too many.
    socket.write('ha');
  }
  const socket = await openSocket(root);
  let refused = 0;
  for (let attempt = 0; refused < 3 && attempt < 100; attempt++) {
    socket.write(get(root));
    const answer = await socket.answer();
    if (answer?.status !== 503) continue;
    refused++;
    expect(answer.body).toContain('<Code>SlowDown</Code>');
    expect(answer.headers.get('connection')).toBe('keep-alive');
  }
  expect(refused).toBe(3);
  expect(shed).toEqual(Array.from({ length: 3 }, () => ({ reason: 'requests', share: 'all' })));
  for (const path of ['/health/live', '/health/ready', '/metrics']) {
    socket.write(bare(path));
    expect((await socket.answer())?.status).toBe(200);
  }
  socket.write(get(root, '/holdfast-admin/v1/status'));
  expect((await socket.answer())?.status).not.toBe(503);
  // With 100-continue nothing of a refused body is asked for.
  const upload = await openSocket(root);
  const headers = { 'content-length': String(64 * MiB), expect: '100-continue' };
  upload.write(headOf(root, { method: 'PUT', path: '/bucket/large', headers }));
  expect((await upload.answer())?.status).toBe(503);
  for (const other of busy) other.write('lf');
  expect(await Promise.all(busy.map(async (other) => (await other.answer())?.status))).toEqual([200, 200]);
  socket.write(get(root));
  expect((await socket.answer())?.status).toBe(200);
  for (const other of [...busy, socket, upload]) other.destroy();
});

test('refused clients that are still listened to keep nobody out', async () => {
  const { root, shed } = await open({ requestsInFlightMax: 2 });
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

test('too many connections: the first answer is the last one, S3 is refused, health is told', async () => {
  // One of them is kept by the client that made the bucket.
  const { root, shed } = await open({ connectionsMax: 4 });
  const kept = await Promise.all([openSocket(root), openSocket(root), openSocket(root)]);
  for (const socket of kept) {
    socket.write(get(root));
    expect((await socket.answer())?.status).toBe(200);
  }
  const [excess, probe] = [await openSocket(root), await openSocket(root)];
  excess.write(get(root));
  const answer = await excess.answer();
  expect([answer?.status, answer?.headers.get('connection')]).toEqual([503, 'close']);
  expect(answer?.body).toContain('<Code>SlowDown</Code>');
  await excess.closed;
  probe.write(bare('/health/live'));
  const health = await probe.answer();
  expect([health?.status, health?.headers.get('connection')]).toEqual([200, 'close']);
  await probe.closed;
  expect(shed).toEqual([{ reason: 'connections', share: 'all' }]);
  kept[0]?.destroy();
  await kept[0]?.closed;
  for (const socket of kept.slice(1)) {
    socket.write(get(root));
    expect((await socket.answer())?.status).toBe(200);
    socket.destroy();
  }
});

test('a flood of requests behind one that is not answered ends its connection', async () => {
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

test('a client that does not read the end of its answer is let go', async () => {
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
