// A registry that was emptied, or is new, and nodes that hold replicas of some shards and not of others (R23).
import { expect, test } from 'vitest';
import { openShardCluster, type ShardCluster } from '../../../tests/support/metadata/shard-cluster.ts';
import { must } from '../../base/assert.ts';
import type { ReplicaRef } from '../../ports/replication.ts';

/** Shard 0 is on all nodes, and runs; of shard 1 there is no record yet. */
async function open(): Promise<ShardCluster> {
  const cluster = await openShardCluster({ nodeCount: 5, shardCount: 2 });
  cluster.registry.records.delete(1);
  return cluster;
}

async function startAll(cluster: ShardCluster): Promise<void> {
  for (const [index, { node }] of cluster.nodes.entries()) if (node === undefined) void cluster.start(index);
  await cluster.primary();
  // Its record is written again and again.
  for (let count = 0; count < 10; count++) await cluster.register({ nonce: `${count}` });
  await cluster.run(1000);
}

async function makeFirst(cluster: ShardCluster, voters: ReplicaRef[]): Promise<void> {
  const first = { incarnation: 1, epoch: 0, primary: null, prevVoters: null, learners: [], nonce: '' };
  await cluster.registry.swap(1, { expected: 0, record: { ...first, voters } });
}

const replicasOf = (cluster: ShardCluster) =>
  cluster.nodes.flatMap(({ node }) => node?.status().filter(({ shard }) => shard === 1) ?? []);

test('one that was emptied opens no shard as new on nodes that have seen more of it in this life', async () => {
  const cluster = await open();
  const empty = cluster.registry.backUp();
  await startAll(cluster);
  empty();
  cluster.registry.records.clear();
  await makeFirst(
    cluster,
    cluster.nodes.slice(2).map(({ ref }) => ref),
  );
  await cluster.run(20_000);
  expect(replicasOf(cluster).map(({ state, role }) => [state, role])).toEqual(
    Array.from({ length: 3 }, () => ['installing', 'follower']),
  );
});

test('a record of another cluster opens no shard on nodes that have nothing of it', async () => {
  const cluster = await openShardCluster({ nodeCount: 3 });
  cluster.state = 'unknown';
  for (const index of cluster.nodes.keys()) void cluster.start(index);
  await cluster.run(20_000);
  expect(cluster.nodes.flatMap(({ node }) => node?.status() ?? [])).toEqual([]);
  cluster.state = 'as-made';
  const primary = await cluster.primary();
  expect(primary.node?.status()).toMatchObject([{ state: 'live', epoch: 1 }]);
});

test('the first record of a shard opens it though news of it is older than what was seen of another', async () => {
  const cluster = await open();
  const { watch } = cluster.registry;
  cluster.registry.watch = (onChange, signal) =>
    watch((shard, found) => onChange(shard, shard === 1 ? { ...found, registryRevision: 1 } : found), signal);
  await startAll(cluster);
  await makeFirst(
    cluster,
    cluster.nodes.slice(2).map(({ ref }) => ref),
  );
  const primary = await cluster.primary(1);
  expect(must(primary.node, 'it runs').promised().get(1)).toBe(1);
  expect(replicasOf(cluster).map(({ state }) => state)).toEqual(['live', 'live', 'live']);
});

test('a hint of the first record that comes after later ones opens nothing as new', async () => {
  const cluster = await open();
  const { watch } = cluster.registry;
  let tell: Parameters<typeof watch>[0] = () => {};
  cluster.registry.watch = (onChange, signal) => {
    tell = onChange;
    watch((shard, found) => shard === 0 && onChange(shard, found), signal);
  };
  await cluster.start(0);
  cluster.registry.watch = watch;
  await startAll(cluster);
  for (const index of [1, 2, 3, 4]) cluster.cut(0, index);
  await makeFirst(
    cluster,
    cluster.nodes.slice(0, 3).map(({ ref }) => ref),
  );
  const first = must(cluster.registry.records.get(1), 'the first record');
  await cluster.primary(1);
  const late = must(cluster.nodes[0]?.node, 'it runs');
  expect(late.replica(1)).toBeUndefined();
  tell(1, { ...first, registryRevision: 1 });
  await cluster.run(100);
  expect(late.replica(1)?.status().state).toBe('installing');
});
