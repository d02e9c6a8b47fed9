import { once } from 'node:events';
import { connect } from 'node:http2';
import { connect as connectSocket, createServer, type Socket } from 'node:net';
import { status } from '@grpc/grpc-js';
import { afterEach, describe, expect, test } from 'vitest';
import {
  type AddressBook,
  createCounts,
  createEvents,
  makeCertificates,
  nodeId,
  openCredentials,
  openProved,
  type RpcNode,
  secretSecurity,
  startRpcNode,
} from '../../../tests/support/coordination/rpc-nodes.ts';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import { must } from '../../base/assert.ts';
import { Refusal } from '../../base/refusal.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { ShardCall, ShardCallHandler, ShardReply, Ticket } from '../../ports/shard-calls.ts';
import { CallBroken } from '../../types/call-broken.ts';
import { LIMITS } from '../../types/limits.ts';
import { systemClock, systemRandom } from '../system-clock.ts';
import { createCallServer } from './call-server.ts';
import { openStream } from './open-stream.ts';
import { createPeerServer } from './peer-server.ts';
import { startRpcServer } from './rpc-server.ts';
import { CALLS, REPLICATE, RPC_VERSION, WINDOW_BYTES } from './wire.ts';

const closers: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const [CALLER, CALLEE] = [nodeId(1), nodeId(2)];
const credentials = await openCredentials(secretSecurity);
const addresses: AddressBook = new Map();
/** Of one caller each: a signal with thousands of listeners is slow. */
const never = () => new AbortController().signal;
const callOf = (body: unknown) =>
  ({ kind: 'query', envelope: { shard: 1 }, name: 'get-version', body, budgetMs: 1 }) as const;
const done = (value: unknown): ShardReply => ({ kind: 'done', value, timeMs: 1 });

function handlerOf(handle: (call: ShardCall) => Promise<ShardReply>): ShardCallHandler {
  return { ticket: () => ({ processId: 'p', monotonicMs: 1, wallMs: 0 }), handle };
}

async function start(options: {
  nodeId: string;
  handler?: ShardCallHandler;
  clock?: ClockPort;
}): Promise<RpcNode & { end(): Promise<void> }> {
  const node = await startRpcNode({ ...options, credentials, addresses });
  let ending: Promise<void> | undefined;
  const end = () => {
    ending ??= node.close();
    return ending;
  };
  closers.push(end);
  return { ...node, end };
}

/** A member's bare stream, to send what no client of ours would. */
async function openBare<Out, In>(method: Parameters<typeof openStream<Out, In>>[0]['method']) {
  const address = must(addresses.get(CALLEE), 'the node listens');
  const self = { clusterId: 'c'.repeat(32), nodeId: CALLER };
  const deps = { self, credentials, clock: systemClock, random: systemRandom };
  const opened = await openStream({ method, node: CALLEE, address }, deps, never());
  closers.push(opened.close);
  opened.stream.resume();
  return opened;
}

test('a call that waits for its connection ages meanwhile (R48)', async () => {
  const tickets: Pick<Ticket, 'monotonicMs' | 'wallMs'>[] = [];
  const handle = async ({ body, ticket }: ShardCall) => {
    const { monotonicMs, wallMs } = ticket;
    tickets.push({ monotonicMs, wallMs });
    return done(body);
  };
  await start({ nodeId: CALLEE, handler: handlerOf(handle) });
  const clock = createManualClock(0);
  const caller = await start({ nodeId: CALLER, clock });
  const first = caller.calls.call(CALLEE, callOf(1), never());
  clock.advance(LIMITS.rpcConnectMaxMs / 2);
  await first;
  await caller.calls.call(CALLEE, callOf(2), never());
  // By both clocks: one that stayed behind the other would be taken for a clock that was set back.
  const waitedMs = LIMITS.rpcConnectMaxMs / 2;
  expect(tickets).toEqual([
    { monotonicMs: 1 - waitedMs, wallMs: -waitedMs },
    { monotonicMs: 1, wallMs: 0 },
  ]);
});

