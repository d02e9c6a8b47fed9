// The gateway over real sockets: what becomes of connections. Operations are tested by tests/api.

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { generate } from 'selfsigned';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type GatewayWorld, openGatewayWorld } from '../../../tests/support/objects/gateway-world.ts';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import { watchTlsWrites } from '../../../tests/support/run/tls-writes.ts';
import { type Access, answerOf, openRequest, send } from '../../../tests/support/servers/raw-s3.ts';
import { headOf, openSocket, type RawSocket } from '../../../tests/support/servers/raw-socket.ts';
import { must } from '../../base/assert.ts';
import { nextTurn } from '../../base/async/next-turn.ts';
import { LIMITS } from '../../types/limits.ts';
import { homeShardOf } from '../../types/names.ts';

const MiB = 1024 * 1024;
let world: GatewayWorld;
let root: Access;
beforeAll(async () => {
  world = await openGatewayWorld();
  root = { endpoint: world.endpoint, ...world.root };
  await send(root, { method: 'PUT', path: '/bucket' });
});
afterAll(async () => {
  await world.close();
  expect(world.faults()).toEqual([]);
});

const stranger = (): Access => ({ ...root, secretKey: 'wrong' });
const codeIn = (text: string | undefined) => /<Code>(\w+)<\/Code>/.exec(text ?? '')?.[1];
const exists = async (key: string) =>
  (await send(root, { method: 'HEAD', path: `/bucket/${key}` })).status === 200;

/** A PUT whose body the test sends itself. */
const putHead = (key: string, headers: Record<string, string>, as: Access = root) =>
  headOf(as, { method: 'PUT', path: `/bucket/${key}`, headers });

async function roundTrip(socket: RawSocket): Promise<number | undefined> {
  socket.write(headOf(root, { method: 'GET', path: '/bucket?location' }));
  return (await socket.answer())?.status;
}

describe('Expect: 100-continue', () => {
  const expectation = { expect: '100-continue', 'content-length': '5' };

  test('100 is sent when the body is wanted, then the answer', async () => {
    const socket = await openSocket(root);
    socket.write(putHead('continued', expectation));
    expect((await socket.answer())?.status).toBe(100);
    socket.write('hello');
    expect((await socket.answer())?.status).toBe(200);
    expect(await roundTrip(socket)).toBe(200);
    socket.destroy();
  });

  const refusals: [number, string, () => Access, Record<string, string>][] = [
    [403, 'bucket', stranger, {}],
    [404, 'no-such-bucket', () => root, {}],
    [404, 'no-such-bucket', () => root, { 'transfer-encoding': 'chunked' }],
    [404, 'no-such-bucket', () => root, { 'x-forwarded-proto': 'https' }],
    [404, 'no-such-bucket', () => root, { 'x-real-ip': '192.0.2.1' }],
    [404, 'no-such-bucket', () => root, { via: '1.1 proxy' }],
  ];
  test.each(refusals)(
    's3-behaviour 16: a refused request gets %i instead, and its body is not executed when it comes (%s)',
    async (status, bucket, as, fields) => {
      const canary = '/bucket/canary';
      await send(root, { method: 'PUT', path: canary, body: Buffer.from('here') });
      const smuggled = headOf(root, { method: 'DELETE', path: canary });
      const isChunked = fields['transfer-encoding'] !== undefined;
      const length = isChunked ? {} : { 'content-length': String(smuggled.length) };
      const headers = { expect: '100-continue', ...length, ...fields };
      const body = isChunked ? `${smuggled.length.toString(16)}\r\n${smuggled}\r\n0\r\n\r\n` : smuggled;
      // With the head, and when the answer is there.
      for (const isLate of [false, true]) {
        const socket = await openSocket(root);
        const head = headOf(as(), { method: 'PUT', path: `/${bucket}/refused`, headers });
        socket.write(isLate ? head : head + body);
        const answer = await socket.answer();
        expect([answer?.status, answer?.headers.get('connection')]).toEqual([status, 'close']);
        if (isLate) socket.write(body);
        // Behind the body, too, nothing counts any more.
        socket.write(smuggled);
        expect(await socket.answer()).toBeUndefined();
        await socket.closed;
        expect(await exists('canary')).toBe(true);
      }
    },
  );

  test('a refused client that sends its whole body before it reads gets the answer', async () => {
    const socket = await openSocket(root);
    const sizeBytes = 10 * MiB;
    const headers = { expect: '100-continue', 'content-length': String(sizeBytes) };
    socket.write(headOf(root, { method: 'PUT', path: '/no-such-bucket/part', headers }));
    socket.write(Buffer.alloc(sizeBytes));
    if (socket.socket.writableNeedDrain) await once(socket.socket, 'drain');
    expect((await socket.answer())?.status).toBe(404);
    await socket.closed;
    expect(socket.socket.errored).toBe(null);
  });

  test('a refused client that neither sends nor closes does not keep the connection', async () => {
    const clock = createManualClock(Date.now());
    const waiting = await openGatewayWorld({ deps: { clock } });
    const access = { endpoint: waiting.endpoint, ...waiting.root, nowMs: () => clock.wallMs() };
    const socket = await openSocket(access);
    socket.write(headOf(access, { method: 'PUT', path: '/no-such-bucket/key', headers: expectation }));
    expect((await socket.answer())?.status).toBe(404);
    await new Promise(setImmediate);
    clock.advance(LIMITS.refusedBodyIdleMaxMs + 1);
    await socket.closed;
    await waiting.close();
  });

  test('a client that sends its body without 100 is refused like any other', async () => {
    const socket = await openSocket(root);
    socket.write(`${putHead('impatient', { ...expectation, 'content-length': '8' }, stranger())}12345678`);
    const answer = await socket.answer();
    expect([answer?.status, answer?.headers.get('connection')]).toEqual([403, 'close']);
    await socket.closed;
  });

  test('s3-behaviour 16: other expectations are ignored', async () => {
    const socket = await openSocket(root);
    socket.write(`${putHead('unexpected', { expect: '200-ok', 'content-length': '5' })}hello`);
    expect((await socket.answer())?.status).toBe(200);
    socket.destroy();
  });
});

