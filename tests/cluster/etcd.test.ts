// What a cluster sees of an etcd that dies, stands still, comes back with older data, or answers into a cut connection.
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createEtcdCoordinator, type EtcdCoordinator } from '../../src/platform/etcd/etcd-coordinator.ts';
import { systemClock } from '../../src/platform/system-clock.ts';
import type { Member } from '../../src/ports/members.ts';
import type { RegisteredShard } from '../../src/ports/shard-registry.ts';
import { LIMITS } from '../../src/types/limits.ts';
import { startTestEtcd, type TestEtcd } from '../support/cluster/etcd.ts';
import { memberOf, shardRecordOf } from '../support/coordination/coordination-records.ts';
import {
  collect,
  connectToEtcd,
  eventLog,
  type LoggedEvents,
  SHORT_LEASE_MS,
} from '../support/coordination/coordinators.ts';

/** The machine may be busy: what is bounded must end within this beyond its bound, and what is not never does. */
const SLACK_MS = 30_000;

let etcd: TestEtcd;
let connections: EtcdCoordinator[];
let ending: AbortController;

beforeEach(async () => {
  etcd = await startTestEtcd();
  connections = [];
  ending = new AbortController();
});
afterEach(async () => {
  ending.abort();
  for (const connection of connections) connection.close();
  await etcd.stop();
});

function join(holder: string, options: { endpoint?: string; events?: LoggedEvents } = {}): EtcdCoordinator {
  const { endpoint = etcd.endpoint, ...rest } = options;
  const connection = connectToEtcd(endpoint, { holder, ...rest });
  connections.push(connection);
  return connection;
}

function watchShards({ registry }: EtcdCoordinator) {
  const told = collect<{ shard: number } & RegisteredShard>();
  registry.watch((shard, registered) => told.tell({ shard, ...registered }), ending.signal);
  return told;
}

async function timed<T>(promise: Promise<T>): Promise<{ outcome: PromiseSettledResult<T>; ms: number }> {
  const beganMs = performance.now();
  const [outcome] = await Promise.allSettled([promise]);
  return { outcome, ms: performance.now() - beganMs };
}

const epochIs =
  (epoch: number) =>
  ({ record }: RegisteredShard) =>
    record.epoch === epoch;

test('killed and restarted on its data: records stay, and watches, members and swaps continue', async () => {
  const events: LoggedEvents = [];
  const a = join('a');
  const w = join('w', { events });
  const told = watchShards(w);
  const lists = collect<Member[]>();
  w.members.watch(lists.tell, ending.signal);
  void a.members.announce(memberOf('a'), ending.signal);
  await lists.first((members) => members.length === 1);
  const done = await a.registry.swap(1, { expected: 0, record: shardRecordOf(1) });
  const before = await told.first(epochIs(1));

  await etcd.process().kill();
  const away = await Promise.all([
    timed(a.registry.read(1)),
    timed(a.registry.swap(1, { expected: before.revision, record: shardRecordOf(2) })),
  ]);
  for (const { outcome, ms } of away) {
    expect(outcome.status).toBe('rejected');
    expect(ms).toBeLessThan(LIMITS.coordinatorCallMaxMs + SLACK_MS);
  }
  await etcd.restart();

  const after = await a.registry.read(1);
  expect(after).toMatchObject({ record: shardRecordOf(1), revision: before.revision });
  expect(done).toEqual({ kind: 'done', revision: before.revision });
  expect(after?.registryRevision).toBeGreaterThanOrEqual(before.registryRevision);
  expect(await a.registry.swap(1, { expected: before.revision, record: shardRecordOf(3) })).toMatchObject({
    kind: 'done',
  });
  await told.first(epochIs(3));
  await lists.first((members) => members.length === 1 && lists.all.length > 1);
  // Never told that nobody is there, for no better reason than that nobody could be asked.
  expect(
    lists.all.slice(lists.all.findIndex(({ length }) => length === 1)).map(({ length }) => length),
  ).not.toContain(0);
  expect(events).toContainEqual(['warn', 'coordinator-not-followed']);
  expect(events).toContainEqual(['info', 'coordinator-followed-again']);
});

