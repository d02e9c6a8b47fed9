// What clients and networks do to connections: bodies that stop, end or never come, heads that trickle, requests in one
// packet, and 100-continue. Nothing of a broken upload is stored, nobody else notices, and never a 500.
// Not here: what is wrong inside a request that arrives whole (tests/api).
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { answerOf, openRequest, send } from '../support/servers/raw-s3.ts';
import { headOf, openSocket, type RawSocket } from '../support/servers/raw-socket.ts';
import { startServer, type TestServer } from '../support/servers/start-server.ts';

const KiB = 1024;
const MiB = 1024 * KiB;
let server: TestServer;

beforeAll(async () => {
  server = await startServer({
    settings: { 'requests.headerTimeout': '1s', 'requests.idleTimeout': '1s', 'memory.bodyBuffer': '16MiB' },
  });
  await send(server, { method: 'PUT', path: '/conn' });
  await send(server, { method: 'PUT', path: '/conn/there', body: Buffer.from('there') });
});
afterAll(async () => {
  const failed = server.logs().filter((line) => Number(line.status) === 500);
  await server.stop();
  expect(failed, 'requests answered with 500').toEqual([]);
});

async function expectAbsent(path: string): Promise<void> {
  expect((await send(server, { method: 'HEAD', path })).status).toBe(404);
}

async function expectServing(): Promise<void> {
  const body = randomBytes(2 * MiB);
  expect((await send(server, { method: 'PUT', path: '/conn/serving', body })).status).toBe(200);
  expect((await send(server, { method: 'GET', path: '/conn/serving' })).body.equals(body)).toBe(true);
}

const putHead = (path: string, headers: Record<string, string>) =>
  headOf(server, { method: 'PUT', path, headers });
const get = (path = '/conn/there') => headOf(server, { method: 'GET', path });

/** A head whose signature is wrong, so that the request is refused before its body is read. */
function refusedHead(path: string, headers: Record<string, string>): string {
  return headOf({ ...server, secretKey: 'wrong' }, { method: 'PUT', path, headers });
}

test.each([100, 100 * KiB, 3 * MiB])(
  'a body of %i bytes that ends half-way is not stored',
  async (sizeBytes) => {
    const connection = await openSocket(server);
    connection.write(putHead('/conn/half', { 'content-length': String(sizeBytes) }));
    connection.write(randomBytes(sizeBytes / 2));
    connection.end();
    const answer = await connection.answer();
    // The client may be gone for good, or only its half: told if it can be, and closed.
    if (answer !== undefined) {
      expect(answer.status).toBe(400);
      expect(answer.body).toMatch(/<Code>(IncompleteBody|RequestTimeout)<\/Code>/);
    }
    await connection.closed;
    connection.destroy();
    await expectAbsent('/conn/half');
  },
);

test('2,100 strangers whose bodies never come do not stop another client, nor do those that leave', async () => {
  const lines = ['GET /health/live', 'OPTIONS /conn/there', 'POST /holdfast-admin/v1/accounts'];
  const crowd: RawSocket[] = [];
  const begin = async (_: unknown, index: number) => {
    const connection = await openSocket(server, { localAddress: '127.0.0.2' });
    const line = lines[index % lines.length];
    connection.write(`${line} HTTP/1.1\r\nHost: x\r\nOrigin: http://x\r\nContent-Length: 1000\r\n\r\n`);
    return connection;
  };
  while (crowd.length < 2100) crowd.push(...(await Promise.all(Array.from({ length: 100 }, begin))));
  const statuses: number[] = [];
  for (let count = 0; count < 20; count++) {
    const body = randomBytes(4 * KiB);
    statuses.push((await send(server, { method: 'PUT', path: `/conn/beside-${count}`, body })).status);
    // Half of them leave meanwhile.
    for (let left = 0; left < 50; left++) crowd.pop()?.socket.resetAndDestroy();
  }
  expect(statuses).toEqual(new Array(20).fill(200));
  const answers = await Promise.all(crowd.map((connection) => connection.answer()));
  expect(new Set(answers.map((answer) => answer?.status))).toEqual(new Set([200, 403]));
  expect((await fetch(`${server.endpoint}/health/ready`)).status).toBe(200);
  for (const connection of crowd) connection.destroy();
});

test('many clients that vanish in the middle of their bodies leave nothing behind', async () => {
  for (let round = 0; round < 5; round++) {
    const connections = await Promise.all(Array.from({ length: 20 }, () => openSocket(server)));
    for (const connection of connections) {
      connection.write(putHead('/conn/vanished', { 'content-length': String(4 * MiB) }));
      connection.write(randomBytes(1.5 * MiB));
    }
    for (const connection of connections) {
      connection.socket.resetAndDestroy();
    }
  }
  // More than their buffers would hold together: what they had reserved has been given back.
  await expectServing();
  await expectAbsent('/conn/vanished');
});

test('readers that vanish in the middle of an answer disturb nobody', async () => {
  await send(server, { method: 'PUT', path: '/conn/large', body: Buffer.alloc(24 * MiB) });
  for (let round = 0; round < 20; round++) {
    const request = openRequest(server, { method: 'GET', path: '/conn/large' });
    request.on('error', () => {});
    request.end();
    const answer = await answerOf(request);
    await new Promise((resolve) => answer.once('data', resolve));
    request.destroy();
  }
  await expectServing();
});