describe('a refused upload', () => {
  test('is answered at once, some of its body is dropped, the connection closes', async () => {
    const socket = await openSocket(root);
    socket.write(putHead('refused', { 'content-length': String(64 * MiB) }, stranger()));
    const answer = await socket.answer();
    expect([answer?.status, codeIn(answer?.body), answer?.headers.get('connection')]).toEqual([
      403,
      'SignatureDoesNotMatch',
      'close',
    ]);
    for (let sentBytes = 0; sentBytes <= LIMITS.refusedBodyDrainBytesMax; sentBytes += MiB)
      socket.write(Buffer.alloc(MiB));
    await socket.closed;
    expect(await exists('refused')).toBe(false);
  });

  test('with a short body is read to its end before the connection closes', async () => {
    const socket = await openSocket(root);
    socket.write(putHead('refused', { 'content-length': '1000' }, stranger()) + 'x'.repeat(1000));
    expect((await socket.answer())?.headers.get('connection')).toBe('close');
    await socket.closed;
  });

  test('requests behind an answer that ends the connection are not executed', async () => {
    const socket = await openSocket(root);
    const headers = { 'transfer-encoding': 'chunked' };
    const behind = headOf(root, {
      method: 'PUT',
      path: '/bucket/behind',
      headers: { 'content-length': '0' },
    });
    const refused = headOf(stranger(), { method: 'GET', path: '/bucket/none', headers });
    socket.write(`${refused}5\r\nhello\r\n0\r\nX-Trailer: 1\r\n\r\n${behind}`);
    expect((await socket.answer())?.headers.get('connection')).toBe('close');
    expect(await socket.answer()).toBeUndefined();
    await socket.closed;
    expect(await exists('behind')).toBe(false);
  });

  test('chunks in HTTP/1.0 end the connection behind the answer', async () => {
    const socket = await openSocket(root);
    const headers = { 'transfer-encoding': 'chunked', connection: 'keep-alive' };
    const head = headOf(root, { method: 'GET', path: '/bucket?location', headers });
    socket.write(`${head.replace('HTTP/1.1', 'HTTP/1.0')}5\r\nhello\r\n0\r\n\r\n${head}`);
    const answer = await socket.answer();
    expect([answer?.status, answer?.headers.get('connection')]).toEqual([200, 'close']);
    await socket.closed;
  });

  test('an unused body is dropped, and the connection continues', async () => {
    const socket = await openSocket(root);
    socket.write(
      `${headOf(root, { method: 'GET', path: '/bucket?location', headers: { 'content-length': '4' } })}junk`,
    );
    expect((await socket.answer())?.status).toBe(200);
    expect(await roundTrip(socket)).toBe(200);
    socket.destroy();
  });
});