test('stopped: reads and swaps reject within their bound, locks are lost, and everything continues afterwards', async () => {
  const a = join('a');
  const told = watchShards(join('w'));
  const lock = await a.jobLocks.acquire('scrub', ending.signal);
  await a.registry.swap(1, { expected: 0, record: shardRecordOf(1) });
  const { revision } = await told.first(epochIs(1));
  const lost = once(lock.lost, 'abort');

  etcd.process().signal('SIGSTOP');
  const stoppedMs = performance.now();
  const calls = await Promise.all([
    timed(a.registry.read(1)),
    timed(a.registry.swap(1, { expected: revision, record: shardRecordOf(2) })),
    timed(a.members.current()),
    timed(a.identity.read()),
  ]);
  for (const { outcome, ms } of calls) {
    expect(outcome.status).toBe('rejected');
    expect(ms).toBeLessThan(LIMITS.coordinatorCallMaxMs + SLACK_MS);
  }
  await lost;
  expect(performance.now() - stoppedMs).toBeLessThan(SHORT_LEASE_MS + SLACK_MS);
  etcd.process().signal('SIGCONT');

  // The swap may be done only now, or never: who reads until it is known goes on from there.
  const next = await readAgain(a);
  expect([1, 2]).toContain(next.record.epoch);
  await swapAgain(a, { expected: next.revision, epoch: 3 });
  await told.first(epochIs(3));
  const second = await join('b').jobLocks.acquire('scrub', ending.signal);
  expect(second.token).toBeGreaterThan(lock.token);
  await second.release();
});

/** As the engine does: what is not known is read. */
async function readAgain({ registry }: EtcdCoordinator): Promise<RegisteredShard> {
  for (let left = 20; ; left--) {
    try {
      const found = await registry.read(1);
      if (found !== undefined) return found;
    } catch (error) {
      if (left === 0) throw error;
    }
    await systemClock.sleep(100);
  }
}

async function swapAgain(
  coordinator: EtcdCoordinator,
  { expected, epoch }: { expected: number; epoch: number },
): Promise<void> {
  let revision = expected;
  for (let left = 20; left > 0; left--) {
    const record = shardRecordOf(epoch);
    const done = await coordinator.registry.swap(1, { expected: revision, record }).catch(() => undefined);
    if (done?.kind === 'done') return;
    const found = await readAgain(coordinator);
    if (found.record.nonce === record.nonce) return;
    revision = found.revision;
  }
  throw new Error('no swap was done');
}

test('restored from an older copy of its data: the revision is lower, and watches report the older record', async () => {
  const a = join('a');
  const told = watchShards(join('w'));
  await a.registry.swap(1, { expected: 0, record: shardRecordOf(1) });
  const first = await told.first(epochIs(1));
  await etcd.process().stop();
  await etcd.copyData();
  await etcd.restart();
  await swapAgain(a, { expected: first.revision, epoch: 2 });
  const second = await told.first(epochIs(2));
  await etcd.process().stop();
  await etcd.restoreData();
  const toldBefore = told.all.length;
  await etcd.restart();

  const after = await readAgain(a);
  expect(after).toMatchObject({ record: { epoch: 1 }, revision: first.revision });
  expect(after.registryRevision).toBeLessThan(second.registryRevision);
  const again = await told.first((one) => told.all.indexOf(one) >= toldBefore);
  expect(again).toMatchObject({ record: { epoch: 1 }, revision: first.revision });
  expect(again.registryRevision).toBeLessThan(second.registryRevision);
});

