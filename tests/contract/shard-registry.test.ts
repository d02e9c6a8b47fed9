// What every ShardRegistryPort promises (src/ports/shard-registry.ts).
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Coordination } from '../../src/ports/coordination.ts';
import type { RegisteredShard } from '../../src/ports/shard-registry.ts';
import { shardRecordOf } from '../support/coordination/coordination-records.ts';
import { COORDINATORS, collect, useCluster } from '../support/coordination/coordinators.ts';

describe.each(COORDINATORS)('%s', (_name, openAll) => {
  const cluster = useCluster(openAll);
  let here: Coordination['registry'];
  let there: Coordination['registry'];
  let ending: AbortController;

  beforeEach(() => {
    here = cluster.connect('here').registry;
    there = cluster.connect('there').registry;
    ending = new AbortController();
  });
  afterEach(() => {
    ending.abort();
  });

  const watched = () => {
    const told = collect<{ shard: number } & RegisteredShard>();
    here.watch((shard, registered) => told.tell({ shard, ...registered }), ending.signal);
    return told;
  };

  test('every reader sees a written record at once', async () => {
    expect(await here.read(7)).toBeUndefined();
    const record = shardRecordOf(3, {
      prevVoters: [{ replicaId: 'r-old', nodeId: 'n-old' }],
      learners: [{ replicaId: 'r-new', nodeId: 'n-new' }],
      rebuiltAtMs: 1_700_000_000_000,
      recoveredFrom: 'r-old',
    });
    const done = await here.swap(7, { expected: 0, record });
    const found = await there.read(7);
    expect(found?.record).toEqual(record);
    expect(done).toEqual({ kind: 'done', revision: found?.revision });
    expect(await there.read(70)).toBeUndefined();
  });

  test('a shard that was never opened has no primary', async () => {
    await here.swap(0, { expected: 0, record: shardRecordOf(0, { primary: null }) });
    expect((await here.read(0))?.record.primary).toBeNull();
  });

  test('of swaps with the same expected revision one wins, of the first ones too', async () => {
    let expected = 0;
    for (const round of [1, 2, 3]) {
      const records = Array.from({ length: 8 }, (_, index) =>
        shardRecordOf(round, { nonce: `${round}-${index}` }),
      );
      const outcomes = await Promise.all(
        records.map((record, index) => (index % 2 === 0 ? here : there).swap(1, { expected, record })),
      );
      const winners = outcomes.flatMap((outcome, index) =>
        outcome.kind === 'done' ? [{ ...outcome, record: records[index] }] : [],
      );
      expect(winners).toHaveLength(1);
      expect(await here.read(1)).toMatchObject({
        record: winners[0]?.record,
        revision: winners[0]?.revision,
      });
      expected = winners[0]?.revision ?? -1;
    }
  });

  test('a swap that expects another revision changes nothing', async () => {
    const record = shardRecordOf(1);
    expect(await here.swap(2, { expected: 5, record })).toEqual({ kind: 'lost' });
    expect(await here.read(2)).toBeUndefined();
    const done = await here.swap(2, { expected: 0, record });
    const revision = done.kind === 'done' ? done.revision : -1;
    for (const expected of [0, revision - 1, revision + 1])
      expect(await there.swap(2, { expected, record: shardRecordOf(2) })).toEqual({ kind: 'lost' });
    expect((await here.read(2))?.record).toEqual(record);
  });

  test('the registry revision grows with every change, of other shards too', async () => {
    await here.swap(1, { expected: 0, record: shardRecordOf(1) });
    const before = await here.read(1);
    await there.swap(2, { expected: 0, record: shardRecordOf(1) });
    const after = await here.read(1);
    expect(after?.revision).toBe(before?.revision);
    expect(after?.registryRevision).toBeGreaterThan(before?.registryRevision ?? Number.POSITIVE_INFINITY);
    expect(before?.registryRevision).toBeGreaterThanOrEqual(before?.revision ?? Number.POSITIVE_INFINITY);
  });

  test('a watch reports the present records, then each change with its revision', async () => {
    await there.swap(4, { expected: 0, record: shardRecordOf(1) });
    const told = watched();
    const first = await told.first(({ shard }) => shard === 4);
    expect(first.record).toEqual(shardRecordOf(1));
    await there.swap(4, { expected: first.revision, record: shardRecordOf(2) });
    await there.swap(11, { expected: 0, record: shardRecordOf(1) });
    const second = await told.first(({ shard, record }) => shard === 4 && record.epoch === 2);
    expect((await here.read(4))?.revision).toBe(second.revision);
    expect((await told.first(({ shard }) => shard === 11)).registryRevision).toBeGreaterThan(second.revision);
  });

  test('a watch ends with its signal', async () => {
    const told = watched();
    await there.swap(1, { expected: 0, record: shardRecordOf(1) });
    await told.first(({ shard }) => shard === 1);
    ending.abort();
    ending = new AbortController();
    const count = told.all.length;
    const others = watched();
    await there.swap(2, { expected: 0, record: shardRecordOf(1) });
    await others.first(({ shard }) => shard === 2);
    expect(told.all).toHaveLength(count);
  });
});