describe('incomplete bodies', () => {
  test('the client closes its half: IncompleteBody, nothing is stored', async () => {
    const socket = await openSocket(root);
    socket.write(`${putHead('half', { 'content-length': '100' })}only this`);
    socket.end();
    const answer = await socket.answer();
    expect([answer?.status, codeIn(answer?.body)]).toEqual([400, 'IncompleteBody']);
    await socket.closed;
    expect(await exists('half')).toBe(false);
  });

  test('the same behind a request to upgrade', async () => {
    const socket = await openSocket(root);
    const headers = { connection: 'upgrade', upgrade: 'h2c', 'content-length': '100' };
    socket.write(`${putHead('half', headers)}only this`);
    socket.end();
    const answer = await socket.answer();
    expect([answer?.status, codeIn(answer?.body)]).toEqual([400, 'IncompleteBody']);
    await socket.closed;
    expect(await exists('half')).toBe(false);
  });

  test('the client vanishes: nothing is stored, and the log says so', async () => {
    const socket = await openSocket(root);
    socket.write(`${putHead('vanished', { 'content-length': '100' })}only this`);
    await new Promise((resolve) => setTimeout(resolve, 50));
    socket.socket.resetAndDestroy();
    await expect
      .poll(() => world.requests().find(({ key }) => key === 'vanished'))
      .toMatchObject({ isAborted: true });
    expect(await exists('vanished')).toBe(false);
  });

  test.each<[string, Record<string, string>, string, number, string]>([
    ['no length', {}, '', 411, 'MissingContentLength'],
    ['another coding', { 'transfer-encoding': 'gzip, chunked' }, '0\r\n\r\n', 501, 'NotImplemented'],
    [
      'bad chunks of HTTP',
      {
        'transfer-encoding': 'chunked',
        'x-amz-decoded-content-length': '5',
        'x-amz-content-sha256': 'STREAMING-UNSIGNED-PAYLOAD-TRAILER',
      },
      'zz\r\n',
      400,
      'IncompleteBody',
    ],
    [
      'no decoded length',
      { 'content-length': '5', 'x-amz-content-sha256': 'STREAMING-UNSIGNED-PAYLOAD-TRAILER' },
      'hello',
      411,
      'MissingContentLength',
    ],
    ['two lengths', { 'content-length': '5', 'transfer-encoding': 'chunked' }, 'hello', 400, 'BadRequest'],
    ['a length that is none', { 'content-length': '5x' }, 'hello', 400, 'BadRequest'],
    ['a negative length', { 'content-length': '-5' }, 'hello', 400, 'BadRequest'],
  ])('%s', async (_name, headers, body, status, code) => {
    const socket = await openSocket(root);
    socket.write(putHead('odd', headers) + body);
    const answer = await socket.answer();
    expect([answer?.status, codeIn(answer?.body)]).toEqual([status, code]);
    socket.destroy();
    expect(await exists('odd')).toBe(false);
  });

  test('HTTP chunks may carry aws-chunked', async () => {
    const socket = await openSocket(root);
    const inner = '5\r\nhello\r\n0\r\nx-amz-checksum-crc32:NhCmhg==\r\n\r\n';
    const headers = {
      'transfer-encoding': 'chunked',
      'content-encoding': 'aws-chunked',
      'x-amz-decoded-content-length': '5',
      'x-amz-trailer': 'x-amz-checksum-crc32',
      'x-amz-content-sha256': 'STREAMING-UNSIGNED-PAYLOAD-TRAILER',
    };
    socket.write(`${putHead('double', headers)}${inner.length.toString(16)}\r\n${inner}\r\n0\r\n\r\n`);
    expect((await socket.answer())?.status).toBe(200);
    expect((await send(root, { method: 'GET', path: '/bucket/double' })).body.toString()).toBe('hello');
    socket.destroy();
  });
});