describe('calls', () => {
  test('that are under way when the node stops are answered first', async () => {
    const reply = Promise.withResolvers<ShardReply>();
    const arrived = Promise.withResolvers<void>();
    const handler = handlerOf(() => {
      arrived.resolve();
      return reply.promise;
    });
    const callee = await start({ nodeId: CALLEE, handler });
    const caller = await start({ nodeId: CALLER });
    const call = caller.calls.call(CALLEE, callOf(1), never());
    await arrived.promise;
    const ended = callee.end();
    reply.resolve(done('late'));
    expect(await call).toEqual(done('late'));
    await ended;
    await expect(caller.calls.call(CALLEE, callOf(2), never())).rejects.toThrow(CallBroken);
  });

  test('are unknown when the node stops and they do not end', async () => {
    const clock = createManualClock(0);
    const arrived = Promise.withResolvers<void>();
    const handler = handlerOf(() => {
      arrived.resolve();
      return new Promise(() => undefined);
    });
    const callee = await start({ nodeId: CALLEE, handler, clock });
    const caller = await start({ nodeId: CALLER });
    const call = caller.calls.call(CALLEE, callOf(1), never());
    await arrived.promise;
    const ended = callee.end();
    clock.advance(LIMITS.rpcDrainMaxMs);
    await expect(call).rejects.toMatchObject({ name: 'CallBroken', wasSent: true });
    await ended;
  });

  test('start in their order, and not all in one turn of the event loop, however many a frame has', async () => {
    const bodies: unknown[] = [];
    let ofTurn = 0;
    let most = 0;
    const callee = handlerOf(async ({ body }) => {
      bodies.push(body);
      if (ofTurn === 0)
        setImmediate(() => {
          ofTurn = 0;
        });
      most = Math.max(most, ++ofTurn);
      return done(body);
    });
    await start({ nodeId: CALLEE, handler: callee });
    const caller = await start({ nodeId: CALLER });
    const sent = Array.from({ length: 1000 }, (_, at) => at);
    const replies = await Promise.all(sent.map((at) => caller.calls.call(CALLEE, callOf(at), never())));
    expect(replies).toEqual(sent.map(done));
    expect(bodies).toEqual(sent);
    // Turns are counted here a little later than there: two of them may be taken for one.
    expect(most).toBeLessThanOrEqual(2 * 64);
  });

  test('whose handler fails are unknown, and logged', async () => {
    const callee = await start({
      nodeId: CALLEE,
      handler: handlerOf(({ body }) => {
        if (body === 'reject') return Promise.reject(new Error('broken'));
        return Promise.resolve(done(Buffer.alloc(LIMITS.rpcMessageBytesMax)));
      }),
    });
    const caller = await start({ nodeId: CALLER });
    for (const body of ['reject', 'too large a reply']) {
      expect(await caller.calls.call(CALLEE, callOf(body), never())).toEqual({ kind: 'unknown' });
    }
    expect(callee.events.map(({ event }) => event)).toEqual(['shard-call-failed', 'shard-call-failed']);
  });

  test('beyond what a node takes at once are answered busy, without evaluation', async () => {
    let evaluatedCount = 0;
    const gate = Promise.withResolvers<ShardReply>();
    const handler = handlerOf(({ body }) => {
      if (body === 'first') return Promise.resolve(done(1));
      evaluatedCount++;
      return gate.promise;
    });
    await start({ nodeId: CALLEE, handler });
    const caller = await start({ nodeId: CALLER });
    await caller.calls.call(CALLEE, callOf('first'), never());
    const ending = 50;
    let busyCount = 0;
    const calls = Array.from({ length: LIMITS.callsInFlightMax + ending }, async (_, index) => {
      const { kind } = await caller.calls.call(CALLEE, callOf(index), never());
      if (kind === 'busy' && ++busyCount === ending) gate.resolve(done(1));
      return kind;
    });
    const kinds = await Promise.all(calls);
    expect(kinds.filter((kind) => kind === 'busy')).toHaveLength(ending);
    expect(evaluatedCount).toBe(LIMITS.callsInFlightMax);
  });

  test('queries of one account leave places for those of others', async () => {
    const gate = Promise.withResolvers<ShardReply>();
    const handler = handlerOf(({ body }) =>
      typeof body === 'string' ? Promise.resolve(done(body)) : gate.promise,
    );
    await start({ nodeId: CALLEE, handler });
    const caller = await start({ nodeId: CALLER });
    const ask = (account: string, body: unknown) =>
      caller.calls.call(CALLEE, { ...callOf(body), envelope: { shard: 1, account } }, never());
    await ask('one', 'first');
    const many = Array.from({ length: LIMITS.callsInFlightMax + 1 }, (_, index) => ask('one', index));
    // There is one at least that found no place.
    expect(await Promise.race(many)).toEqual({ kind: 'busy' });
    expect(await ask('one', 'again')).toEqual({ kind: 'busy' });
    expect(await ask('another', 'its first')).toEqual(done('its first'));
    gate.resolve(done(1));
    await Promise.all(many);
  });

  test('beyond what waits for a node are answered busy, and never sent', async () => {
    let servedCount = 0;
    const handler = handlerOf(async () => {
      servedCount++;
      return done(1);
    });
    await start({ nodeId: CALLEE, handler });
    const caller = await start({ nodeId: CALLER });
    await caller.calls.call(CALLEE, callOf(0), never());
    const body = Buffer.alloc(LIMITS.callQueueBytesMax / 4);
    const replies = await Promise.all(
      Array.from({ length: 6 }, () => caller.calls.call(CALLEE, callOf(body), never())),
    );
    expect(replies.map(({ kind }) => kind)).toEqual(['done', 'done', 'done', 'busy', 'busy', 'busy']);
    expect(servedCount).toBe(4);
  });

  test('larger than a message are a mistake of the caller', async () => {
    await start({ nodeId: CALLEE, handler: handlerOf(async () => done(1)) });
    const caller = await start({ nodeId: CALLER });
    const body = Buffer.alloc(LIMITS.rpcMessageBytesMax);
    await expect(caller.calls.call(CALLEE, callOf(body), never())).rejects.toThrow('fits into a message');
  });

  test('that were cancelled before they were sent are not sent', async () => {
    const bodies: unknown[] = [];
    const handler = handlerOf(async ({ body }) => {
      bodies.push(body);
      return done(body);
    });
    await start({ nodeId: CALLEE, handler });
    const caller = await start({ nodeId: CALLER });
    // While the connection is made, and once more on an open one.
    for (const body of ['first', 'second']) {
      const leaving = new AbortController();
      const call = caller.calls.call(CALLEE, callOf(body), leaving.signal);
      leaving.abort();
      await expect(call).rejects.toMatchObject({ wasSent: false });
      await caller.calls.call(CALLEE, callOf(`after ${body}`), never());
    }
    expect(bodies).toEqual(['after first', 'after second']);
  });
});

