// The faults that the memory coordinator can be given, and what the ports of coordination make of them, on a clock that
// moves when told. The contracts themselves are tests/contract.
import { describe, expect, test } from 'vitest';
import { collect, eventLog } from '../../tests/support/coordinators.ts';
import { shardRecordOf } from '../../tests/support/shard-records.ts';
import { createManualClock, type ManualClock } from '../../tests/support/simulated.ts';
import { LIMITS } from '../model/limits.ts';
import type { ClusterIdentity } from '../ports/cluster-identity.ts';
import type { Member } from '../ports/members.ts';
import type { RegisteredShard } from '../ports/shard-registry.ts';
import { type CoordinatorMessage, createMemoryCoordinator, type MessageFate } from './memory-coordinator.ts';

const LEASE_MS = 10_000;
const STEP_MS = 50;

/** A coordinator whose messages meet what `fates` says, the first that says something. */
function startWorld() {
  const clock = createManualClock(0);
  const fates: ((message: CoordinatorMessage) => MessageFate | undefined)[] = [];
  const fate = (message: CoordinatorMessage) => {
    for (const one of fates) {
      const what = one(message);
      if (what !== undefined) return what;
    }
    return 0;
  };
  const coordinator = createMemoryCoordinator({
    clock,
    log: eventLog(),
    memberLeaseMs: LEASE_MS,
    jobLeaseMs: LEASE_MS,
    fate,
  });
  const over = new AbortController();
  return { clock, coordinator, over, fates, connect: coordinator.connect };
}

/** Lets time go by in steps, and everything that is ready run between them. */
async function pass(clock: ManualClock, ms: number): Promise<void> {
  for (let leftMs = ms; leftMs >= 0; leftMs -= STEP_MS) {
    await new Promise((resolve) => setImmediate(resolve));
    if (leftMs > 0) clock.advance(Math.min(STEP_MS, leftMs));
  }
}

/** How a promise has ended by now. */
function outcomeOf<T>(promise: Promise<T>): { value?: T; error?: Error } {
  const outcome: { value?: T; error?: Error } = {};
  promise.then(
    (value) => {
      outcome.value = value;
    },
    (error: Error) => {
      outcome.error = error;
    },
  );
  return outcome;
}

const memberOf = (nodeId: string): Member => ({
  nodeId,
  role: 'metadata',
  address: '127.0.0.1:7001',
  zone: 'z1',
  version: '1',
  disks: [],
});

const IDENTITY: ClusterIdentity = {
  clusterId: 'c1',
  shardCount: 64,
  replicaCount: 3,
  chunkCopies: 3,
  masterKeyId: 'k1',
  formatVersion: 1,
};