describe('bytes that are no HTTP request', () => {
  test.each([
    ['garbage', 'what is this\r\n\r\n', 400, 'BadRequest'],
    ['an unknown method', 'FETCH / HTTP/1.1\r\nHost: h\r\n\r\n', 400, 'BadRequest'],
    ['a header without a name', 'GET / HTTP/1.1\r\nHost: h\r\n: x\r\n\r\n', 400, 'BadRequest'],
    [
      'a control character in a header',
      'GET / HTTP/1.1\r\nHost: h\r\nAuthorization: \u0007\r\n\r\n',
      400,
      'BadRequest',
    ],
    [
      'headers without end',
      `GET / HTTP/1.1\r\nHost: h\r\nX: ${'x'.repeat(40_000)}\r\n\r\n`,
      400,
      'RequestHeaderSectionTooLarge',
    ],
    ['half a head', 'GET / HTTP/1.1\r\nHo', 400, 'IncompleteBody'],
    ['a bad path', 'GET /bucket/%zz HTTP/1.1\r\nHost: h\r\n\r\n', 400, 'InvalidURI'],
    ['a method of other protocols', 'PROPFIND /bucket HTTP/1.1\r\nHost: h\r\n\r\n', 405, 'MethodNotAllowed'],
    ['a tunnel', 'CONNECT elsewhere:443 HTTP/1.1\r\nHost: h\r\n\r\n', 405, 'MethodNotAllowed'],
    ['no host', 'GET /bucket HTTP/1.1\r\n\r\n', 400, 'BadRequest'],
    ['two hosts', 'GET /bucket HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n', 400, 'InvalidArgument'],
  ])('%s', async (_name, bytes, status, code) => {
    const socket = await openSocket(root);
    socket.write(Buffer.from(bytes, 'latin1'));
    if (code === 'IncompleteBody') socket.end();
    const answer = await socket.answer();
    expect([answer?.status, codeIn(answer?.body)]).toEqual([status, code]);
    expect(answer?.headers.get('content-type')).toBe('application/xml');
    const requestId = answer?.headers.get('x-amz-request-id');
    expect(requestId).toMatch(/^[0-9A-F]{16}$/);
    const lines = () => world.requests().filter((line) => line.requestId === requestId);
    await expect
      .poll(lines)
      .toEqual([expect.objectContaining({ status, errorCode: code, remoteAddress: '127.0.0.1' })]);
    socket.destroy();
  });

  test('garbage behind a request does not spoil its answer', async () => {
    const socket = await openSocket(root);
    socket.write(`${headOf(root, { method: 'GET', path: '/bucket?location' })}garbage\r\n\r\n`);
    expect((await socket.answer())?.status).toBe(200);
    await socket.closed;
  });

  test('a tunnel request behind a request does not take the place of its answer', async () => {
    const socket = await openSocket(root);
    const get = headOf(root, { method: 'GET', path: '/bucket?location' });
    socket.write(`${get}CONNECT elsewhere:443 HTTP/1.1\r\nHost: h\r\n\r\n${get}`);
    const answer = await socket.answer();
    expect([answer?.status, answer?.headers.get('connection')]).toEqual([200, 'close']);
    expect(await socket.answer()).toBeUndefined();
    await socket.closed;
  });

  test('a tunnel request whose client resets the connection does no harm', async () => {
    const get = headOf(root, { method: 'GET', path: '/bucket?location' });
    const tunnel = 'CONNECT elsewhere:443 HTTP/1.1\r\nHost: h\r\n\r\n';
    for (let count = 0; count < 40; count++) {
      const socket = await openSocket(root);
      socket.write(count % 2 === 0 ? tunnel : get + tunnel);
      if (count % 4 < 2) await new Promise(setImmediate);
      socket.socket.resetAndDestroy();
    }
    const socket = await openSocket(root);
    socket.write(get);
    expect((await socket.answer())?.status).toBe(200);
    socket.destroy();
  });

  test('an upgrade request is answered, and nothing behind it is executed: its beginning may be lost', async () => {
    const socket = await openSocket(root);
    const headers = { connection: 'upgrade', upgrade: 'websocket' };
    const upgrade = headOf(root, { method: 'GET', path: '/bucket?location', headers });
    const smuggled = headOf(root, {
      method: 'PUT',
      path: '/bucket/upgraded',
      headers: { 'content-length': '0' },
    });
    // Of the upload the head comes with the first packet, its body with the next.
    socket.write(upgrade + putHead('behind', { 'content-length': String(smuggled.length) }));
    const answer = await socket.answer();
    socket.write(smuggled);
    expect([answer?.status, answer?.headers.get('connection')]).toEqual([200, 'close']);
    expect(await socket.answer()).toBeUndefined();
    await socket.closed;
    expect([await exists('upgraded'), await exists('behind')]).toEqual([false, false]);
  });

  test('requests in a row are answered in order', async () => {
    const socket = await openSocket(root);
    const paths = ['/bucket?location', '/bucket/none', '/bucket?versioning', '/nowhere'];
    socket.write(paths.map((path) => headOf(root, { method: 'GET', path })).join(''));
    const statuses: (number | undefined)[] = [];
    for (const _ of paths) statuses.push((await socket.answer())?.status);
    expect(statuses).toEqual([200, 404, 200, 404]);
    socket.destroy();
  });
});