describe('a member that sends unreadable messages', () => {
  test.each([
    ['a call of no MessagePack', { version: RPC_VERSION, numbers: [1], payloads: [Buffer.from([0xd9])] }],
    ['what is no call', { version: RPC_VERSION, numbers: [1], payloads: [Buffer.from([1])] }],
    ['calls without numbers', { version: RPC_VERSION, numbers: [], payloads: [Buffer.from([1])] }],
    ['a frame of another version', { version: RPC_VERSION + 1, numbers: [], payloads: [] }],
  ])('loses its stream: %s', async (_, frame) => {
    const callee = await start({ nodeId: CALLEE });
    const { stream, ended } = await openBare(CALLS);
    stream.write(frame);
    expect(await ended).toBe('INVALID_ARGUMENT: the frame cannot be read');
    expect(callee.events.map(({ event }) => event)).toEqual(['call-frame-unreadable']);
  });

  test.each([
    ['a message of no MessagePack', { version: RPC_VERSION, payloads: [Buffer.from([0xd9])] }],
    ['what is no message', { version: RPC_VERSION, payloads: [Buffer.from([1])] }],
    ['a frame of another version', { version: RPC_VERSION + 1, payloads: [] }],
  ])('loses its stream between replicas: %s', async (_, frame) => {
    const callee = await start({ nodeId: CALLEE });
    const { stream, ended } = await openBare(REPLICATE);
    stream.write(frame);
    expect(await ended).toBe('INVALID_ARGUMENT: the frame cannot be read');
    expect(callee.events.map(({ event }) => event)).toEqual(['replica-frame-unreadable']);
  });
});

