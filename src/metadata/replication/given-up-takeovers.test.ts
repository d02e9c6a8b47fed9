import { expect, test } from 'vitest';
import { openShardCluster } from '../../../tests/support/metadata/shard-cluster.ts';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import { SILENCE_MS } from '../engine/timing.ts';
import { GivenUpTakeovers } from './given-up-takeovers.ts';

const MINUTE = 60_000;

test('they are logged once a minute, with the number of those left out', () => {
  const lines: object[] = [];
  const clock = createManualClock(0);
  const nothing = () => {};
  const info = (fields: object, event: string) => void lines.push({ ...fields, event });
  const takeovers = new GivenUpTakeovers({
    shard: 3,
    clock,
    logger: { debug: nothing, info, warn: nothing, error: nothing },
  });
  // Who is not let takes none.
  takeovers.note(0, 'no majority agrees');
  const why = 'no majority is fenced';
  for (let epoch = 1; epoch <= 120; epoch++) {
    takeovers.note(epoch, why);
    clock.advance(1000);
  }
  clock.advance(MINUTE);
  takeovers.note(121, 'another leads');
  const event = 'takeover-given-up';
  expect(lines).toEqual([
    { shard: 3, epoch: 1, why, event },
    { shard: 3, epoch: 61, why, omittedCount: 59, event },
    { shard: 3, epoch: 121, why: 'another leads', omittedCount: 59, event },
  ]);
});

test('an epoch that was taken and given up is logged with shard, epoch and reason', async () => {
  const cluster = await openShardCluster({ nodeCount: 3 });
  const { registry } = cluster;
  const { swap } = registry;
  const isCut = { next: true };
  // A candidate with an epoch receives nothing from then on.
  registry.swap = async (shard, change) => {
    const swapped = await swap(shard, change);
    const taker = cluster.nodes.findIndex(({ ref }) => ref.replicaId === change.record.primary?.replicaId);
    if (isCut.next) for (const other of [0, 1, 2]) if (other !== taker) cluster.cut(taker, other);
    return swapped;
  };
  for (const index of [0, 1, 2]) await cluster.start(index);
  const given = () => cluster.logged.filter(({ event }) => event === 'takeover-given-up');
  await cluster.until('an epoch is given up', () => given()[0]);
  expect(given()[0]?.fields).toEqual({ shard: 0, epoch: 1, why: 'no majority is fenced' });
  isCut.next = false;
  cluster.heal();
  await cluster.primary();
  const sentCount = given().length;
  await cluster.run(2 * SILENCE_MS);
  expect(given()).toHaveLength(sentCount);
});

test('a takeover that another primary cuts short is logged as that', async () => {
  const cluster = await openShardCluster({ nodeCount: 3 });
  const { registry } = cluster;
  const { swap } = registry;
  let isTaken = false;
  // The first one receives nothing until another has taken the next epoch.
  registry.swap = async (shard, change) => {
    const swapped = await swap(shard, change);
    const taker = cluster.nodes.findIndex(({ ref }) => ref.replicaId === change.record.primary?.replicaId);
    if (!isTaken) for (const other of [0, 1, 2]) if (other !== taker) cluster.cut(taker, other);
    if (change.record.epoch === 2) cluster.heal();
    isTaken = true;
    return swapped;
  };
  for (const index of [0, 1, 2]) await cluster.start(index);
  const told = () => cluster.logged.find(({ event }) => event === 'takeover-given-up');
  const { fields } = await cluster.until('an epoch is given up', told);
  expect(fields).toEqual({ shard: 0, epoch: 1, why: expect.stringMatching(/another leads|a higher epoch/) });
});