// The first one is parsed up to where it is cut, of the other one the rest is held.
test.each([100, 300])(
  'a head of %i lines, wherever it is cut, is one request, and what is behind it another',
  async (count) => {
    const lines = Object.fromEntries(Array.from({ length: count }, (_, at) => [`x-line-${at}`, 'value']));
    const head = headOf(root, { method: 'GET', path: '/bucket?location', headers: lines });
    const behind = headOf(root, { method: 'GET', path: '/bucket/none' });
    const { length } = head;
    const cuts = [...[1, 2, 3, 4, 5].map((left) => [length - left]), [length - 2, length - 1]];
    // The last bytes one by one, and the same behind a piece from the middle.
    const bytes = Array.from({ length: 8 }, (_, at) => length - 8 + at);
    const socket = await openSocket(root);
    socket.socket.setNoDelay();
    const middle = Math.floor(length / 2);
    for (const at of [...cuts, [middle, middle + 1, middle + 2], bytes, [middle, ...bytes], [length]]) {
      for (const [piece, from] of [0, ...at].entries()) {
        socket.write(head.slice(from, at[piece]));
        // The server is in this process: by then it has read the piece.
        for (let turn = 0; turn < 4; turn++) await nextTurn();
      }
      expect((await socket.answer())?.status).toBe(200);
      socket.write(behind);
      expect((await socket.answer())?.status).toBe(404);
    }
    socket.destroy();
  },
);

test('a body in front of a head of many lines that is cut is whole', async () => {
  const socket = await openSocket(root);
  const body = 'b'.repeat(20_000);
  const put = headOf(root, {
    method: 'PUT',
    path: '/bucket/in-front',
    headers: { 'content-length': '20000' },
  });
  const lines = Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`x-line-${at}`, 'value']));
  const head = headOf(root, { method: 'GET', path: '/bucket?location', headers: lines });
  socket.write(`${put}${body}${head.slice(0, -2)}`);
  expect((await socket.answer())?.status).toBe(200);
  socket.write('\r\n');
  expect((await socket.answer())?.status).toBe(200);
  socket.destroy();
  expect((await send(root, { method: 'GET', path: '/bucket/in-front' })).body.toString()).toBe(body);
});

test('a head of many lines that is too long is refused, however it comes', async () => {
  const line = (at: number) => `x-line-${at}: ${'v'.repeat(1000)}\r\n`;
  const many = (count: number) => Array.from({ length: count }, (_, at) => line(at)).join('');
  const socket = await openSocket(root);
  const short = Array.from({ length: 40 }, (_, at) => `x-${at}: v\r\n`).join('');
  for (const piece of [`GET / HTTP/1.1\r\nHost: h\r\n${short}`, many(26), many(10)]) {
    socket.write(piece);
    for (let turn = 0; turn < 4; turn++) await nextTurn();
  }
  expect((await socket.answer())?.status).toBe(400);
  await socket.closed;
});