test('the newer of two streams of one replica node counts', async () => {
  const callee = await start({ nodeId: CALLEE });
  const older = await openBare(REPLICATE);
  await openBare(REPLICATE);
  expect(await older.ended).toBe('ABORTED: replaced by a newer stream');
  expect(callee.events.map(({ event }) => event)).toEqual(['replica-stream-replaced']);
});

/** Of a member, to send what no client of ours would. */
async function openSession() {
  const socket = await openProved(must(addresses.get(CALLEE), 'the node listens'), credentials);
  const session = connect('http://member', { createConnection: () => socket });
  closers.push(() => session.destroy());
  return session;
}

test('the windows of its connections hold several frames', async () => {
  await start({ nodeId: CALLEE });
  const session = await openSession();
  while (session.remoteSettings?.initialWindowSize !== WINDOW_BYTES) await once(session, 'remoteSettings');
  // Said on its own, and nothing tells when it has come.
  await expect.poll(() => session.state.remoteWindowSize, { timeout: 30_000 }).toBe(WINDOW_BYTES);
});

describe('connections of strangers', () => {
  async function connectTo(address: string): Promise<Socket> {
    const socket = connectSocket(Number(address.split(':')[1]), '127.0.0.1').resume();
    closers.push(() => void socket.destroy());
    await once(socket, 'connect');
    return socket;
  }

  /** What a node of its own proves itself by. */
  async function openOwn(mode: 'tls' | 'secret') {
    const made = await makeCertificates();
    closers.push(made.remove);
    const own = await openCredentials(mode === 'tls' ? made.security : secretSecurity);
    closers.push(own.close);
    return own;
  }

  test.each(['tls', 'secret'] as const)(
    'are no more than a node can spare files for, and keep no member out: %s',
    async (mode) => {
      const own = await openOwn(mode);
      const book: AddressBook = new Map();
      const startNode = async (nodeId: string) => {
        const node = await startRpcNode({
          nodeId,
          credentials: own,
          addresses: book,
          handler: handlerOf(async ({ body }) => done(body)),
        });
        closers.push(node.close);
        return node;
      };
      await startNode(CALLEE);
      const before = await startNode(CALLER);
      expect(await before.calls.call(CALLEE, callOf(1), never())).toEqual(done(1));
      const address = must(book.get(CALLEE), 'the node listens');
      let openCount = 0;
      for (let count = 0; count < LIMITS.rpcConnectionsMax + 10; count++) {
        openCount++;
        (await connectTo(address)).on('close', () => openCount--);
      }
      const after = await startNode(nodeId(3));
      expect(await after.calls.call(CALLEE, callOf(2), never())).toEqual(done(2));
      expect(await before.calls.call(CALLEE, callOf(3), never())).toEqual(done(3));
      expect(before.events.map(({ event }) => event)).not.toContain('rpc-down');
      expect(openCount).toBeLessThan(LIMITS.rpcConnectionsMax);
    },
  );

  test.each(['tls', 'secret'] as const)(
    'end when they do not prove to be members in time: %s',
    async (mode) => {
      const own = await openOwn(mode);
      const book: AddressBook = new Map();
      const node = await startRpcNode({ nodeId: CALLEE, credentials: own, addresses: book });
      closers.push(node.close);
      const silent = await connectTo(must(book.get(CALLEE), 'the node listens'));
      const openedAtMs = performance.now();
      await once(silent, 'close');
      expect(performance.now() - openedAtMs).toBeLessThan(2 * LIMITS.rpcConnectMaxMs);
    },
  );
});