describe('reads and swaps', () => {
  test('a coordinator that refuses is told at once; one that is silent, within the bound of a call', async () => {
    const { clock, fates, connect } = startWorld();
    const { registry } = connect('a');
    fates.push(() => 'refused');
    await expect(registry.read(1)).rejects.toThrow('is away');
    fates.unshift(() => 'lost');
    const calls = [
      outcomeOf(registry.read(1)),
      outcomeOf(registry.swap(1, { expected: 0, record: shardRecordOf(1) })),
    ];
    await pass(clock, LIMITS.coordinatorCallMaxMs - STEP_MS);
    expect(calls).toEqual([{}, {}]);
    await pass(clock, STEP_MS);
    for (const { error } of calls) expect(error?.message).toContain('did not answer in time');
  });

  test('a process that is cut off does not keep the others from going on', async () => {
    const { fates, connect } = startWorld();
    fates.push(({ by }) => (by === 'a' ? 'refused' : undefined));
    await expect(connect('a').registry.read(1)).rejects.toThrow();
    expect(await connect('b').registry.read(1)).toBeUndefined();
  });

  test('a swap whose answer is lost rejects, and was done: it is known by its nonce (R2)', async () => {
    const { clock, fates, connect } = startWorld();
    const { registry } = connect('a');
    fates.push(({ kind, of }) => (kind === 'answer' && of === 'put' ? 'lost' : undefined));
    const swap = outcomeOf(registry.swap(1, { expected: 0, record: shardRecordOf(1) }));
    await pass(clock, LIMITS.coordinatorCallMaxMs);
    expect(swap.error).toBeDefined();
    expect((await registry.read(1))?.record.nonce).toBe(shardRecordOf(1).nonce);
  });

  test.each([
    ['lands when nobody has written meanwhile', false, 1],
    ['is lost when somebody has', true, 2],
  ])('a late swap %s', async (_name, isOvertaken, epoch) => {
    const { clock, fates, connect } = startWorld();
    const { registry } = connect('a');
    fates.push(({ by, kind, of }) => (by === 'a' && kind === 'call' && of === 'put' ? 5000 : undefined));
    const swap = outcomeOf(registry.swap(1, { expected: 0, record: shardRecordOf(1) }));
    await pass(clock, LIMITS.coordinatorCallMaxMs);
    expect(swap.error).toBeDefined();
    expect(await registry.read(1)).toBeUndefined();
    if (isOvertaken) await connect('b').registry.swap(1, { expected: 0, record: shardRecordOf(2) });
    await pass(clock, 5000);
    expect((await registry.read(1))?.record.epoch).toBe(epoch);
  });

  test('the same faults give the same history', async () => {
    const run = async () => {
      const { clock, fates, connect, coordinator, over } = startWorld();
      let count = 0;
      fates.push(() => (++count % 7 === 0 ? 'lost' : (count * 37) % 900));
      const told: string[] = [];
      connect('w').registry.watch((shard, { revision }) => told.push(`${shard}@${revision}`), over.signal);
      void connect('m').members.announce(memberOf('m'), over.signal);
      for (const epoch of [1, 2, 3, 4, 5, 6]) {
        const { registry } = connect('a');
        outcomeOf(registry.swap(epoch % 2, { expected: 0, record: shardRecordOf(epoch) }));
        await pass(clock, 3000);
      }
      over.abort();
      return { told, revision: coordinator.revision(), rows: [...coordinator.rows()] };
    };
    const first = await run();
    expect(first.told.length).toBeGreaterThan(2);
    expect(await run()).toEqual(first);
  });

  test('the answer to the making of a cluster may be lost', async () => {
    const { clock, fates, connect } = startWorld();
    fates.push(({ kind, of }) => (kind === 'answer' && of === 'put' ? 'lost' : undefined));
    const made = outcomeOf(
      connect('a')
        .identity.init(IDENTITY)
        .then(() => 'made'),
    );
    await pass(clock, LIMITS.coordinatorCallMaxMs);
    expect(made).toEqual({ value: 'made' });
  });

  test('a making of which nothing is known is no success', async () => {
    const { clock, fates, connect } = startWorld();
    fates.push(({ of }) => (of === 'put' ? 'lost' : undefined));
    const made = outcomeOf(connect('a').identity.init(IDENTITY));
    await pass(clock, LIMITS.coordinatorCallMaxMs);
    expect(made.error?.message).toContain('not known');
  });
});

describe('watches', () => {
  const startWatch = () => {
    const world = startWorld();
    const told = collect<{ shard: number } & RegisteredShard>();
    world
      .connect('w')
      .registry.watch((shard, registered) => told.tell({ shard, ...registered }), world.over.signal);
    const revisions = () => told.all.map(({ revision }) => revision);
    return { ...world, told, revisions, writer: world.connect('a').registry };
  };

  test('one that falls silent is noticed when all is read again', async () => {
    const { clock, fates, over, revisions, writer } = startWatch();
    await pass(clock, 0);
    fates.push(({ kind }) => (kind === 'event' ? 'lost' : undefined));
    await writer.swap(1, { expected: 0, record: shardRecordOf(1) });
    await pass(clock, LIMITS.coordinatorRereadMs - STEP_MS);
    expect(revisions()).toEqual([]);
    await pass(clock, 2 * STEP_MS);
    expect(revisions()).toEqual([2]);
    over.abort();
  });

  test('one that ends with an error goes on with what was missed (L8)', async () => {
    const { clock, coordinator, fates, over, revisions, writer } = startWatch();
    await pass(clock, 0);
    let isAway = true;
    fates.push(({ by }) => (by === 'w' && isAway ? 'refused' : undefined));
    coordinator.endWatches('w');
    await writer.swap(1, { expected: 0, record: shardRecordOf(1) });
    await pass(clock, 60_000);
    expect(revisions()).toEqual([]);
    isAway = false;
    await pass(clock, LIMITS.coordinatorRetryMaxMs);
    expect(revisions()).toEqual([2]);
    await writer.swap(2, { expected: 0, record: shardRecordOf(1) });
    await pass(clock, 0);
    expect(revisions()).toEqual([2, 3]);
    over.abort();
  });

  test('a coordinator that was set back tells the older record, at a lower revision (R23)', async () => {
    const { clock, coordinator, over, told, writer } = startWatch();
    await writer.swap(1, { expected: 0, record: shardRecordOf(1) });
    const copy = coordinator.copy();
    await writer.swap(1, { expected: 2, record: shardRecordOf(2) });
    await writer.swap(2, { expected: 0, record: shardRecordOf(1) });
    await pass(clock, 0);
    expect(await writer.read(1)).toMatchObject({ revision: 3, registryRevision: 4 });
    coordinator.restore(copy);
    expect(await writer.read(1)).toMatchObject({
      record: { epoch: 1 },
      revision: 2,
      registryRevision: 2,
    });
    expect(await writer.read(2)).toBeUndefined();
    await pass(clock, LIMITS.coordinatorRetryMaxMs);
    expect(told.all.at(-1)).toMatchObject({ shard: 1, revision: 2, registryRevision: 2 });
    over.abort();
  });
});