test('a stalled body is given up', async () => {
  const connection = await openSocket(server);
  connection.write(putHead('/conn/still', { 'content-length': '100000' }));
  connection.write(randomBytes(1000));
  const answer = await connection.answer();
  if (answer !== undefined) {
    expect(answer.status).toBe(400);
    expect(answer.body).toContain('<Code>RequestTimeout</Code>');
  }
  await connection.closed;
  await expectAbsent('/conn/still');
});

test('trickling heads are given up, and meanwhile others are served', async () => {
  const trickling = await Promise.all(Array.from({ length: 50 }, () => openSocket(server)));
  for (const connection of trickling) connection.write('GET /conn/there HTTP/1.1\r\nHost: x\r\nX-Slow: ');
  await expectServing();
  await Promise.all(trickling.map((connection) => connection.closed));
});

test('requests in one packet are answered in their order', async () => {
  const connection = await openSocket(server);
  const put = putHead('/conn/piped', { 'content-length': '5' });
  connection.write(`${get()}${put}piped${get('/conn/piped')}${get('/conn/missing')}${get()}`);
  const answers = [];
  for (let index = 0; index < 5; index++) answers.push(await connection.answer());
  expect(answers.map((answer) => answer?.status)).toEqual([200, 200, 200, 404, 200]);
  expect(answers.map((answer) => answer?.body.slice(0, 5))).toEqual(['there', '', 'piped', '<?xml', 'there']);
  connection.destroy();
});

/** Sends a GET on a connection and expects its answer: the connection can be used. */
async function expectUsable(connection: RawSocket): Promise<void> {
  connection.write(get());
  expect((await connection.answer())?.body).toBe('there');
  connection.destroy();
}

test('100-continue: requested and sent, then the answer', async () => {
  const connection = await openSocket(server);
  connection.write(putHead('/conn/continued', { 'content-length': '4', expect: '100-continue' }));
  expect((await connection.answer())?.status).toBe(100);
  connection.write('body');
  expect((await connection.answer())?.status).toBe(200);
  await expectUsable(connection);
});

test.each([
  { what: 'a wrong signature', status: 403, head: () => refusedHead('/conn/no', expecting) },
  { what: 'a bucket that is not there', status: 404, head: () => putHead('/conn-not-there/no', expecting) },
  {
    what: 'a header that is not supported',
    status: 501,
    head: () => putHead('/conn/no', { ...expecting, 'x-amz-object-lock-event-hold': 'ON' }),
  },
])('100-continue: $what is answered at once, and the connection ends', async ({ status, head }) => {
  const connection = await openSocket(server);
  connection.write(head());
  const answer = await connection.answer();
  expect([answer?.status, answer?.headers.get('connection')]).toEqual([status, 'close']);
  // As clients do that are told so.
  connection.end();
  await connection.closed;
  await expectAbsent('/conn/no');
});

const expecting = { 'content-length': '100000', expect: '100-continue' };

test('an Expect that is not 100-continue is ignored', async () => {
  const connection = await openSocket(server);
  connection.write(`${putHead('/conn/expect', { 'content-length': '4', expect: 'something-else' })}body`);
  expect((await connection.answer())?.status).toBe(200);
  await expectUsable(connection);
});

test.each([10 * KiB, 900 * KiB, 5 * MiB])(
  'a refused upload of %i bytes gets its answer, and then the end',
  async (sizeBytes) => {
    const connection = await openSocket(server);
    connection.write(refusedHead('/conn/refused', { 'content-length': String(sizeBytes) }));
    connection.write(randomBytes(sizeBytes));
    const answer = await connection.answer();
    // A client that goes on sending megabytes after the connection has closed may miss the answer.
    if (sizeBytes <= MiB || answer !== undefined) {
      expect(answer?.status).toBe(403);
      expect(answer?.headers.get('connection')).toBe('close');
    }
    await connection.closed;
    connection.destroy();
  },
);

test.each([
  ['nonsense', 'nonsense\r\n\r\n'],
  ['no host', 'GET / HTTP/1.1\r\nconnection: close\r\n\r\n'],
  ['two lengths', 'PUT /conn/x HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nx'],
  [
    'length and chunks',
    'PUT /conn/x HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
  ],
  ['a head of 100 KiB', `GET /conn/there HTTP/1.1\r\nhost: x\r\nx-big: ${'x'.repeat(100 * KiB)}\r\n\r\n`],
  ['a NUL in a header', 'GET /conn/there HTTP/1.1\r\nhost: x\r\nx-odd: a\0b\r\n\r\n'],
])('%s is a bad request with an XML error, and the end', async (_what, bytes) => {
  const connection = await openSocket(server);
  connection.write(bytes);
  const answer = await connection.answer();
  expect(answer?.status).toBeGreaterThanOrEqual(400);
  expect(answer?.status).toBeLessThan(500);
  expect(answer?.body).toContain('<Error>');
  await connection.closed;
  connection.destroy();
  await expectServing();
});

test('a connection continues after errors', async () => {
  const connection = await openSocket(server);
  for (const path of ['/conn/missing', '/conn-not-there/x', '/conn/missing']) {
    connection.write(get(path));
    expect((await connection.answer())?.status).toBe(404);
  }
  await expectUsable(connection);
});
