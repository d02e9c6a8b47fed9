import { once } from 'node:events';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { generate } from 'selfsigned';
import { expect, test } from 'vitest';
import { LIMITS } from '../../types/limits.ts';
import { createListener, exchangeCertificate, type ListenerEvents, listen } from './listener.ts';

const PIECE_BYTES = 64 * 1024;
const PIECES = 400;

test.each([
  ['a head of too many lines', `GET /2 HTTP/1.1\r\nHost: a\r\n${'x:\r\n'.repeat(LIMITS.headerLinesMax)}\r\n`],
  ['a CONNECT', 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n'],
])('%s behind a request leaves its long answer whole', async (_what, behind) => {
  const seen = Promise.withResolvers<void>();
  const server = createListener(
    { headerTimeoutMs: 60_000, keepAliveTimeoutMs: 60_000, connectionsMax: 10 } as never,
    {
      onRequest(_request, response) {
        let left = PIECES;
        response.writeHead(200, { 'content-length': String(PIECES * PIECE_BYTES) });
        const send = () => {
          while (left > 0) {
            left--;
            if (response.write(Buffer.alloc(PIECE_BYTES))) continue;
            response.once('drain', send);
            return;
          }
          response.end();
        };
        // Behind the read that has brought what is behind it, too.
        seen.promise.then(send);
      },
      onConnection() {},
      onSecured() {},
      onClientError: (_error, socket) => socket.destroy(),
      onCutBody: (socket) => socket.destroy(),
      onTunnel: () => seen.resolve(),
      onLongHead: () => seen.resolve(),
      mayParseOn: () => true,
      mayParseHead: () => true,
      mayShakeHands: () => true,
      mayDecrypt: () => true,
      holdRecords: () => () => {},
    },
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const whole = Promise.withResolvers<void>();
  let receivedBytes = 0;
  socket.on('data', (piece) => {
    receivedBytes += piece.length;
    if (receivedBytes > PIECES * PIECE_BYTES) whole.resolve();
  });
  socket.write(`GET /1 HTTP/1.1\r\nHost: a\r\n\r\n${behind}`);
  await whole.promise;
  expect(receivedBytes).toBeGreaterThan(PIECES * PIECE_BYTES);
  socket.destroy();
  server.close();
});

/** Whoever asks is answered 50 ms later. */
const SLOW_ANSWERS = {
  onRequest: (request, response) => setTimeout(() => response.end(`answer ${request.url}`), 50),
  onConnection() {},
  onSecured() {},
  onClientError: (_error, socket) => socket.destroy(),
  onCutBody: (socket) => socket.destroy(),
  onTunnel: (socket) => socket.destroy(),
  onLongHead: (socket) => socket.destroy(),
  mayParseOn: () => true,
  mayParseHead: () => true,
  mayShakeHands: () => true,
  mayDecrypt: () => true,
  holdRecords: () => () => {},
} satisfies ListenerEvents;

/** Over TLS, with a client that has connected and said nothing yet. Hands are shaken when `goOn` of `asked` is called. */
async function openTls(headerTimeoutMs: number) {
  const { cert, private: key } = await generate([{ name: 'commonName', value: 'a' }], { keySize: 2048 });
  const asked: (() => void)[] = [];
  const shaken: Socket[] = [];
  let wake = () => {};
  const server = createListener(
    { headerTimeoutMs, keepAliveTimeoutMs: 60_000, connectionsMax: 10, tls: { cert, key } },
    {
      ...SLOW_ANSWERS,
      onRequest: (_request, response) => response.end('answered'),
      onSecured: (socket) => shaken.push(socket),
      mayShakeHands(_socket, goOn) {
        asked.push(goOn);
        wake();
        return false;
      },
    },
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  client.on('error', () => {});
  await once(client, 'connect');
  const isAsked = async () => {
    if (asked.length > 0) return;
    await new Promise<void>((resolve) => {
      wake = resolve;
    });
  };
  return { server, client, asked, shaken, isAsked };
}

test('hands are shaken when it is their turn, with what has come until then', async () => {
  const { server, client, asked, shaken, isAsked } = await openTls(60_000);
  const secured = connectTls({ socket: client, rejectUnauthorized: false });
  secured.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  await isAsked();
  expect(shaken).toEqual([]);
  asked[0]?.();
  let received = '';
  for await (const bytes of secured) received += bytes;
  expect(received).toContain('answered');
  expect([asked.length, shaken.length]).toEqual([1, 1]);
  server.close();
});

test.each<[string, number, (client: Socket) => void]>([
  ['says nothing', 50, () => {}],
  ['closes its half and has said nothing', 60_000, (client) => client.end()],
])('a client over TLS that %s is not waited for', async (_what, timeoutMs, act) => {
  const { server, client, asked } = await openTls(timeoutMs);
  act(client);
  client.resume();
  await once(client, 'close');
  expect(asked).toEqual([]);
  server.close();
});

test('nobody shakes hands again, also not with another certificate', async () => {
  const { server, client, asked, isAsked } = await openTls(60_000);
  const again = await generate([{ name: 'commonName', value: 'a' }], { keySize: 2048 });
  exchangeCertificate(server, { cert: again.cert, key: again.private });
  const secured = connectTls({ socket: client, rejectUnauthorized: false, maxVersion: 'TLSv1.2' });
  await isAsked();
  asked[0]?.();
  while (asked.length < 2) await new Promise(setImmediate);
  asked[1]?.();
  await once(secured, 'secureConnect');
  const refused = await new Promise<Error | null>((resolve) => {
    secured.on('error', resolve);
    secured.renegotiate({ rejectUnauthorized: false }, resolve);
  });
  expect(refused?.message).toContain('no renegotiation');
  server.close();
});

test('one that has gone before its turn is forgotten', async () => {
  const { server, client, asked, shaken, isAsked } = await openTls(60_000);
  client.write('hello');
  await isAsked();
  client.resetAndDestroy();
  const connections = () =>
    new Promise((resolve) => server.getConnections((_error, count) => resolve(count)));
  while ((await connections()) !== 0) await new Promise(setImmediate);
  asked[0]?.();
  expect(shaken).toEqual([]);
  server.close();
});

test.each(['HTTP', 'HTTPS'])(
  'a client over %s that closes its half behind its requests gets all answers, and then the end',
  async (protocol) => {
    const { cert, private: key } = await generate([{ name: 'commonName', value: 'a' }], { keySize: 2048 });
    const tls = protocol === 'HTTPS' ? { tls: { cert, key } } : {};
    const settings = { headerTimeoutMs: 60_000, keepAliveTimeoutMs: 60_000, connectionsMax: 10, ...tls };
    const server = createListener(settings, SLOW_ANSWERS);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const place = { port, host: '127.0.0.1', allowHalfOpen: true };
    const client =
      protocol === 'HTTPS' ? connectTls({ ...place, rejectUnauthorized: false }) : connect(place);
    const requests = [1, 2].map((number) => `GET /${number} HTTP/1.1\r\nHost: a\r\n\r\n`);
    client.end(requests.join(''));
    let received = '';
    for await (const bytes of client) received += bytes;
    expect(received.match(/answer \/\d/g)).toEqual(['answer /1', 'answer /2']);
    server.close();
  },
);

test('a turn of the event loop takes many of the connections that have come', async () => {
  let takenCount = 0;
  const all = Promise.withResolvers<void>();
  const server = createListener(
    { headerTimeoutMs: 60_000, keepAliveTimeoutMs: 60_000, connectionsMax: 200 },
    {
      ...SLOW_ANSWERS,
      onConnection: () => {
        if (++takenCount === 128) all.resolve();
      },
    },
  );
  const closing = new AbortController();
  const { port } = await listen(server, { host: '127.0.0.1', port: 0 }, closing.signal);
  const clients = Array.from({ length: 128 }, () => connect(port, '127.0.0.1'));
  let mostInTurn = 0;
  let before = 0;
  const look = () => {
    mostInTurn = Math.max(mostInTurn, takenCount - before);
    before = takenCount;
    if (takenCount < 128) setImmediate(look);
  };
  setImmediate(look);
  await all.promise;
  await new Promise(setImmediate);
  expect(mostInTurn).toBeGreaterThan(24);
  for (const client of clients) client.destroy();
  closing.abort();
});