describe('members', () => {
  test('a member that cannot reach the coordinator goes with its lease, and comes back', async () => {
    const { clock, fates, connect, over } = startWorld();
    let isAway = false;
    fates.push(({ by }) => (by === 'm' && isAway ? 'lost' : undefined));
    const lists: string[] = [];
    connect('w').members.watch(
      (members) => lists.push(members.map(({ nodeId }) => nodeId).join()),
      over.signal,
    );
    await pass(clock, 0);
    void connect('m').members.announce(memberOf('m'), over.signal);
    await pass(clock, 5 * LEASE_MS);
    expect(lists).toEqual(['', 'm', 'm']);
    isAway = true;
    await pass(clock, LEASE_MS + STEP_MS);
    expect(lists.at(-1)).toBe('');
    isAway = false;
    await pass(clock, LIMITS.coordinatorCallMaxMs + LIMITS.coordinatorRetryMaxMs);
    expect(lists.at(-1)).toBe('m');
    over.abort();
  });

  test('a lease that was lost is replaced before its row would go', async () => {
    const { clock, fates, connect, over } = startWorld();
    fates.push(({ of }) => (of === 'keep' ? 'lost' : undefined));
    const lists: number[] = [];
    void connect('m').members.announce(memberOf('m'), over.signal);
    await pass(clock, 0);
    connect('w').members.watch((members) => lists.push(members.length), over.signal);
    await pass(clock, 5 * LEASE_MS);
    expect(lists.length).toBeGreaterThan(5);
    expect(lists).not.toContain(0);
    over.abort();
  });

  test('with the coordinator away the last list stays', async () => {
    const { clock, fates, connect, coordinator, over } = startWorld();
    void connect('m').members.announce(memberOf('m'), over.signal);
    await pass(clock, 0);
    const lists: number[] = [];
    connect('w').members.watch((members) => lists.push(members.length), over.signal);
    await pass(clock, 0);
    fates.push(({ by }) => (by === 'w' ? 'refused' : undefined));
    coordinator.endWatches();
    await pass(clock, 10 * 60_000);
    expect(lists).toEqual([1]);
    over.abort();
  });

  test.each([
    ['by hand', 'remove'],
    ['by setting the coordinator back', 'restore'],
  ])('a member that was removed %s is there again soon', async (_name, how) => {
    const { clock, connect, coordinator, over } = startWorld();
    const empty = coordinator.copy();
    void connect('m').members.announce(memberOf('m'), over.signal);
    await pass(clock, 0);
    if (how === 'remove') coordinator.remove('node/m');
    else coordinator.restore(empty);
    const { members } = connect('w');
    expect(await members.current()).toEqual([]);
    await pass(clock, LEASE_MS);
    expect(await members.current()).toEqual([memberOf('m')]);
    over.abort();
  });
});