describe('connections of members', () => {
  test('have a refused stream ended, though its sender goes on', async () => {
    await start({ nodeId: CALLEE });
    const session = await openSession();
    const headers = { ':method': 'POST', ':path': CALLS.path, 'content-type': 'application/grpc' };
    const stream = session.request(headers, { endStream: false });
    stream.write(Buffer.alloc(2 * WINDOW_BYTES));
    const [[answer]] = await Promise.all([once(stream, 'response'), once(stream.resume(), 'close')]);
    expect(answer['grpc-status']).toBe(String(status.FAILED_PRECONDITION));
  });

  test('end when they open streams and reset them', async () => {
    await start({ nodeId: CALLEE });
    const socket = await openProved(must(addresses.get(CALLEE), 'the node listens'), credentials);
    const closed = new Promise((resolve) => socket.resume().on('close', resolve));
    const frame = (type: number, flags: number, stream: number, payload: string) => {
      const head = Buffer.alloc(9);
      head.writeUIntBE(payload.length, 0, 3);
      head.writeUInt16BE((type << 8) | flags, 3);
      head.writeUInt32BE(stream, 5);
      return Buffer.concat([head, Buffer.from(payload, 'latin1')]);
    };
    // POST, http, and a path of one letter, as HPACK has them.
    const opened = '\x83\x86\x04\x02/x';
    const streams = Array.from({ length: 300 }, (_, at) => 2 * at + 1);
    const pairs = streams.flatMap((id) => [frame(1, 4, id, opened), frame(3, 0, id, '\0\0\0\x08')]);
    socket.write(
      Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), frame(4, 0, 0, ''), ...pairs]),
    );
    await closed;
  });
});

test('a port in use is refused with a message', async () => {
  await start({ nodeId: CALLEE });
  const port = Number(addresses.get(CALLEE)?.split(':')[1]);
  const deps = {
    clock: systemClock,
    random: systemRandom,
    log: createEvents().log,
    telemetry: createCounts(),
  };
  const second = startRpcServer({
    ...deps,
    self: { clusterId: 'c', nodeId: CALLER },
    listen: { host: '127.0.0.1', port },
    credentials,
    calls: createCallServer({ ...deps, handler: handlerOf(async () => done(1)) }),
    peers: createPeerServer(deps),
  });
  await expect(second).rejects.toThrow(Refusal);
  await expect(second).rejects.toThrow(`cannot listen on 127.0.0.1:${port}: another program listens there`);
});

test('a node that does not answer is given up in time, and retried after longer pauses', async () => {
  // Accepts connections, and never says anything.
  const silent = createServer().listen(0, '127.0.0.1');
  await once(silent, 'listening');
  closers.push(() => void silent.close());
  const address = silent.address();
  addresses.set(CALLEE, `127.0.0.1:${typeof address === 'object' ? address?.port : 0}`);
  const clock = createManualClock(0);
  const caller = await start({ nodeId: CALLER, clock });
  const waits: number[] = [];
  for (let attempt = 0; attempt < 8; attempt++) {
    const call = caller.calls.call(CALLEE, callOf(1), never());
    clock.advance(LIMITS.rpcConnectMaxMs);
    await expect(call).rejects.toThrow('no answer in time');
    let waitedMs = 0;
    // Within its back-off a call fails at once: nothing is tried.
    for (; waitedMs < 2 * LIMITS.rpcBackoffMaxMs; waitedMs++) {
      const leaving = new AbortController();
      const probe = caller.calls
        .call(CALLEE, callOf(1), leaving.signal)
        .catch((error: Error) => error.message);
      leaving.abort();
      if ((await probe) === 'the caller waits no longer') break;
      clock.advance(1);
    }
    waits.push(waitedMs);
    clock.advance(LIMITS.rpcConnectMaxMs);
    await new Promise((resolve) => setTimeout(resolve, 20));
    clock.advance(LIMITS.rpcBackoffMaxMs);
  }
  expect(waits[0]).toBeGreaterThanOrEqual(LIMITS.rpcBackoffMinMs / 2);
  expect(waits[0]).toBeLessThanOrEqual(LIMITS.rpcBackoffMinMs + 1);
  expect(Math.max(...waits)).toBeGreaterThanOrEqual(LIMITS.rpcBackoffMaxMs / 2);
  expect(Math.max(...waits)).toBeLessThanOrEqual(LIMITS.rpcBackoffMaxMs + 1);
  expect(caller.events.filter(({ event }) => event === 'rpc-down')).toHaveLength(1);
});
