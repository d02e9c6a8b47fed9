import { expect, test } from 'vitest';
import {
  type ClusterNode,
  openShardCluster,
  type ShardCluster,
} from '../../../tests/support/metadata/shard-cluster.ts';
import { must } from '../../base/assert.ts';
import { Corruption } from '../../base/corruption.ts';
import type { MemoryKv } from '../../platform/memory/memory-kv.ts';
import { LOG_COLUMN } from '../engine/row-keys.ts';

/** Its reads of rows fail as long as `isLost` says so of their column and value. */
function spoil(kv: MemoryKv, isLost: (column: string, value: Uint8Array) => boolean): MemoryKv {
  const check = (column: string, value: Uint8Array | undefined) => {
    if (value !== undefined && isLost(column, value)) throw new Corruption('block checksum mismatch');
  };
  return {
    ...kv,
    async getMany(column, keys) {
      const values = await kv.getMany(column, keys);
      for (const value of values) check(column, value);
      return values;
    },
    async range(range) {
      const rows = await kv.range(range);
      for (const { value } of rows) check(range.column, value);
      return rows;
    },
  };
}

const has = (value: Uint8Array, text: string) => Buffer.from(value).includes(text);
const stateOf = ({ node }: ClusterNode) => node?.replica(0)?.status().state;

async function write(cluster: ShardCluster, key: string, text: string): Promise<void> {
  const body = { bucketId: 'b', key, text };
  const reply = await cluster.call(await cluster.primary(), 'execute', 'write-note', body);
  expect(reply).toMatchObject({ kind: 'done' });
}

async function read(cluster: ShardCluster, node: ClusterNode, key: string) {
  return cluster.call(node, 'query', 'read-note', { bucketId: 'b', key });
}

/** Three nodes; `lost` of them loses what says `precious`, in columns that are not its log unless `ofLog`. */
async function open(lost: { current: ClusterNode | undefined; ofLog?: boolean }): Promise<ShardCluster> {
  const cluster = await openShardCluster({ nodeCount: 3 });
  for (const [index, node] of cluster.nodes.entries()) {
    const isHit = (column: string) => (column === LOG_COLUMN) === (lost.ofLog ?? false);
    node.kv = spoil(
      node.kv,
      (column, value) => lost.current === node && isHit(column) && has(value, 'precious'),
    );
    await cluster.start(index);
  }
  await cluster.primary();
  return cluster;
}

test('a primary that cannot read its state steps down, another answers, and it is refilled', async () => {
  const lost: { current: ClusterNode | undefined } = { current: undefined };
  const cluster = await open(lost);
  await write(cluster, 'k', 'precious');
  const damaged = await cluster.primary();
  lost.current = damaged;
  expect((await read(cluster, damaged, 'k')).kind).not.toBe('done');
  // Its log is sound: it counts on, but leads no more.
  const next = await cluster.until('another primary', () =>
    cluster.nodes.find((node) => node !== damaged && node.node?.replica(0)?.status().role === 'primary'),
  );
  expect(await read(cluster, next, 'k')).toMatchObject({ kind: 'done', value: { text: 'precious' } });
  lost.current = undefined;
  await cluster.until('it is whole', () => (stateOf(damaged) === 'live' ? true : undefined));
  expect(cluster.events.filter((event) => event === 'quarantined')).toHaveLength(1);
  expect(cluster.events).toContain('snapshot-taken');
  await cluster.until('nothing is missing', () => {
    const applied = cluster.nodes.map(({ node }) => node?.replica(0)?.status().appliedSeq);
    return new Set(applied).size === 1 ? true : undefined;
  });
  expect(damaged.unreadable).toEqual([]);
});

test('rows that are unreadable even after clearing are the end of the database', async () => {
  const lost: { current: ClusterNode | undefined } = { current: undefined };
  const cluster = await open(lost);
  await write(cluster, 'k', 'precious');
  const damaged = await cluster.primary();
  lost.current = damaged;
  await read(cluster, damaged, 'k');
  await cluster.until('it is whole', () => (stateOf(damaged) === 'live' ? true : undefined));
  const others = cluster.nodes.filter((node) => node !== damaged);
  for (const node of others) cluster.kill(cluster.nodes.indexOf(node));
  await cluster.start(cluster.nodes.indexOf(must(others[0], 'another')));
  await cluster.run(10_000);
  for (let tries = 0; tries < 20 && damaged.unreadable.length === 0; tries++) {
    const primary = await cluster.primary();
    if (primary === damaged) await read(cluster, damaged, 'k');
    else cluster.kill(cluster.nodes.indexOf(primary));
    await cluster.run(500);
    for (const node of others) if (node.node === undefined) await cluster.start(cluster.nodes.indexOf(node));
    await cluster.run(4000);
  }
  expect(damaged.unreadable[0]).toBeInstanceOf(Corruption);
});

test('a log that cannot be read at a start is cut there, does not count, and is refilled', async () => {
  const lost: { current: ClusterNode | undefined; ofLog: boolean } = { current: undefined, ofLog: true };
  const cluster = await open(lost);
  await write(cluster, 'k', 'precious');
  await write(cluster, 'l', 'other');
  const follower = must(
    cluster.nodes.find(({ node }) => node?.replica(0)?.status().role !== 'primary'),
    'a follower',
  );
  const index = cluster.nodes.indexOf(follower);
  cluster.kill(index);
  lost.current = follower;
  await cluster.start(index);
  lost.current = undefined;
  expect(stateOf(follower)).toBe('quarantined');
  await cluster.until('it is whole', () => (stateOf(follower) === 'live' ? true : undefined));
  await write(cluster, 'm', 'more');
});