test('virtual-host style works under each domain', async () => {
  await send(root, { method: 'PUT', path: '/bucket/virtual', body: Buffer.from('here') });
  for (const host of ['bucket.s3.test', 'BUCKET.eu.s3.test:9000']) {
    const socket = await openSocket(root);
    socket.write(headOf(root, { method: 'GET', path: '/virtual', headers: { host } }));
    expect((await socket.answer())?.body).toBe('here');
    socket.destroy();
  }
});

test('a stream that fails midway cuts the connection', async () => {
  const key = 'damaged';
  const body = Buffer.alloc(4 * MiB, 'x');
  expect((await send(root, { method: 'PUT', path: `/bucket/${key}`, body })).status).toBe(200);
  const stored = await world.chunks.list({ limit: 100 });
  const last = stored.filter(({ sizeBytes }) => sizeBytes > 1000).at(-1);
  const { id } = must(last, 'the chunk of the body');
  await world.chunks.drop([id], { shard: homeShardOf(id.blobId), incarnation: 1, epoch: 1 });
  await expect(send(root, { method: 'GET', path: `/bucket/${key}` })).rejects.toThrow();
  const line = world.requests().find((fields) => fields.operation === 'GetObject' && fields.key === key);
  expect(line).toMatchObject({ status: 200, errorCode: 'ServiceUnavailable' });
});

describe('slow clients', () => {
  test('a stalled body gets RequestTimeout; one that progresses does not', async () => {
    const clock = createManualClock(Date.now());
    const slow = await openGatewayWorld({ settings: { idleTimeoutMs: 10_000 }, deps: { clock } });
    const access = { endpoint: slow.endpoint, ...slow.root, nowMs: () => clock.wallMs() };
    await send(access, { method: 'PUT', path: '/bucket' });
    const [stuck, going] = [await openSocket(access), await openSocket(access)];
    stuck.write(
      `${headOf(access, { method: 'PUT', path: '/bucket/stuck', headers: { 'content-length': '100' } })}x`,
    );
    going.write(
      headOf(access, { method: 'PUT', path: '/bucket/going', headers: { 'content-length': '15' } }),
    );
    for (let second = 0; second < 15; second++) {
      going.write('y');
      await new Promise((resolve) => setTimeout(resolve, 5));
      clock.advance(1000);
    }
    const answer = await stuck.answer();
    expect([answer?.status, codeIn(answer?.body)]).toEqual([400, 'RequestTimeout']);
    await stuck.closed;
    expect((await going.answer())?.status).toBe(200);
    await slow.close();
  });

  test('a head that never ends', async () => {
    const slow = await openGatewayWorld({ settings: { headerTimeoutMs: 200 } });
    const socket = await openSocket(slow);
    socket.write('GET / HTTP/1.1\r\nHost: h\r\nX-');
    const answer = await socket.answer();
    expect([answer?.status, codeIn(answer?.body)]).toEqual([400, 'RequestTimeout']);
    await socket.closed;
    await slow.close();
  });
});

/** The server asks for the body when it has the request. */
const AWAITED = { 'content-length': '10', expect: '100-continue' };

describe('drain', () => {
  test('requests under way end, idle connections close, no new ones are accepted', async () => {
    const draining = await openGatewayWorld();
    const access = { endpoint: draining.endpoint, ...draining.root };
    await send(access, { method: 'PUT', path: '/bucket' });
    const idle = await openSocket(access);
    const busy = openRequest(access, { method: 'PUT', path: '/bucket/last', headers: AWAITED });
    busy.flushHeaders();
    await once(busy, 'continue');
    busy.write('12345');
    const drained = draining.gateway.drain(60_000);
    await idle.closed;
    await expect(openSocket(access)).rejects.toThrow();
    busy.end('67890');
    const { statusCode, headers } = await answerOf(busy);
    expect([statusCode, headers.connection]).toEqual([200, 'close']);
    await drained;
  });

  test('it ends after a bounded time', async () => {
    const draining = await openGatewayWorld();
    const access = { endpoint: draining.endpoint, ...draining.root };
    await send(access, { method: 'PUT', path: '/bucket' });
    const sent = openRequest(access, { method: 'PUT', path: '/bucket/never', headers: AWAITED });
    sent.flushHeaders();
    await once(sent, 'continue');
    const failed = once(sent, 'error');
    await draining.gateway.drain(50);
    const [error] = await failed;
    expect(error).toMatchObject({ code: 'ECONNRESET' });
  });
});

