import { expect, test } from 'vitest';
import { openShardCluster, type ShardCluster } from '../../../tests/support/metadata/shard-cluster.ts';
import { must } from '../../base/assert.ts';

/** One voter, and three wanted, up to the moment at which both sets count. */
async function openChanging(): Promise<ShardCluster> {
  const cluster = await openShardCluster({ nodeCount: 3, voterCount: 1 });
  for (const index of [0, 1, 2]) await cluster.start(index);
  await cluster.primary();
  await cluster.want([0, 1, 2]);
  await cluster.until('a change of voters', () => isChanging(cluster) || undefined);
  return cluster;
}

const isChanging = ({ registry }: ShardCluster) => registry.records.get(0)?.record.prevVoters != null;

// Before, its stop left a record by which nobody could lead without it.
test('a node that stops during a change of voters ends the change first, and the others lead', async () => {
  const cluster = await openChanging();
  const { node } = must(cluster.nodes[0], 'a node');
  let isStopped = false;
  void must(node, 'it is up')
    .stop()
    .then(() => {
      isStopped = true;
    });
  await cluster.until('its end', () => isStopped || undefined);
  expect(isChanging(cluster)).toBe(false);
  cluster.kill(0);
  const heir = await cluster.primary();
  expect(cluster.nodes.indexOf(heir)).toBeGreaterThan(0);
  const note = { bucketId: '1', key: 'k', text: 'written' };
  expect((await cluster.call(heir, 'execute', 'write-note', note)).kind).toBe('done');
});

test('it waits no longer than a lease if the change cannot end', async () => {
  const cluster = await openChanging();
  cluster.cut(0, 1);
  cluster.cut(0, 2);
  let isStopped = false;
  void must(cluster.nodes[0]?.node, 'it is up')
    .stop()
    .then(() => {
      isStopped = true;
    });
  await cluster.until('its end', () => isStopped || undefined);
  expect(isChanging(cluster)).toBe(true);
});