describe('job locks', () => {
  test('a holder that is cut off knows before the next one is let in', async () => {
    const { clock, fates, connect, over } = startWorld();
    const first = await connect('a').jobLocks.acquire('scrub', over.signal);
    const next = outcomeOf(connect('b').jobLocks.acquire('scrub', over.signal));
    await pass(clock, 3 * LEASE_MS);
    expect({ isLost: first.lost.aborted, next: next.value }).toEqual({ isLost: false, next: undefined });
    fates.push(({ by }) => (by === 'a' ? 'lost' : undefined));
    const cutAtMs = clock.monotonicMs();
    let lostAtMs = Number.POSITIVE_INFINITY;
    first.lost.addEventListener('abort', () => {
      lostAtMs = clock.monotonicMs();
    });
    while (next.value === undefined && clock.monotonicMs() < cutAtMs + 2 * LEASE_MS)
      await pass(clock, STEP_MS);
    expect(lostAtMs).toBeLessThan(clock.monotonicMs());
    expect(lostAtMs).toBeLessThanOrEqual(cutAtMs + LEASE_MS);
    expect(next.value?.token).toBeGreaterThan(first.token);
    over.abort();
  });

  test('a lease is counted from when its renewal was sent, not from the answer (L5)', async () => {
    const { clock, fates, connect, coordinator, over } = startWorld();
    const lock = await connect('a').jobLocks.acquire('scrub', over.signal);
    let lastSentMs = 0;
    let renewalCount = 0;
    // Answers of renewals are slow, and then there are none.
    fates.push(({ kind, of }) => {
      if (of !== 'keep') return undefined;
      if (renewalCount >= 2) return 'lost';
      if (kind === 'call') {
        lastSentMs = clock.monotonicMs();
        return 0;
      }
      renewalCount++;
      return LIMITS.coordinatorCallMaxMs - STEP_MS;
    });
    while (!lock.lost.aborted && clock.monotonicMs() < 10 * LEASE_MS) await pass(clock, STEP_MS);
    expect(renewalCount).toBe(2);
    expect(clock.monotonicMs()).toBeLessThan(lastSentMs + LEASE_MS);
    expect(coordinator.rows().size).toBe(1);
    over.abort();
  });

  test.each([
    ['by hand', 'remove'],
    ['by setting the coordinator back', 'restore'],
  ])('a lock that was removed %s is lost', async (_name, how) => {
    const { clock, connect, coordinator, over } = startWorld();
    const empty = coordinator.copy();
    const lock = await connect('a').jobLocks.acquire('scrub', over.signal);
    await pass(clock, 0);
    const key = [...coordinator.rows().keys()].find((name) => name.startsWith('job/')) ?? '';
    if (how === 'remove') coordinator.remove(key);
    else coordinator.restore(empty);
    await pass(clock, LIMITS.coordinatorRetryMaxMs);
    expect(lock.lost.aborted).toBe(true);
    over.abort();
  });

  test('a waiter whose place is gone queues again, and leaves nothing behind', async () => {
    const { clock, connect, coordinator, over } = startWorld();
    const first = await connect('a').jobLocks.acquire('scrub', over.signal);
    const waiting = outcomeOf(connect('b').jobLocks.acquire('scrub', over.signal));
    await pass(clock, 0);
    const places = () => [...coordinator.rows().keys()].filter((name) => name.startsWith('job/'));
    expect(places()).toHaveLength(2);
    coordinator.remove(places().at(-1) ?? '');
    await pass(clock, 100);
    expect(places()).toHaveLength(2);
    await first.release();
    await pass(clock, 0);
    expect(waiting.value?.token).toBeGreaterThan(first.token);
    await waiting.value?.release();
    expect(places()).toEqual([]);
    over.abort();
  });

  test('a place whose answer was lost is used all the same', async () => {
    const { clock, fates, connect, over } = startWorld();
    let lostCount = 0;
    fates.push(({ kind, of }) =>
      kind === 'answer' && of === 'put' && lostCount++ === 0 ? 'lost' : undefined,
    );
    const lock = outcomeOf(connect('a').jobLocks.acquire('scrub', over.signal));
    await pass(clock, 2 * LIMITS.coordinatorCallMaxMs);
    expect(lostCount).toBe(2);
    expect(lock.value?.token).toBe(2);
    over.abort();
  });

  test('a lock that cannot be given back is free when its lease ends', async () => {
    const { clock, fates, connect, over } = startWorld();
    const first = await connect('a').jobLocks.acquire('scrub', over.signal);
    fates.push(({ by }) => (by === 'a' ? 'lost' : undefined));
    const released = outcomeOf(first.release().then(() => 'released'));
    const next = outcomeOf(connect('b').jobLocks.acquire('scrub', over.signal));
    await pass(clock, LIMITS.coordinatorCallMaxMs);
    expect({ ...released, next: next.value }).toEqual({ value: 'released', next: undefined });
    await pass(clock, LEASE_MS);
    expect(next.value?.token).toBeGreaterThan(first.token);
    over.abort();
  });
});
