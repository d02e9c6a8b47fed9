// What every ShardCallPort promises (src/ports/shard-calls.ts), run over memory and over gRPC, by secret and by
// certificates.
import { afterEach, describe, expect, test } from 'vitest';
import { must } from '../../src/base/assert.ts';
import type { LinkName } from '../../src/metadata/blobs/links.ts';
import { rowKey } from '../../src/metadata/engine/row-keys.ts';
import { linkRow, PRESENT, pendingClaimRow } from '../../src/metadata/schema/keyspace.ts';
import { createMemoryCalls } from '../../src/platform/memory/memory-calls.ts';
import { systemClock } from '../../src/platform/system-clock.ts';
import type { ClockPort } from '../../src/ports/clock.ts';
import type { Envelope } from '../../src/ports/metadata/port.ts';
import type { ShardCall, ShardCallHandler, ShardCallPort, ShardReply } from '../../src/ports/shard-calls.ts';
import { LIMITS } from '../../src/types/limits.ts';
import { linkCodec } from '../../src/types/records/rows.ts';
import {
  type AddressBook,
  makeCertificates,
  nodeId,
  openCredentials,
  secretSecurity,
  startRpcNode,
} from '../support/coordination/rpc-nodes.ts';
import { openBackground } from '../support/metadata/metadata-workers.ts';
import { createManualClock } from '../support/run/simulated.ts';

const closers: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const GATEWAY = nodeId(1);
const NODE = nodeId(2);

interface Nodes {
  /** Serves as NODE; ends by what it returns, with all connections. */
  serve(handler: ShardCallHandler): Promise<() => Promise<void>>;
  caller(clock: ClockPort): Promise<ShardCallPort>;
}

async function memoryNodes(): Promise<Nodes> {
  const calls = createMemoryCalls();
  return {
    async serve(handler) {
      const leave = calls.serve(NODE, handler);
      return async () => leave();
    },
    async caller(clock) {
      const caller = calls.createCaller(clock);
      closers.push(caller.close);
      return caller;
    },
  };
}

async function rpcNodes(security: 'secret' | 'tls'): Promise<Nodes> {
  const addresses: AddressBook = new Map();
  const certificates = security === 'tls' ? await makeCertificates() : undefined;
  if (certificates !== undefined) closers.push(certificates.remove);
  const credentials = await openCredentials(certificates?.security ?? secretSecurity);
  closers.push(() => credentials.close());
  const start = async (options: { nodeId: string; handler?: ShardCallHandler; clock?: ClockPort }) => {
    const node = await startRpcNode({ ...options, credentials, addresses });
    let ending: Promise<void> | undefined;
    const end = () => {
      ending ??= node.close();
      return ending;
    };
    closers.push(end);
    return { node, end };
  };
  // Ends at once, as one that is killed, instead of waiting for its calls.
  const impatient = { ...systemClock, sleep: async () => undefined };
  return {
    serve: async (handler) => (await start({ nodeId: NODE, handler, clock: impatient })).end,
    caller: async (clock) => (await start({ nodeId: GATEWAY, clock })).node.calls,
  };
}

/** Answers by what the test says, and remembers the calls; its clock stands where the test puts it. */
function createHandler(answer: (call: ShardCall) => Promise<ShardReply> | ShardReply) {
  const calls: ShardCall[] = [];
  const arrivals: (() => void)[] = [];
  const ticketReads: (() => void)[] = [];
  const handler = {
    monotonicMs: 1000,
    calls,
    /** The next call that comes. */
    arrival: () => new Promise<void>((resolve) => arrivals.push(resolve)),
    /** The next time that someone is told where the clock stands. */
    ticketRead: () => new Promise<void>((resolve) => ticketReads.push(resolve)),
    ticket() {
      for (const resolve of ticketReads.splice(0)) resolve();
      return { processId: 'p1', monotonicMs: handler.monotonicMs, wallMs: 0 };
    },
    async handle(call: ShardCall) {
      calls.push(call);
      for (const resolve of arrivals.splice(0)) resolve();
      return answer(call);
    },
  };
  return handler;
}

const done = (value: unknown): ShardReply => ({ kind: 'done', value, timeMs: 5 });
const echo = (call: ShardCall) => done(call.body);
const callOf = (body: unknown): Omit<ShardCall, 'ticket'> => ({
  kind: 'execute',
  envelope: { shard: 3, requestId: 'r1' },
  name: 'create-bucket',
  body,
  budgetMs: 500,
});
const never = () => new AbortController().signal;

type AnyCall = (envelope: Envelope, name: ShardCall['name'], body: unknown) => Promise<ShardReply>;

/** A claim as it is stored. */
function pendingRows(home: number, { blobId, linkId }: LinkName, more: { nonce?: string }) {
  const [link, pending] = [linkRow(blobId, linkId), pendingClaimRow(blobId, linkId)];
  const value = linkCodec.encode({ state: 'pending', shard: 0, ...more });
  return [
    { column: 'rows', key: rowKey(home, link.table, link.key), value },
    { column: 'rows', key: rowKey(home, pending.table, pending.key), value: PRESENT },
  ];
}

