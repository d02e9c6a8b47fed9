// The services beside S3, over real sockets; what the operator API does is tested by tests/api.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type GatewayWorld, openGatewayWorld } from '../../../tests/support/objects/gateway-world.ts';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import { send } from '../../../tests/support/servers/raw-s3.ts';
import { openSocket, type RawSocket, type SocketAnswer } from '../../../tests/support/servers/raw-socket.ts';
import { signRequest } from '../../cli/sign-request.ts';
import { LIMITS } from '../../types/limits.ts';
import { OPERATOR_BODY_BYTES_MAX } from '../operator-api/operator-api.ts';

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

test('metrics are read once a second, and waiting scrapes are bounded by address', async () => {
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

test('on a host with a bucket label these paths are keys', async () => {
  const socket = await openSocket(world);
  socket.write('GET /health/live HTTP/1.1\r\nHost: bucket.s3.test\r\n\r\n');
  expect((await socket.answer())?.status).toBe(403);
  socket.destroy();
});

describe('the operator API with anonymous requests', () => {
  const SIZE = OPERATOR_BODY_BYTES_MAX;

  /** A head that names the access key of an operator, and does not say the digest of its body. */
  function headOfKey(accessKey: string, sizeBytes: number, nowMs = Date.now()): string {
    const time = new Date(nowMs).toISOString().replace(/[-:]|\.\d+/g, '');
    const credential = `${accessKey}/${time.slice(0, 8)}/us-east-1/holdfast/aws4_request`;
    const authorization = `AWS4-HMAC-SHA256 Credential=${credential}, SignedHeaders=host;x-amz-date, Signature=${'0'.repeat(64)}`;
    return `POST /holdfast-admin/v1/accounts HTTP/1.1\r\nHost: x\r\nx-amz-date: ${time}\r\nAuthorization: ${authorization}\r\nContent-Length: ${sizeBytes}\r\n\r\n`;
  }

  async function ask(head: string, localAddress = '127.0.0.2'): Promise<RawSocket> {
    const socket = await openSocket(world, { localAddress });
    socket.write(`${head}x`);
    return socket;
  }

  test.each<[string, () => Promise<string>, string]>([
    [
      'without credentials',
      async () => `POST /holdfast-admin/v1/accounts HTTP/1.1\r\nHost: x\r\nContent-Length: ${SIZE}\r\n\r\n`,
      'AccessDenied',
    ],
    ['with a key that nobody has', async () => headOfKey('nobody', SIZE), 'InvalidAccessKeyId'],
    [
      'with the key of another account',
      async () => headOfKey((await world.makeAccount('other')).accessKey, SIZE),
      'AccessDenied',
    ],
    ['with an old date', async () => headOfKey(world.root.accessKey, SIZE, 0), 'RequestTimeTooSkewed'],
    [
      'with a body too large',
      async () => headOfKey(world.root.accessKey, SIZE + 1),
      'MaxMessageLengthExceeded',
    ],
  ])('%s: refused by the head, before any body', async (_name, head, code) => {
    const socket = await ask(await head());
    const answer = await socket.answer();
    expect(answer?.headers.get('connection')).toBe('close');
    expect(JSON.parse(answer?.body ?? '').error.code).toBe(code);
    socket.destroy();
  });

  test('sixteen sockets with one byte of body each delay no operator', async () => {
    const slow = await Promise.all(
      Array.from({ length: 16 }, () => ask(headOfKey(world.root.accessKey, SIZE))),
    );
    // Places are left for other addresses, and the next ones are refused at once.
    const early: unknown[] = [];
    for (const socket of slow) void socket.answer().then((answer) => early.push(answer?.status));
    await expect.poll(() => early).toEqual([503, 503, 503, 503]);
    // An operator elsewhere who sends no digest finds a place.
    const undigested = await ask(headOfKey(world.root.accessKey, 1), '127.0.0.3');
    expect((await undigested.answer())?.status).toBe(403);
    // One who sends it needs none.
    const { method, path, body } = { method: 'POST', path: '/holdfast-admin/v1/accounts', body: '{}' };
    const { host } = new URL(world.endpoint);
    const headers = signRequest({ method, path, host, body, credentials: world.root, nowMs: Date.now() });
    const answer = await fetch(world.endpoint + path, { method, headers, body });
    expect(answer.status).toBe(200);
    for (const socket of [undigested, ...slow]) socket.destroy();
    // Clients that leave give their places back.
    await expect
      .poll(async () => {
        const next = await ask(headOfKey(world.root.accessKey, 1));
        const status = (await next.answer())?.status;
        next.destroy();
        return status;
      })
      .toBe(403);
  });

  test('a trickling body is waited for a few seconds in total, and then gives up its place', async () => {
    const clock = createManualClock(Date.now());
    const patient = await openGatewayWorld({ deps: { clock } });
    const socket = await openSocket(patient);
    socket.write(headOfKey(patient.root.accessKey, SIZE));
    const answered = socket.answer();
    const begun = () => patient.gateway.oldestRequestMs();
    while (begun() === undefined) await new Promise(setImmediate);
    let answer: SocketAnswer | undefined;
    void answered.then((one) => {
      answer = one;
    });
    for (let seconds = 0; answer === undefined && seconds < 60; seconds++) {
      socket.write('x');
      await new Promise((resolve) => setTimeout(resolve, 5));
      clock.advance(1000);
    }
    expect(JSON.parse((await answered)?.body ?? '').error.code).toBe('RequestTimeout');
    expect(clock.monotonicMs()).toBeLessThan(30_000);
    socket.destroy();
    await patient.close();
  });
});
