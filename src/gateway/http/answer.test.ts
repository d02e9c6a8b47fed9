import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, get, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { afterEach, expect, test } from 'vitest';
import { BatchStream } from '../../base/bytes/batch-stream.ts';
import { systemClock } from '../../platform/system-clock.ts';
import { sendAnswer } from './answer.ts';
import type { Exchange } from './exchange.ts';

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

/** Answers a GET with what `batches` gives; resolves with the answer when its head is there. */
async function getAnswer(
  first: Buffer[],
  batches: AsyncGenerator<Buffer[]>,
  sizeBytes: number,
): Promise<IncomingMessage> {
  const server = createServer((request, response) => {
    const closed = once(response, 'close').then(() => {});
    const exchange = { request, response, closed, body: { isAtEnd: true }, mustClose: false, sentBytes: 0 };
    const stream = new BatchStream(first, batches);
    const body = { kind: 'stream', stream, sizeBytes } as const;
    void sendAnswer(exchange as unknown as Exchange, { status: 200, headers: [], body }, systemClock);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closers.push(() => server.close().closeAllConnections());
  const [answer] = await once(get({ port: (server.address() as AddressInfo).port }), 'response');
  return answer as IncomingMessage;
}

test('a stream is asked for no batch before its client has taken the one before, and gives all in order', async () => {
  // The first is more than the buffers of both sockets hold.
  const batches = [16 << 20, 1024, 1024].map((sizeBytes, batch) =>
    [0, 1, 2, 3].map((at) => Buffer.alloc(sizeBytes, 4 * batch + at)),
  );
  const [first = [], ...others] = batches;
  const hash = createHash('sha256');
  for (const buffer of batches.flat()) hash.update(buffer);
  let asked = 0;
  async function* rest() {
    for (const batch of others) {
      asked++;
      yield batch;
    }
  }
  const answer = await getAnswer(first, rest(), (64 << 20) + 8 * 1024);
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(asked).toBe(0);
  const got = await buffer(answer);
  expect(createHash('sha256').update(got).digest('hex')).toBe(hash.digest('hex'));
  expect(asked).toBe(2);
});
