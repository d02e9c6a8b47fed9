// Real sockets, because what is tested is how Node's parser and its sockets are led. Whose turn it is: read-turns.test.ts.
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { generate } from 'selfsigned';
import { afterEach, expect, test } from 'vitest';
import { createListener } from './listener.ts';

const FRAMES_OF_A_READ = 9000;
/** Of 6 bytes, in 4096. */
const SLICE_CHUNKS_MAX = 683;
const chunks = (count: number) => `${'1\r\nx\r\n'.repeat(count)}0\r\n\r\n`;
const chunkedHead = (path: string) => `PUT ${path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n`;

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

/** A listener whose slices wait until `goOn` is called, and, where heads wait, its heads; and one client of it. */
async function open({ isSecure = false, waits = true, headsWait = false } = {}) {
  const asked: { pieceCount: number; goOn(): void }[] = [];
  const heads: { costBytes: number; goOn(): void }[] = [];
  const bodies = new Map<string, string[]>();
  const errors: string[] = [];
  const gone = Promise.withResolvers<void>();
  let wake = () => {};
  const tls = isSecure ? await certificate() : undefined;
  const server = createListener(
    { headerTimeoutMs: 60_000, keepAliveTimeoutMs: 60_000, connectionsMax: 10, ...(tls && { tls }) },
    {
      onRequest(request: IncomingMessage, response) {
        const pieces: string[] = [];
        bodies.set(request.url ?? '', pieces);
        request.on('data', (piece: Buffer) => pieces.push(piece.toString()));
        request.on('end', () => response.end(`whole ${request.url}`));
        request.on('error', () => {});
        request.on('close', gone.resolve);
      },
      onConnection() {},
      onSecured() {},
      onClientError(error, socket) {
        errors.push((error as { code?: string }).code ?? '');
        socket.end('HTTP/1.1 400 Bad\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
      },
      onCutBody: (socket) => socket.destroy(),
      onTunnel: (socket) => socket.destroy(),
      onLongHead: (socket) => socket.destroy(),
      mayParseOn(_socket, pieceCount, goOn) {
        asked.push({ pieceCount, goOn });
        wake();
        return !waits;
      },
      mayParseHead(_socket, costBytes, goOn) {
        heads.push({ costBytes, goOn });
        wake();
        return !headsWait;
      },
      mayShakeHands: () => true,
      mayDecrypt: () => true,
      holdRecords: () => () => {},
    },
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const socket: Socket = isSecure
    ? connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false })
    : connect(port, '127.0.0.1');
  closing.push(
    () => socket.destroy(),
    () => server.close(),
  );
  await once(socket, isSecure ? 'secureConnect' : 'connect');
  let received = '';
  socket.on('data', (bytes) => {
    received += bytes.toString();
    wake();
  });
  async function until(isSo: () => boolean): Promise<void> {
    while (!isSo()) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  }
  return {
    asked,
    heads,
    bodies,
    errors,
    socket,
    gone: gone.promise,
    sizeOf: (path: string) => bodies.get(path)?.join('').length,
    hasReceived: (text: string) => until(() => received.includes(text)),
    nextSlice: (count: number) => until(() => asked.length >= count),
    nextHead: (count: number) => until(() => heads.length >= count),
  };
}

test.each([
  ['over TCP', false],
  ['over TLS', true],
])(
  '%s a read full of small chunks is parsed slice by slice, each when it is its turn',
  async (_where, isSecure) => {
    const { asked, socket, sizeOf, nextSlice, hasReceived } = await open({ isSecure });
    const sent = `${chunkedHead('/1')}${chunks(FRAMES_OF_A_READ)}`;
    socket.write(`${sent}GET /2 HTTP/1.1\r\nHost: a\r\n\r\n`);
    let parsed = 0;
    for (let slice = 1; parsed < FRAMES_OF_A_READ; slice++) {
      await nextSlice(slice);
      const { pieceCount, goOn } = asked[slice - 1] as (typeof asked)[number];
      expect(asked.length).toBe(slice);
      expect(pieceCount).toBeLessThanOrEqual(SLICE_CHUNKS_MAX);
      parsed += pieceCount;
      // What is parsed is given, as one piece of each slice.
      expect(sizeOf('/1')).toBe(parsed);
      goOn();
    }
    await hasReceived('whole /1');
    await hasReceived('whole /2');
  },
);

test.each([
  ['extensions', `1;${'a'.repeat(4084)}\r\nx\r\n`],
  ['leading zeros', `${'0'.repeat(4085)}1\r\nx\r\n`],
])('framing that is hardly any body waits for its turn: %s', async (_what, frame) => {
  const { asked, socket, sizeOf, nextSlice, hasReceived } = await open();
  const frames = 12;
  socket.write(`${chunkedHead('/1')}${frame.repeat(frames)}0\r\n\r\n`);
  for (let slice = 1; slice < frames; slice++) {
    await nextSlice(slice);
    expect(asked.length).toBe(slice);
    expect(sizeOf('/1') ?? 0).toBeLessThanOrEqual(slice + 1);
    asked[slice - 1]?.goOn();
  }
  await hasReceived('whole /1');
});

test('a body of known length is one piece behind its first slice, and what is behind it is sliced again', async () => {
  const { asked, bodies, socket, hasReceived } = await open({ waits: false });
  const bytes = 'x'.repeat(20_000);
  const first = `PUT /1 HTTP/1.1\r\nHost: a\r\nContent-Length: ${bytes.length}\r\n\r\n${bytes}`;
  socket.write(`${first}${chunkedHead('/2')}${chunks(2000)}`);
  await hasReceived('whole /2');
  expect(bodies.get('/1')?.length).toBeLessThanOrEqual(3);
  expect(Math.max(...asked.map(({ pieceCount }) => pieceCount))).toBeLessThanOrEqual(SLICE_CHUNKS_MAX);
});