/** Calls until the node answers: it may have been gone a moment ago. */
async function callUntilAnswered(caller: ShardCallPort): Promise<ShardReply> {
  for (;;) {
    try {
      return await caller.call(NODE, callOf('again'), never());
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }
}

describe.each([
  ['over memory', memoryNodes],
  ['over gRPC with the secret', () => rpcNodes('secret')],
  ['over gRPC with certificates', () => rpcNodes('tls')],
])('%s', (_name, openNodes) => {
  test('delivers the call unchanged, and the reply back', async () => {
    const nodes = await openNodes();
    const handler = createHandler(echo);
    await nodes.serve(handler);
    const caller = await nodes.caller(createManualClock(0));
    const body = { key: 'k', bytes: Buffer.from([0, 255]), list: [1, null, 2 ** 50], absent: undefined };
    expect(await caller.call(NODE, callOf(body), never())).toEqual(done(body));
    const ticket = { processId: 'p1', monotonicMs: 1000, wallMs: 0 };
    expect(handler.calls).toEqual([{ ...callOf(body), ticket }]);
    const replies: ShardReply[] = [{ kind: 'not-primary', primary: undefined }, { kind: 'too-old' }];
    for (const reply of replies) {
      const other = await openNodes();
      await other.serve(createHandler(() => reply));
      const asked = await other.caller(createManualClock(0));
      expect(await asked.call(NODE, callOf(1), never())).toEqual(reply);
    }
  });

  test('a verdict has the nonce of its claim, even if all of it goes over the wire (R30)', async () => {
    const HOME = 1;
    const { world, run } = await openBackground(2);
    const nodes = await openNodes();
    const here = { execute: world.shards.execute as AnyCall, query: world.shards.query as AnyCall };
    await nodes.serve(
      createHandler(({ kind, envelope, name, body }) =>
        (kind === 'execute' ? here.execute : here.query)(envelope, name, body),
      ),
    );
    const caller = await nodes.caller(createManualClock(0));
    const byWire =
      (kind: ShardCall['kind']): AnyCall =>
      (envelope, name, body) =>
        caller.call(NODE, { kind, envelope, name, body, budgetMs: 500 }, never());
    Object.assign(world.shards, { execute: byWire('execute'), query: byWire('query') });
    const blobId = must(world.newData({ homeShard: HOME }).uses[0], 'one').blobId;
    const links = [1, 2].map(() => ({ blobId, linkId: world.newLinkId() }));
    const [nonces, none] = [{ nonce: 'n' }, {}];
    await world.kv.commit(
      links.flatMap((link, at) => pendingRows(HOME, link, must([nonces, none][at], 'one'))),
    );
    const listed = async () => {
      const { claims } = await world.query('list-pending-claims', { olderThanMs: -1, limit: 9 }, HOME);
      return claims.map(({ linkId, nonce }) => ({ linkId, nonce }));
    };
    const [first, second] = links.map(({ linkId }) => linkId);
    expect(await listed()).toEqual([
      { linkId: first, nonce: 'n' },
      { linkId: second, nonce: undefined },
    ]);
    world.clock.advance(LIMITS.linkIdAgeMaxMs + 1);
    await run('resolve');
    expect(await listed()).toEqual([{ linkId: second, nonce: expect.any(String) }]);
    await run('resolve');
    expect(await listed()).toEqual([]);
  });

  test('answers when replies are ready, not in the order of calls', async () => {
    const nodes = await openNodes();
    const first = Promise.withResolvers<ShardReply>();
    await nodes.serve(createHandler((call) => (call.body === 1 ? first.promise : echo(call))));
    const caller = await nodes.caller(createManualClock(0));
    const slow = caller.call(NODE, callOf(1), never());
    expect(await caller.call(NODE, callOf(2), never())).toEqual(done(2));
    first.resolve(done('late'));
    expect(await slow).toEqual(done('late'));
  });

  test('carries 10,000 calls at once, each with its own reply', async () => {
    const nodes = await openNodes();
    const handler = createHandler(echo);
    await nodes.serve(handler);
    const caller = await nodes.caller(createManualClock(0));
    const replies = await Promise.all(
      Array.from({ length: 10_000 }, (_, index) => caller.call(NODE, callOf(index), never())),
    );
    expect(replies).toEqual(Array.from({ length: 10_000 }, (_, index) => done(index)));
    expect(handler.calls.map((call) => call.body)).toEqual(replies.map((_, index) => index));
  });

  test('carries 16 MiB there and back, beside small calls', async () => {
    const nodes = await openNodes();
    await nodes.serve(createHandler(echo));
    const caller = await nodes.caller(createManualClock(0));
    const body = Buffer.alloc(16 * 1024 * 1024, 'holdfast');
    const [large, small] = await Promise.all([
      caller.call(NODE, callOf(body), never()),
      caller.call(NODE, callOf('small'), never()),
    ]);
    expect(large.kind === 'done' && body.equals(large.value as Buffer)).toBe(true);
    expect(small).toEqual(done('small'));
  });

  test('each reply renews the ticket of the connection (R48)', async () => {
    const nodes = await openNodes();
    const handler = createHandler(echo);
    await nodes.serve(handler);
    const caller = await nodes.caller(createManualClock(0));
    await caller.call(NODE, callOf(1), never());
    handler.monotonicMs = 2000;
    await caller.call(NODE, callOf(2), never());
    await caller.call(NODE, callOf(3), never());
    expect(handler.calls.map((call) => call.ticket.monotonicMs)).toEqual([1000, 1000, 2000]);
  });

  test('a ping each second renews the ticket of an idle connection', async () => {
    const nodes = await openNodes();
    const handler = createHandler(echo);
    await nodes.serve(handler);
    const clock = createManualClock(0);
    const caller = await nodes.caller(clock);
    await caller.call(NODE, callOf(1), never());
    handler.monotonicMs = 5000;
    // The first second has seen a reply, and needs no ping.
    clock.advance(LIMITS.ticketRefreshMs);
    await new Promise((resolve) => setImmediate(resolve));
    const pinged = handler.ticketRead();
    clock.advance(LIMITS.ticketRefreshMs);
    await pinged;
    const ticketOfCall = async () => {
      await caller.call(NODE, callOf(2), never());
      return handler.calls.at(-1)?.ticket.monotonicMs;
    };
    await expect.poll(ticketOfCall, { timeout: 60_000 }).toBe(5000);
  });

  test('rejects when the signal aborts, before and while the call is under way', async () => {
    const nodes = await openNodes();
    const handler = createHandler(() => new Promise<never>(() => undefined));
    await nodes.serve(handler);
    const caller = await nodes.caller(createManualClock(0));
    await expect(caller.call(NODE, callOf(1), AbortSignal.abort())).rejects.toMatchObject({
      name: 'CallBroken',
      wasSent: false,
    });
    const leaving = new AbortController();
    const call = caller.call(NODE, callOf(2), leaving.signal);
    await handler.arrival();
    leaving.abort();
    await expect(call).rejects.toMatchObject({ name: 'CallBroken', wasSent: true });
    expect(handler.calls.map(({ body }) => body)).toEqual([2]);
  });

  test('the outcome of calls under way is unknown when the connection breaks, and none is repeated', async () => {
    const nodes = await openNodes();
    const handler = createHandler((call) =>
      call.body === 'again' ? echo(call) : new Promise(() => undefined),
    );
    const end = await nodes.serve(handler);
    const caller = await nodes.caller(systemClock);
    const calls = [1, 2, 3].map((body) => caller.call(NODE, callOf(body), never()));
    while (handler.calls.length < 3) await handler.arrival();
    const ended = end();
    for (const call of calls) {
      await expect(call).rejects.toMatchObject({ name: 'CallBroken', wasSent: true });
    }
    await ended;
    await nodes.serve(handler);
    expect(await callUntilAnswered(caller)).toEqual(done('again'));
    expect(handler.calls.filter(({ body }) => body !== 'again')).toHaveLength(3);
  });

  test('a node that returns gives a ticket of its own before the first call', async () => {
    const nodes = await openNodes();
    const end = await nodes.serve(createHandler(echo));
    const caller = await nodes.caller(systemClock);
    await caller.call(NODE, callOf(1), never());
    await end();
    const again = createHandler(echo);
    again.ticket = () => ({ processId: 'p2', monotonicMs: 7, wallMs: 0 });
    await nodes.serve(again);
    await callUntilAnswered(caller);
    // Its own, less what the call waited for the connection.
    const ticket = again.calls[0]?.ticket;
    expect(ticket).toMatchObject({ processId: 'p2' });
    const waitedMs = 7 - must(ticket, 'it was called').monotonicMs;
    expect(waitedMs).toBeGreaterThanOrEqual(0);
    expect(waitedMs).toBeLessThan(LIMITS.ticketAgeMaxMs);
    // By both clocks alike.
    expect(ticket?.wallMs).toBeCloseTo(-waitedMs);
  });

  test('to an absent or unknown node nothing was sent', async () => {
    const nodes = await openNodes();
    const caller = await nodes.caller(createManualClock(0));
    const unsent = { name: 'CallBroken', wasSent: false };
    await expect(caller.call(nodeId(9), callOf(1), never())).rejects.toMatchObject(unsent);
    const end = await nodes.serve(createHandler(echo));
    await end();
    await expect(caller.call(NODE, callOf(1), never())).rejects.toMatchObject(unsent);
  });
});
