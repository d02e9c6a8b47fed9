// What handlers may give back or throw, as it arrives at a client: through a whole gateway with one made-up operation.
import { Readable } from 'node:stream';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { type GatewayWorld, openGatewayWorld } from '../../../tests/support/objects/gateway-world.ts';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import {
  headOf,
  openSocket,
  type RawSocket,
  type SocketAnswer,
} from '../../../tests/support/servers/raw-socket.ts';
import { XML_DECLARATION } from '../../base/xml/write-xml.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import { defineOperation, type OperationMatch, type OperationResult } from './operation.ts';

let answer: () => Promise<OperationResult>;
const row = (name: string, method: OperationMatch['method'], auth?: 'none') =>
  defineOperation({
    name,
    match: { method, on: 'service' },
    logName: 'REST.GET.SERVICE',
    body: 'none',
    ...(auth && { auth }),
    needsBucket: false,
    errors: [],
    parse: () => undefined,
    access: () => [],
    run: () => answer(),
  });
let neededCount = 0;
/** Takes as much memory as one may. */
const greedy = {
  ...row('ListIt', 'DELETE'),
  memoryBytes() {
    neededCount++;
    return 2 ** 32;
  },
};
const clock = createManualClock(Date.now());
const world: GatewayWorld = await openGatewayWorld({
  deps: {
    operations: [row('GetIt', 'GET', 'none'), row('HeadIt', 'HEAD', 'none'), row('SignIt', 'PUT'), greedy],
    clock,
  },
});
const root = { endpoint: world.endpoint, ...world.root, nowMs: () => clock.wallMs() };
afterAll(() => world.close());
beforeEach(() => {
  answer = async () => ({ status: 200 });
});

async function ask(line: string, headers = ''): Promise<SocketAnswer & { isOpen: boolean }> {
  const socket = await openSocket(world);
  socket.write(`${line} HTTP/1.1\r\nHost: h\r\n${headers}\r\n`);
  const got = await socket.answer({ isHead: line.startsWith('HEAD') });
  socket.write(`${line} HTTP/1.1\r\nHost: h\r\n\r\n`);
  const isOpen =
    got !== undefined && (await socket.answer({ isHead: line.startsWith('HEAD') })) !== undefined;
  socket.destroy();
  return { ...(got ?? { status: 0, headers: new Map(), body: '' }), isOpen };
}

test('no body: a length of 0, the ids, the name of the server, and all defined headers', async () => {
  answer = async () => ({ status: 200, headers: { ETag: '"x"', 'x-amz-version-id': undefined, 'x-n': 7 } });
  const { headers, status, isOpen } = await ask('GET /');
  expect([status, isOpen]).toEqual([200, true]);
  expect(Object.fromEntries(headers)).toMatchObject({
    'content-length': '0',
    server: 'Holdfast',
    etag: '"x"',
    'x-n': '7',
    date: expect.stringMatching(/GMT$/),
    'x-amz-request-id': expect.stringMatching(/^[0-9A-F]{16}$/),
    'x-amz-id-2': expect.stringMatching(/^[\w+/=]{40,}$/),
  });
  expect(headers.has('x-amz-version-id')).toBe(false);
  expect(headers.has('access-control-allow-origin')).toBe(false);
});

test.each([204, 304])('%i has no body and no length', async (status) => {
  answer = async () => ({ status });
  const got = await ask('GET /');
  expect([got.status, got.headers.has('content-length'), got.isOpen]).toEqual([status, false, true]);
});

test('HEAD: the lengths of the GET answer; errors without a body', async () => {
  answer = async () => ({ status: 200, headers: { 'Content-Length': 12 } });
  expect((await ask('HEAD /')).headers.get('content-length')).toBe('12');
  answer = async () => {
    throw new AppError('NoSuchKey');
  };
  const got = await ask('HEAD /');
  expect([got.status, got.headers.get('content-type'), got.isOpen]).toEqual([404, 'application/xml', true]);
});

