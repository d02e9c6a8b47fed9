// Over real sockets, without TLS: what is counted lies in the clear. Requests over it: listener.test.ts, server.test.ts.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { TlsRecords } from './tls-records.ts';

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

const record = (sizeBytes: number, kind = 23) =>
  Buffer.concat([
    Buffer.from([kind, 3, 3, sizeBytes >> 8, sizeBytes & 255]),
    Buffer.alloc(sizeBytes, sizeBytes),
  ]);
const records = (count: number, sizeBytes: number) =>
  Buffer.concat(Array.from({ length: count }, () => record(sizeBytes)));

interface Options {
  waits?: boolean;
  mayHold?: boolean;
}

/** Records of a client that wait until `goOn` is called, unless `waits` is false. */
async function open({ waits = true, mayHold = true }: Options = {}) {
  const asked: { count?: number; goOn(): void }[] = [];
  const held = { bytes: 0 };
  let wake = () => {};
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const [socket] = (await once(server, 'connection')) as [Socket];
  client.on('error', () => {});
  const taken = new TlsRecords(socket, {
    mayShakeHands(goOn) {
      asked.push({ goOn });
      wake();
      return !waits;
    },
    mayDecrypt(count, goOn) {
      asked.push({ count, goOn });
      wake();
      return !waits;
    },
    hold(sizeBytes) {
      if (!mayHold) return undefined;
      held.bytes += sizeBytes;
      return () => {
        held.bytes -= sizeBytes;
      };
    },
  });
  closing.push(
    () => server.close(),
    () => client.destroy(),
    () => taken.destroy(),
  );
  const slices: Buffer[] = [];
  taken.on('data', (slice: Buffer) => {
    // The memory of a slice is given back.
    slices.push(Buffer.from(slice));
    wake();
  });
  const received = () => Buffer.concat(slices);
  const until = async (isSo: () => boolean) => {
    while (!isSo()) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  };
  return { client, socket, taken, asked, held, received, until };
}

test('a read full of small records is handed over some at a time, each when it is its turn', async () => {
  const { client, asked, held, received, until } = await open();
  const sent = records(100, 18);
  client.write(sent);
  await until(() => asked.length === 1);
  expect(received().length).toBe(0);
  expect(held.bytes).toBe(sent.length);
  for (let turn = 1; received().length < sent.length; turn++) {
    asked[turn - 1]?.goOn();
    await until(() => asked.length > turn || received().length === sent.length);
  }
  expect(received().equals(sent)).toBe(true);
  expect(asked.map(({ count }) => count)).toEqual([32, 32, 32, 4]);
  expect(held.bytes).toBe(0);
});

test('what a body and a short request come in asks for no turn, wherever it is cut', async () => {
  const { client, asked, received, until } = await open();
  const short = [record(0), record(200)];
  // As long as a packet, with which many clients begin.
  const sent = Buffer.concat([...short, records(20, 16_401), record(4095), records(200, 1208)]);
  for (let at = 0; at < sent.length; at += 10_007) {
    client.write(sent.subarray(at, at + 10_007));
    await until(() => received().length === Math.min(sent.length, at + 10_007));
  }
  expect(received().equals(sent)).toBe(true);
  expect(asked).toEqual([]);
});

test('no small records are taken from a client that does not take what was written to it', async () => {
  const { client, socket, asked, received, until } = await open({ waits: false });
  client.pause();
  while (!socket.writableNeedDrain) socket.write(Buffer.alloc(1024 * 1024));
  client.write(records(10, 18));
  await once(socket, 'data');
  expect([received().length, asked.length]).toEqual([0, 0]);
  client.resume();
  await until(() => received().length === 10 * 23);
});

test('where a tenant has too many bytes that wait, the connection ends', async () => {
  const { client } = await open({ mayHold: false });
  client.write(records(100, 18));
  client.resume();
  await once(client, 'close');
});

test('each piece of a handshake waits for its turn, wherever it is cut, until hands are shaken', async () => {
  const { client, socket, taken, asked, received, until } = await open();
  // A record that begins with a byte would have had its turn for that.
  const hello = record(300, 22);
  for (const [turn, piece] of [hello.subarray(0, 1), hello.subarray(1)].entries()) {
    client.write(piece);
    await until(() => asked.length === turn + 1);
    expect(received().length).toBe(turn);
    asked[turn]?.goOn();
  }
  await until(() => received().length === hello.length);
  taken.secure(socket);
  client.write(record(300, 22));
  await until(() => received().length === 2 * hello.length);
  expect(asked.length).toBe(2);
});

test('who has said more than hellos have, and shaken no hands, loses the connection', async () => {
  const { client, asked, received } = await open({ waits: false });
  client.write(Buffer.concat(Array.from({ length: 3 }, () => record(8000, 22))));
  client.resume();
  await once(client, 'close');
  // With the heads of three records.
  expect([received().length, asked.length]).toEqual([16 * 1024 + 15, 1]);
});
