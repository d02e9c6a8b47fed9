// R14: what becomes of the rows of a replica that its shard does not list any more.
import { expect, test } from 'vitest';
import { openShardCluster, type ShardCluster } from '../../../tests/support/metadata/shard-cluster.ts';
import { must } from '../../base/assert.ts';
import { LOG_COLUMN, logKey, shardBounds } from '../engine/row-keys.ts';
import { UNLISTED_KEPT_MS } from '../engine/timing.ts';

/** Every shard is looked up once in it. */
const LOOKED_MS = 16_000;

async function countRows(cluster: ShardCluster, index: number): Promise<number> {
  const { kv } = must(cluster.nodes[index], 'a node');
  const log = { column: LOG_COLUMN, gte: logKey(0, 0), lt: logKey(0, Number.MAX_SAFE_INTEGER) };
  const columns = ['rows', 'bodies'].map((column) => ({ column, ...shardBounds(0) }));
  const found = await Promise.all([...columns, log].map((range) => kv.range({ ...range, limit: 10_000 })));
  return found.flat().length;
}

const replicaOf = (cluster: ShardCluster, index: number) => cluster.nodes[index]?.node?.replica(0);

/** Four nodes, of which the first was a voter and is none any more. */
async function openWithout(): Promise<ShardCluster> {
  const cluster = await openShardCluster({ nodeCount: 4, voterCount: 3 });
  for (const index of [0, 1, 2, 3]) await cluster.start(index);
  await write(cluster, 'before');
  await cluster.want([1, 2, 3]);
  await cluster.until('the removal', () => (isRemoved(cluster) ? true : undefined));
  return cluster;
}

function isRemoved(cluster: ShardCluster): boolean {
  return replicaOf(cluster, 0)?.status().state === 'removed';
}

async function write(cluster: ShardCluster, text: string): Promise<void> {
  for (;;) {
    const body = { bucketId: 'b', key: 'k', text };
    const reply = await cluster.call(await cluster.primary(), 'execute', 'write-note', body);
    if (reply.kind === 'done') return;
  }
}

test('they are there for a day, and then they are not', async () => {
  const cluster = await openWithout();
  await cluster.run(LOOKED_MS);
  cluster.skip(UNLISTED_KEPT_MS - 2 * LOOKED_MS);
  await cluster.run(LOOKED_MS);
  expect(await countRows(cluster, 0)).toBeGreaterThan(3);
  await cluster.run(2 * LOOKED_MS);
  expect(await countRows(cluster, 0)).toBe(0);
  expect(replicaOf(cluster, 0)).toBeUndefined();
  await write(cluster, 'after');
});

test('the day goes on over restarts of the node', async () => {
  const cluster = await openWithout();
  await cluster.run(LOOKED_MS);
  cluster.kill(0);
  cluster.skip(UNLISTED_KEPT_MS);
  await cluster.start(0);
  expect(await countRows(cluster, 0)).toBeGreaterThan(3);
  await cluster.run(LOOKED_MS);
  expect(await countRows(cluster, 0)).toBe(0);
});

test('a registry that cannot be asked says nothing, and neither does one that was set back', async () => {
  const cluster = await openShardCluster({ nodeCount: 4, voterCount: 3 });
  const restore = cluster.registry.backUp();
  for (const index of [0, 1, 2, 3]) await cluster.start(index);
  await write(cluster, 'before');
  await cluster.want([1, 2, 3]);
  await cluster.until('the removal', () => (isRemoved(cluster) ? true : undefined));
  await cluster.run(LOOKED_MS);
  const { read } = cluster.registry;
  cluster.registry.read = async () => {
    throw new Error('away');
  };
  cluster.skip(UNLISTED_KEPT_MS);
  await cluster.run(2 * LOOKED_MS);
  expect(await countRows(cluster, 0)).toBeGreaterThan(3);
  restore();
  cluster.registry.read = read;
  await cluster.run(2 * LOOKED_MS);
  expect(await countRows(cluster, 0)).toBeGreaterThan(3);
});

test('listed again in time, it keeps them, and the day begins anew; later it is given everything', async () => {
  const cluster = await openWithout();
  await cluster.run(LOOKED_MS);
  cluster.skip(UNLISTED_KEPT_MS / 2);
  await cluster.run(LOOKED_MS);
  await cluster.want([0, 1, 2]);
  await cluster.until('its return', () =>
    replicaOf(cluster, 0)?.status().state === 'live' ? true : undefined,
  );
  await cluster.run(LOOKED_MS);
  await cluster.want([1, 2, 3]);
  await cluster.until('the removal', () => (isRemoved(cluster) ? true : undefined));
  await cluster.run(LOOKED_MS);
  cluster.skip(UNLISTED_KEPT_MS / 2);
  await cluster.run(LOOKED_MS);
  expect(await countRows(cluster, 0)).toBeGreaterThan(3);
  cluster.skip(UNLISTED_KEPT_MS / 2);
  await cluster.run(LOOKED_MS);
  expect(await countRows(cluster, 0)).toBe(0);
  await cluster.want([0, 1, 2]);
  await cluster.until('its return', () =>
    replicaOf(cluster, 0)?.status().state === 'live' ? true : undefined,
  );
  await write(cluster, 'after');
});
