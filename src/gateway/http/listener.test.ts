import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { expect, test } from 'vitest';
import { LIMITS } from '../../types/limits.ts';
import { createListener } from './listener.ts';

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
      onTunnel: () => seen.resolve(),
      onLongHead: () => seen.resolve(),
      mayParseOn: () => true,
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