test('errors: the body of the catalogue with its fields and headers, and CORS', async () => {
  answer = async () => {
    throw new AppError('NoSuchKey', { fields: { Key: 'a<b' }, headers: { 'x-amz-delete-marker': 'true' } });
  };
  const got = await ask('GET /?x=1', 'Origin: o\r\n');
  const id = got.headers.get('x-amz-request-id');
  expect(got.body).toBe(
    `${XML_DECLARATION}<Error><Code>NoSuchKey</Code><Message>The specified key does not exist.</Message><Key>a&lt;b</Key><Resource>/</Resource><RequestId>${id}</RequestId><HostId>${got.headers.get('x-amz-id-2')}</HostId></Error>`,
  );
  expect([got.headers.get('x-amz-delete-marker'), got.headers.get('access-control-allow-origin')]).toEqual([
    'true',
    '*',
  ]);
});

test('a fault of the server is 500, reveals nothing, and is logged with its cause', async () => {
  const fault = new TypeError('the secret is tulips');
  answer = async () => {
    throw fault;
  };
  const got = await ask('GET /');
  expect([got.status, got.body.includes('tulips'), got.isOpen]).toEqual([500, false, true]);
  expect(got.body).toContain('<Code>InternalError</Code>');
  expect(world.faults().at(-1)).toMatchObject({ operation: 'GetIt', err: fault });
});

test('a stream of the promised size, of size 0, and of a wrong size', async () => {
  const stream =
    (sizeBytes: number, ...pieces: string[]) =>
    async (): Promise<OperationResult> => ({
      status: 200,
      body: { kind: 'stream', stream: Readable.from(pieces.map((piece) => Buffer.from(piece))), sizeBytes },
    });
  answer = stream(6, 'abc', 'def');
  expect(await ask('GET /')).toMatchObject({ body: 'abcdef', isOpen: true });
  answer = stream(0);
  expect(await ask('GET /')).toMatchObject({ status: 200, body: '', isOpen: true });
  for (const lie of [stream(7, 'abc', 'def'), stream(5, 'abc', 'def')]) {
    answer = lie;
    expect((await ask('GET /')).isOpen).toBe(false);
  }
});

test('a stream that fails while the rest of its request is waited for: its error is the answer, and the process lives', async () => {
  const stream = new Readable({ read() {} });
  answer = async () => ({ status: 200, body: { kind: 'stream', stream, sizeBytes: 3 } });
  const socket = await openSocket(world);
  socket.write(headOf(root, { method: 'PUT', path: '/', headers: { 'content-length': '9' } }));
  await expect.poll(() => stream.listenerCount('error')).toBeGreaterThan(0);
  stream.destroy(new AppError('SlowDown'));
  expect((await socket.answer())?.status).toBe(503);
  socket.destroy();
});

/** A signed request with the head of a body that does not come. */
async function openHalf(): Promise<RawSocket> {
  const socket = await openSocket(world);
  socket.write(headOf(root, { method: 'PUT', path: '/', headers: { 'content-length': '9' } }));
  return socket;
}

test('answers that wait for the rest of their requests count as unsent: their account is refused further ones', async () => {
  let madeCount = 0;
  answer = async () => {
    madeCount++;
    return { status: 200, body: { kind: 'xml', text: ' '.repeat(LIMITS.unsentBytesMax / 10) } };
  };
  const sockets: RawSocket[] = [];
  for (let at = 1; at <= 8; at++) {
    sockets.push(await openHalf());
    await expect.poll(() => madeCount).toBe(at);
    clock.advance(100);
  }
  const refused = await openHalf();
  expect((await refused.answer())?.status).toBe(503);
  for (const { destroy } of [...sockets, refused]) destroy();
  await expect.poll(() => world.gateway.oldestRequestMs()).toBeUndefined();
});

test('what has waited for memory is refused where answers have been left meanwhile', async () => {
  clock.advance(1000);
  let madeCount = 0;
  const held: RawSocket[] = [];
  const hold = async () => {
    held.push(await openHalf());
    await expect.poll(() => madeCount).toBe(held.length);
    clock.advance(100);
  };
  // Memory for six of them at a time: the others wait.
  const going = Promise.withResolvers<void>();
  answer = () => going.promise.then(() => ({ status: 200 }));
  const lists: RawSocket[] = [];
  for (let count = 1; count <= 10; count++) {
    const socket = await openSocket(world);
    socket.write(headOf(root, { method: 'DELETE', path: '/' }));
    lists.push(socket);
    await expect.poll(() => neededCount).toBe(count);
  }
  answer = async () => {
    madeCount++;
    return { status: 200, body: { kind: 'xml', text: ' '.repeat(LIMITS.unsentBytesMax / 10) } };
  };
  for (let at = 0; at < 8; at++) await hold();
  going.resolve();
  expect((await lists.at(0)?.answer())?.status).toBe(200);
  expect((await lists.at(-1)?.answer())?.status).toBe(503);
  for (const { destroy } of [...held, ...lists]) destroy();
});

