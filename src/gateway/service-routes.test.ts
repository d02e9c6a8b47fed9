// The doors beside S3, over real sockets; the operator API behind one of them is tested by tests/api.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type GatewayWorld, openGatewayWorld } from '../../tests/support/gateway-world.ts';
import { send } from '../../tests/support/raw-s3.ts';
import { openSocket } from '../../tests/support/raw-socket.ts';
import { createManualClock } from '../../tests/support/simulated.ts';
import { LIMITS } from '../model/limits.ts';

let world: GatewayWorld;
beforeAll(async () => {
  world = await openGatewayWorld();
  await send({ endpoint: world.endpoint, ...world.root }, { method: 'PUT', path: '/bucket' });
});
afterAll(async () => {
  await world.close();
  expect(world.faults()).toEqual([]);
});

test.each([
  ['/health/live', 200, '{"status":"ok"}'],
  ['/health/ready?x=1', 200, '{"status":"ok"}'],
  ['/metrics', 200, 'metrics'],
])('%s', async (path, status, text) => {
  const answer = await fetch(world.endpoint + path);
  expect([answer.status, await answer.text()]).toEqual([status, text]);
});

test.each(['Via', 'Forwarded', 'X-Forwarded-For'])(
  'metrics are not told through a proxy, which leaves its mark in %s',
  async (name) => {
    for (const path of ['/metrics', '/metrics?x', '/metrics/']) {
      const answer = await fetch(world.endpoint + path, { headers: { [name]: 'by=198.51.100.1' } });
      expect([path, answer.status, await answer.text()]).toEqual([
        path,
        404,
        expect.not.stringMatching(/^metrics/),
      ]);
    }
    const alive = await fetch(`${world.endpoint}/health/live`, { headers: { [name]: 'by=198.51.100.1' } });
    expect(alive.status).toBe(200);
  },
);

test('a scrape is read once a second, and those who wait for it are bounded by address', async () => {
  let readCount = 0;
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const readMetrics = async () => {
    readCount++;
    await released;
    return { contentType: 'text/plain', text: 'measured' };
  };
  const clock = createManualClock(Date.now());
  const crowded = await openGatewayWorld({ deps: { readMetrics, clock } });
  const ask = async (localAddress: string) => {
    const socket = await openSocket(crowded, { localAddress });
    socket.write('GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n');
    return socket;
  };
  const sockets = await Promise.all(Array.from({ length: LIMITS.metricsAnswersMax }, () => ask('127.0.0.2')));
  const answers = sockets.map((socket) => socket.answer());
  // Four fifths of the places are for one address.
  const refusedCount = Math.ceil(LIMITS.metricsAnswersMax / 5);
  const early: unknown[] = [];
  for (const answer of answers) void answer.then((one) => early.push(one?.status));
  await expect.poll(() => early).toEqual(new Array(refusedCount).fill(503));
  const other = await ask('127.0.0.3');
  const otherAnswer = other.answer();
  release();
  expect(await otherAnswer).toMatchObject({ status: 200, body: 'measured' });
  const statuses = (await Promise.all(answers)).map((answer) => answer?.status);
  expect(statuses.filter((status) => status === 200)).toHaveLength(LIMITS.metricsAnswersMax - refusedCount);
  expect(readCount).toBe(1);
  for (const socket of [other, ...sockets]) socket.destroy();
  await crowded.close();
});

test('on a host with a bucket label these are keys', async () => {
  const socket = await openSocket(world);
  socket.write('GET /health/live HTTP/1.1\r\nHost: bucket.s3.test\r\n\r\n');
  expect((await socket.answer())?.status).toBe(403);
  socket.destroy();
});