test.each([
  ['over TCP', false],
  ['over TLS', true],
])(
  '%s bodies of known length arrive whole and in order, whatever is read at once',
  async (_where, isSecure) => {
    const { bodies, socket, hasReceived } = await open({ waits: false, isSecure });
    const sizes = [1, 4095, 4096, 4097, 65_536, 200_000, 1_000_000];
    const text = (size: number) => Buffer.alloc(size, '0123456789abcdefghijk').toString('latin1');
    for (const size of sizes)
      socket.write(`PUT /${size} HTTP/1.1\r\nHost: a\r\nContent-Length: ${size}\r\n\r\n${text(size)}`);
    socket.write('GET /behind HTTP/1.1\r\nHost: a\r\n\r\n');
    await hasReceived('whole /behind');
    for (const size of sizes)
      expect(bodies.get(`/${size}`)?.join('') === text(size), `${size} bytes`).toBe(true);
  },
);

test('bytes that come before its turn keep their order', async () => {
  const { asked, socket, sizeOf, nextSlice, hasReceived } = await open();
  socket.write(`${chunkedHead('/1')}${'1\r\nx\r\n'.repeat(FRAMES_OF_A_READ)}`);
  await nextSlice(1);
  socket.write(`${chunks(FRAMES_OF_A_READ)}GET /2 HTTP/1.1\r\nHost: a\r\n\r\n`);
  for (let slice = 1; (sizeOf('/1') ?? 0) < 2 * FRAMES_OF_A_READ; slice++) {
    await nextSlice(slice);
    asked[slice - 1]?.goOn();
  }
  await hasReceived('whole /2');
  expect(sizeOf('/1')).toBe(2 * FRAMES_OF_A_READ);
});

test('behind a chunk that makes no sense nothing is parsed, and the error is told once', async () => {
  const { errors, bodies, socket, hasReceived } = await open({ waits: false });
  const nonsense = `zz\r\n${'GET /2 HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(1000)}`;
  socket.write(`${chunkedHead('/1')}${'1\r\nx\r\n'.repeat(100)}${nonsense}`);
  await hasReceived('HTTP/1.1 400');
  expect(errors).toEqual(['HPE_INVALID_CHUNK_SIZE']);
  expect([...bodies.keys()]).toEqual(['/1']);
});

test.each([
  ['over TCP', false],
  ['over TLS', true],
])(
  '%s nothing of a head is parsed before its turn, and of a body of known length all is',
  async (_where, isSecure) => {
    const { heads, bodies, socket, sizeOf, nextHead, hasReceived } = await open({
      isSecure,
      headsWait: true,
    });
    const size = 20_000;
    socket.write(`PUT /1 HTTP/1.1\r\nHost: a\r\nContent-Length: ${size}\r\n\r\n${'x'.repeat(100)}`);
    await nextHead(1);
    expect(bodies.size).toBe(0);
    heads[0]?.goOn();
    socket.write('x'.repeat(size - 100));
    await hasReceived('whole /1');
    expect([sizeOf('/1'), heads.length]).toEqual([size, 1]);
    socket.write('GET /2 HTTP/1.1\r\nHo');
    await nextHead(2);
    socket.write('st: a\r\n\r\n');
    heads[1]?.goOn();
    await nextHead(3);
    expect(bodies.has('/2')).toBe(false);
    heads[2]?.goOn();
    await hasReceived('whole /2');
  },
);

test('a long head, many requests in one read and what is none count for more than a request does', async () => {
  const costOf = async (sent: string, end: string) => {
    const { heads, socket, hasReceived } = await open({ waits: false });
    socket.write(sent);
    await hasReceived(end);
    return heads.reduce((sum, { costBytes }) => sum + costBytes, 0);
  };
  const request = (path: string, more = '') => `GET ${path} HTTP/1.1\r\nHost: a\r\n${more}\r\n`;
  const one = await costOf(request('/1'), 'whole /1');
  expect(await costOf(request('/1', `x: ${'y'.repeat(30_000)}\r\n`), 'whole /1')).toBeGreaterThan(8 * one);
  expect(await costOf(request('/1').repeat(30) + request('/2'), 'whole /2')).toBeGreaterThanOrEqual(31 * one);
  expect(await costOf('nonsense\r\n\r\n', 'HTTP/1.1 400')).toBeGreaterThan(8 * one);
});

test('a client that leaves while it waits for its turn is forgotten', async () => {
  const { asked, gone, sizeOf, socket, nextSlice } = await open();
  socket.write(`${chunkedHead('/1')}${chunks(FRAMES_OF_A_READ)}`);
  await nextSlice(1);
  const size = sizeOf('/1');
  socket.resetAndDestroy();
  // Only who reads learns that a client has gone.
  asked[0]?.goOn();
  await nextSlice(2);
  asked[1]?.goOn();
  await gone;
  expect(asked.length).toBeGreaterThan(1);
  expect(sizeOf('/1')).toBeGreaterThan(size ?? 0);
});

async function certificate(): Promise<{ cert: string; key: string }> {
  const { cert, private: key } = await generate([{ name: 'commonName', value: 'a' }], { keySize: 2048 });
  return { cert, key };
}