test('a client that does not read its answer is cut off also where the rest of its request has not come', async () => {
  answer = async () => ({ status: 200, body: { kind: 'xml', text: ' '.repeat(32 * 1024 * 1024) } });
  const socket = await openHalf();
  socket.socket.pause();
  await expect
    .poll(
      () => {
        clock.advance(1000);
        return world.gateway.oldestRequestMs();
      },
      { timeout: 20_000, interval: 10 },
    )
    .toBeUndefined();
  socket.destroy();
});

test('a stream whose answer cannot be begun is destroyed', async () => {
  const stream = new Readable({ read() {} });
  const headers = { 'x-n': 'a\nb' };
  answer = async () => ({ status: 200, headers, body: { kind: 'stream', stream, sizeBytes: 3 } });
  expect((await ask('GET /')).status).toBe(500);
  expect(stream.destroyed).toBe(true);
});

test('a slow answer: its head at once, white space during the work, then the document', async () => {
  let finish: (text: string) => void = () => {};
  answer = async () => ({
    status: 200,
    body: { kind: 'slow-xml', text: new Promise((resolve) => (finish = resolve)) },
  });
  const socket = await openSocket(world);
  socket.write('GET / HTTP/1.1\r\nHost: h\r\n\r\n');
  let received = '';
  socket.socket.on('data', (bytes) => {
    received += bytes.toString();
  });
  await expect.poll(() => received).toContain(XML_DECLARATION);
  for (let wait = 0; wait < 3; wait++) {
    const before = received.length;
    clock.advance(5000);
    await expect.poll(() => received.length).toBeGreaterThan(before);
  }
  finish(`${XML_DECLARATION}<Done/>`);
  const { status, body } = (await socket.answer()) ?? {};
  expect(status).toBe(200);
  expect(body).toMatch(/^<\?xml version="1.0" encoding="UTF-8"\?>\n {4}<Done\/>$/);
  socket.destroy();
});

test('a slow answer that fails ends with the document of its error, under 200', async () => {
  answer = async () => ({
    status: 200,
    body: { kind: 'slow-xml', text: Promise.reject(new AppError('InvalidPart')) },
  });
  const got = await ask('GET /');
  expect([got.status, got.isOpen]).toEqual([200, true]);
  expect(got.body.slice(XML_DECLARATION.length).trim()).toMatch(
    /^<Error><Code>InvalidPart<\/Code>.*<\/Error>$/,
  );
  expect(world.requests().at(-1)).toMatchObject({ status: 200, errorCode: 'InvalidPart' });
});

test('a client that disconnects: the signal aborts, the stream is destroyed, no fault is logged', async () => {
  const faultCount = world.faults().length;
  const endless = new Readable({
    read() {
      this.push(Buffer.alloc(64 * 1024));
    },
  });
  answer = async () => ({ status: 200, body: { kind: 'stream', stream: endless, sizeBytes: 2 ** 40 } });
  const socket = await openSocket(world);
  socket.write('GET / HTTP/1.1\r\nHost: h\r\n\r\n');
  await expect.poll(() => socket.socket.bytesRead).toBeGreaterThan(1000);
  socket.destroy();
  await expect.poll(() => endless.destroyed).toBe(true);
  await expect.poll(() => world.requests().at(-1)).toMatchObject({ isAborted: true });
  expect(world.faults()).toHaveLength(faultCount);
});

test('a client that does not read its answer is cut off after a while', async () => {
  const endless = new Readable({
    read() {
      this.push(Buffer.alloc(64 * 1024));
    },
  });
  answer = async () => ({ status: 200, body: { kind: 'stream', stream: endless, sizeBytes: 2 ** 40 } });
  const socket = await openSocket(world);
  socket.socket.pause();
  socket.write('GET / HTTP/1.1\r\nHost: h\r\n\r\n');
  await expect.poll(() => endless.isPaused()).toBe(true);
  for (let second = 0; second < 62; second++) {
    clock.advance(1000);
    await new Promise(setImmediate);
  }
  await expect.poll(() => endless.destroyed).toBe(true);
  socket.destroy();
});