test('TLS: requests, and a certificate that is replaced while connections live', async () => {
  const [first, second] = [await certificate('first'), await certificate('second')];
  const secure = await openGatewayWorld({ settings: { tls: first } });
  const subject = async () => {
    const socket = connectTls({ host: secure.host, port: secure.port, rejectUnauthorized: false });
    await once(socket, 'secureConnect');
    return { socket, name: socket.getPeerCertificate().subject.CN };
  };
  const old = await subject();
  expect(old.name).toBe('first');
  secure.gateway.setCertificate(second);
  const fresh = await subject();
  expect(fresh.name).toBe('second');
  for (const { socket } of [old, fresh]) {
    socket.write('GET / HTTP/1.1\r\nHost: h\r\n\r\n');
    const [bytes] = (await once(socket, 'data')) as [Buffer];
    expect(bytes.toString()).toMatch(/^HTTP\/1.1 403 /);
    socket.destroy();
  }
  await secure.close();
});

test('TLS: unfinished handshakes keep nobody out', async () => {
  const tls = await certificate('slow');
  const secure = await openGatewayWorld({ settings: { tls, connectionsMax: 20 } });
  const silent: Socket[] = [];
  for (let count = 0; count < 60; count++) {
    const socket = connect({ host: secure.host, port: secure.port, localAddress: '127.0.0.2' });
    socket.on('error', () => {});
    await once(socket, 'connect');
    silent.push(socket);
  }
  const socket = connectTls({ host: secure.host, port: secure.port, rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  for (let count = 0; count < 2; count++) {
    socket.write('GET / HTTP/1.1\r\nHost: h\r\n\r\n');
    const [bytes] = (await once(socket, 'data')) as [Buffer];
    expect(bytes.toString()).toMatch(/^HTTP\/1.1 403 [\s\S]*Connection: keep-alive/);
  }
  expect(silent.filter(({ closed, readableEnded }) => closed || readableEnded).length).toBeGreaterThan(0);
  for (const one of [socket, ...silent]) one.destroy();
  await secure.close();
});

test('TLS: what is long is written in parts, because a connection keeps memory for its longest write', async () => {
  const secure = await openGatewayWorld({ settings: { tls: await certificate('long') } });
  const access = { endpoint: `https://${secure.host}:${secure.port}`, ...secure.root };
  const socket = await openSocket(access);
  const ask = async (method: string, path: string, body = Buffer.alloc(0)) => {
    const headers = { 'content-length': String(body.length) };
    socket.write(Buffer.concat([Buffer.from(headOf(access, { method, path, headers })), body]));
    const answer = await socket.answer();
    return [answer?.status, answer?.body.length];
  };
  await ask('PUT', '/bucket');
  // One of chunks, and one that is read whole; and a document.
  const sizes = [MiB + 1000, 200 * 1024];
  for (const size of sizes) await ask('PUT', `/bucket/${size}`, Buffer.alloc(size, 'x'));
  for (let at = 0; at < 200; at++) await ask('PUT', `/bucket/${'n'.repeat(900)}${at}`);
  const written = watchTlsWrites({ isOfServer: true });
  for (const size of sizes) expect(await ask('GET', `/bucket/${size}`)).toEqual([200, size]);
  expect((await ask('GET', '/bucket?list-type=2'))[1]).toBeGreaterThan(200_000);
  written.stop();
  expect(Math.max(...written.sizes)).toBeLessThan(66 * 1024);
  expect(written.sizes.reduce((sum, size) => sum + size)).toBeGreaterThan(MiB + 400_000);
  socket.destroy();
  await secure.close();
});

async function certificate(name: string): Promise<{ cert: string; key: string }> {
  const { cert, private: key } = await generate([{ name: 'commonName', value: name }], { keySize: 2048 });
  return { cert, key };
}
