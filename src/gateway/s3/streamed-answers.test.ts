// Documents that are sent as they are made, on a real connection: at the client's pace, with white space while nothing
// comes, and with an end of their own where their making breaks off.
import { connect } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { type GatewayWorld, openGatewayWorld } from '../../../tests/support/objects/gateway-world.ts';
import { parseXml } from '../../base/xml/parse-xml.ts';
import { systemClock } from '../../platform/system-clock.ts';
import { AppError } from '../../types/errors.ts';
import { defineOperation } from './operation.ts';

let world: GatewayWorld | undefined;
afterEach(() => world?.close());

/** A server whose one operation gives these pieces, for which all waiting is short, and time goes so many times faster. */
async function serve(texts: () => AsyncGenerator<string, void>, speed = 1): Promise<GatewayWorld> {
  const streamed = defineOperation({
    name: 'Streamed',
    match: { method: 'GET', on: 'service' },
    logName: 'REST.GET.STREAMED',
    body: 'none',
    auth: 'none',
    errors: [],
    parse: () => undefined,
    access: () => [],
    run: async () => ({
      status: 200,
      body: { kind: 'xml-stream', texts: texts(), whenBroken: ({ code }) => `<Error>${code}</Error></A>` },
    }),
  });
  const sleep = (_ms: number, signal?: AbortSignal) => systemClock.sleep(10, signal);
  const monotonicMs = () => systemClock.monotonicMs() * speed;
  const clock = { ...systemClock, sleep, monotonicMs };
  world = await openGatewayWorld({ deps: { operations: [streamed], clock } });
  return world;
}

test('texts are sent as they come, with white space between them', async () => {
  const gate = Promise.withResolvers<void>();
  const { endpoint } = await serve(async function* () {
    yield '<A><B>1</B>';
    await gate.promise;
    yield '<B>2</B></A>';
  });
  const answer = await fetch(endpoint);
  expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/xml']);
  let text = '';
  for await (const piece of answer.body ?? []) {
    text += Buffer.from(piece).toString('utf8');
    if (/<B>1<\/B>\s{3,}$/.test(text)) gate.resolve();
  }
  const root = parseXml(Buffer.from(text), { depthMax: 4 });
  expect(root.children.map((child) => child.text)).toEqual(['1', '2']);
});

test('white space is also sent while texts are empty', async () => {
  const { endpoint } = await serve(async function* () {
    yield '<A>';
    for (let at = 0; at < 50; at++) {
      await systemClock.sleep(1);
      yield '';
    }
    yield '</A>';
  }, 1000);
  expect(await (await fetch(endpoint)).text()).toMatch(/<A> {2,}<\/A>$/);
});

test('an error midway ends the document in its own form, and is logged', async () => {
  const { endpoint, requests } = await serve(async function* () {
    yield '<A><B>1</B>';
    throw new AppError('ServiceUnavailable');
  });
  const answer = await fetch(endpoint);
  expect(await answer.text()).toMatch(/<A><B>1<\/B><Error>ServiceUnavailable<\/Error><\/A>$/);
  await expect.poll(requests).toMatchObject([{ status: 200, errorCode: 'ServiceUnavailable' }]);
});

test('a client that disconnects ends the production at its next pause', async () => {
  const left = Promise.withResolvers<void>();
  let count = 0;
  const { endpoint } = await serve(async function* () {
    try {
      yield '<A>';
      for (;;) {
        await systemClock.sleep(1);
        count++;
        yield '<B/>';
      }
    } finally {
      left.resolve();
    }
  });
  const answer = await fetch(endpoint);
  await answer.body?.cancel();
  await left.promise;
  const before = count;
  await new Promise(setImmediate);
  expect(count).toBe(before);
});

test('a client that does not read delays the production and uses no memory', async () => {
  let madeBytes = 0;
  const piece = `<B>${'x'.repeat(64 * 1024)}</B>`;
  const served = await serve(async function* () {
    yield '<A>';
    for (;;) {
      madeBytes += piece.length;
      yield piece;
    }
  });
  // Nothing listens to its data, so nothing is read.
  const socket = connect(served.port, '127.0.0.1');
  socket.write('GET / HTTP/1.1\r\nHost: h\r\n\r\n');
  // The sockets of both ends fill up; then nothing more is made.
  let before = -1;
  await expect
    .poll(
      () => {
        const isStill = before === madeBytes && madeBytes > 0;
        before = madeBytes;
        return isStill;
      },
      { interval: 100, timeout: 10_000 },
    )
    .toBe(true);
  expect(madeBytes).toBeLessThan(32 * 1024 * 1024);
  socket.destroy();
});
