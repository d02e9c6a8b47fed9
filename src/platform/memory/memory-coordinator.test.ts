// The faults that the memory coordinator can be given, and what registry, identity and watches make of them. The
// contracts themselves are tests/contract.
import { describe, expect, test } from 'vitest';
import { memberOf, shardRecordOf } from '../../../tests/support/coordination/coordination-records.ts';
import {
  outcomeOf,
  pass,
  STEP_MS,
  startCoordinatorWorld,
} from '../../../tests/support/coordination/coordinator-world.ts';
import { collect } from '../../../tests/support/coordination/coordinators.ts';
import type { ClusterIdentity } from '../../ports/cluster-identity.ts';
import type { RegisteredShard } from '../../ports/shard-registry.ts';
import { LIMITS } from '../../types/limits.ts';

const IDENTITY: ClusterIdentity = {
  clusterId: 'c1',
  shardCount: 64,
  replicaCount: 3,
  chunkCopies: 3,
  masterKeyId: 'k1',
  formatVersion: 1,
};

describe('reads and swaps', () => {
  test('a refusing coordinator rejects at once; a silent one within the bound of a call', async () => {
    const { clock, fates, connect } = startCoordinatorWorld();
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

  test('a process that is cut off does not stop the others', async () => {
    const { fates, connect } = startCoordinatorWorld();
    fates.push(({ by }) => (by === 'a' ? 'refused' : undefined));
    await expect(connect('a').registry.read(1)).rejects.toThrow();
    expect(await connect('b').registry.read(1)).toBeUndefined();
  });

  test('a swap whose answer is lost rejects, though it was done: its nonce shows that (R2)', async () => {
    const { clock, fates, connect } = startCoordinatorWorld();
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
    const { clock, fates, connect } = startCoordinatorWorld();
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
      const { clock, fates, connect, coordinator, ending } = startCoordinatorWorld();
      let count = 0;
      fates.push(() => (++count % 7 === 0 ? 'lost' : (count * 37) % 900));
      const told: string[] = [];
      connect('w').registry.watch((shard, { revision }) => told.push(`${shard}@${revision}`), ending.signal);
      void connect('m').members.announce(memberOf('m'), ending.signal);
      for (const epoch of [1, 2, 3, 4, 5, 6]) {
        const { registry } = connect('a');
        outcomeOf(registry.swap(epoch % 2, { expected: 0, record: shardRecordOf(epoch) }));
        await pass(clock, 3000);
      }
      ending.abort();
      return { told, revision: coordinator.revision(), rows: [...coordinator.rows()] };
    };
    const first = await run();
    expect(first.told.length).toBeGreaterThan(2);
    expect(await run()).toEqual(first);
  });

  test('the answer to the creation of a cluster may be lost', async () => {
    const { clock, fates, connect } = startCoordinatorWorld();
    fates.push(({ kind, of }) => (kind === 'answer' && of === 'put' ? 'lost' : undefined));
    const made = outcomeOf(
      connect('a')
        .identity.init(IDENTITY)
        .then(() => 'made'),
    );
    await pass(clock, LIMITS.coordinatorCallMaxMs);
    expect(made).toEqual({ value: 'made' });
  });

  test('a creation with an unknown outcome is no success', async () => {
    const { clock, fates, connect } = startCoordinatorWorld();
    fates.push(({ of }) => (of === 'put' ? 'lost' : undefined));
    const made = outcomeOf(connect('a').identity.init(IDENTITY));
    await pass(clock, LIMITS.coordinatorCallMaxMs);
    expect(made.error?.message).toContain('not known');
  });
});

describe('watches', () => {
  const startWatch = () => {
    const world = startCoordinatorWorld();
    const told = collect<{ shard: number } & RegisteredShard>();
    world
      .connect('w')
      .registry.watch((shard, registered) => told.tell({ shard, ...registered }), world.ending.signal);
    const revisions = () => told.all.map(({ revision }) => revision);
    return { ...world, told, revisions, writer: world.connect('a').registry };
  };

  test('a watch that falls silent is noticed at the next full read', async () => {
    const { clock, fates, ending, revisions, writer } = startWatch();
    await pass(clock, 0);
    fates.push(({ kind }) => (kind === 'event' ? 'lost' : undefined));
    await writer.swap(1, { expected: 0, record: shardRecordOf(1) });
    await pass(clock, LIMITS.coordinatorRereadMs - STEP_MS);
    expect(revisions()).toEqual([]);
    await pass(clock, 2 * STEP_MS);
    expect(revisions()).toEqual([2]);
    ending.abort();
  });

  test('a watch that ends with an error continues with what was missed (L8)', async () => {
    const { clock, coordinator, fates, ending, revisions, writer } = startWatch();
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
    ending.abort();
  });

  test('a coordinator that was set back returns the older record, at a lower revision (R23)', async () => {
    const { clock, coordinator, ending, told, writer } = startWatch();
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
    ending.abort();
  });
});