test('away for longer than all leases: members return, and waiters get their turn', async () => {
  const a = join('a');
  const lists = collect<Member[]>();
  const w = join('w');
  w.members.watch(lists.tell, ending.signal);
  void a.members.announce(memberOf('a'), ending.signal);
  await lists.first((members) => members.length === 1);
  const lock = await a.jobLocks.acquire('scrub', ending.signal);
  const waiting = w.jobLocks.acquire('scrub', ending.signal);
  await etcd.process().stop();
  await systemClock.sleep(2 * SHORT_LEASE_MS);
  expect(lock.lost.aborted).toBe(true);
  await etcd.restart();
  const next = await waiting;
  expect(next.token).toBeGreaterThan(lock.token);
  const told = lists.all.length;
  await lists.first((members) => lists.all.length > told || members.length === 1);
  while ((await w.members.current().catch(() => [])).length !== 1) await systemClock.sleep(100);
  await lock.release();
  await next.release();
});

describe('behind a connection that breaks', () => {
  let proxy: Server;
  let sockets: Set<Socket>;
  /** What becomes of etcd's answers. */
  let answers: 'pass' | 'swallow' | 'cut';
  let endpoint: string;

  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };

  beforeEach(async () => {
    sockets = new Set();
    answers = 'pass';
    proxy = createServer((client) => {
      const server = connect({ host: '127.0.0.1', port: Number(new URL(etcd.endpoint).port) });
      for (const [from, to] of [
        [client, server],
        [server, client],
      ] as const) {
        sockets.add(from);
        from.on('error', () => to.destroy());
        from.on('close', () => to.destroy());
      }
      client.on('data', (bytes) => server.write(bytes));
      server.on('data', (bytes) => {
        if (answers === 'pass') client.write(bytes);
        else if (answers === 'cut') cut();
      });
    });
    proxy.listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    endpoint = `http://127.0.0.1:${(proxy.address() as { port: number }).port}`;
  });
  afterEach(() => {
    cut();
    proxy.close();
  });

  test('a swap whose answer is cut off rejects: it is not repeated, and not taken for lost (L6)', async () => {
    const near = join('near');
    const far = join('far', { endpoint });
    expect(await far.registry.read(1)).toBeUndefined();
    const told = watchShards(near);
    // Not at its first bytes: those may be HTTP/2's own, and a request whose connection ends before it is done may not be.
    answers = 'swallow';
    const swap = expect(far.registry.swap(1, { expected: 0, record: shardRecordOf(1) })).rejects.toThrow();
    await told.first(epochIs(1));
    answers = 'pass';
    cut();
    await swap;
    // Done there; once.
    const found = await near.registry.read(1);
    expect(found?.record).toEqual(shardRecordOf(1));
    expect(found?.registryRevision).toBe(found?.revision);
    expect((await readAgain(far)).record).toEqual(shardRecordOf(1));
  });

  test('a watch continues over a broken connection, with the missed changes', async () => {
    const near = join('near');
    const told = watchShards(join('far', { endpoint }));
    await near.registry.swap(1, { expected: 0, record: shardRecordOf(1) });
    const { revision } = await told.first(epochIs(1));
    answers = 'cut';
    cut();
    await swapAgain(near, { expected: revision, epoch: 2 });
    await systemClock.sleep(300);
    answers = 'pass';
    await told.first(epochIs(2));
  });
});

test('with one of several servers gone, reads continue at the others, and so do swaps after one failure', async () => {
  const dead = createServer();
  dead.listen(0, '127.0.0.1');
  await once(dead, 'listening');
  const { port } = dead.address() as { port: number };
  dead.close();
  const a = createEtcdCoordinator(
    { endpoints: [`http://127.0.0.1:${port}`, etcd.endpoint] },
    { holder: 'a', clock: systemClock, log: eventLog() },
  );
  connections.push(a);
  await expect(a.registry.swap(1, { expected: 0, record: shardRecordOf(1) })).rejects.toThrow();
  expect(await a.registry.swap(1, { expected: 0, record: shardRecordOf(1) })).toMatchObject({ kind: 'done' });
  for (const _ of [1, 2, 3]) expect((await a.registry.read(1))?.record).toEqual(shardRecordOf(1));
});
