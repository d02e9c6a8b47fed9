// R22: a row that differs on one replica, behind the back of the engine.
import { expect, test } from 'vitest';
import {
  type ClusterNode,
  openShardCluster,
  type ShardCluster,
} from '../../../tests/support/metadata/shard-cluster.ts';
import { must } from '../../base/assert.ts';
import type { KvRow } from '../../ports/kv.ts';
import { ENGINE_TABLES, shardBounds } from '../engine/row-keys.ts';
import { isOwnRow, STATE_COLUMNS } from '../engine/state-digest.ts';

const BUCKET = 'b';
/** Several ranges for each pass, and several passes in a test. */
const PACE = { pauseMs: 200, passMs: 2000, rowsMax: 20, bytesMax: 4096 };

async function openThree(): Promise<ShardCluster> {
  const cluster = await openShardCluster({ nodeCount: 3, verifyPace: PACE });
  for (const index of [0, 1, 2]) await cluster.start(index);
  for (let i = 0; i < 50; i++) await write(cluster, `k${i}`, `text ${i}`);
  return cluster;
}

async function write(cluster: ShardCluster, key: string, text: string): Promise<void> {
  for (;;) {
    const primary = await cluster.primary();
    const reply = await cluster.call(primary, 'execute', 'write-note', { bucketId: BUCKET, key, text });
    if (reply.kind === 'not-primary' || reply.kind === 'unknown') continue;
    expect(reply.kind).toBe('done');
    return;
  }
}

async function read(cluster: ShardCluster, key: string): Promise<unknown> {
  const primary = await cluster.primary();
  const reply = await cluster.call(primary, 'query', 'read-note', { bucketId: BUCKET, key });
  return reply.kind === 'done' ? (reply.value as { text: string | null }).text : reply.kind;
}

async function stateOf({ kv }: ClusterNode, column = 'rows'): Promise<KvRow[]> {
  const rows = await kv.range({ column, ...shardBounds(0), limit: 10_000 });
  return rows.filter(({ key }) => !isOwnRow(key));
}

/** One byte of a row of the state machine, in its middle. */
async function alter(node: ClusterNode): Promise<void> {
  const rows = (await stateOf(node)).filter(({ key, value }) => (key[2] ?? 0) < 0xf0 && value.length > 0);
  const { key, value } = must(rows[rows.length >> 1], 'a row');
  const altered = Buffer.from(value);
  altered[altered.length - 1] = (altered.at(-1) ?? 0) ^ 1;
  await node.kv.commit([{ column: 'rows', key, value: altered }]);
}

const verificationOf = (cluster: ShardCluster) =>
  cluster.nodes
    .map(({ node }) => node?.replica(0)?.status().verification)
    .find((found) => found !== undefined);

async function expectEqual(cluster: ShardCluster): Promise<void> {
  await cluster.until('all to have everything', () => {
    const statuses = cluster.nodes.map(({ node }) => node?.replica(0)?.status());
    const isLive = statuses.every((status) => status?.state === 'live');
    return isLive && new Set(statuses.map((status) => status?.appliedSeq)).size === 1 ? true : undefined;
  });
  for (const column of STATE_COLUMNS) {
    const states = await Promise.all(cluster.nodes.map((node) => stateOf(node, column)));
    expect(states[1]).toEqual(states[0]);
    expect(states[2]).toEqual(states[0]);
  }
}

/** Until a pass is over that began after this. */
async function runPass(cluster: ShardCluster): Promise<void> {
  const before = verificationOf(cluster)?.lastPass?.endedAtMs ?? 0;
  await cluster.until('a pass', () => {
    const after = verificationOf(cluster)?.lastPass?.endedAtMs ?? 0;
    return after > before + PACE.passMs ? true : undefined;
  });
}

test('replicas that are equal are found to be, pass after pass, while they are written to', async () => {
  const cluster = await openThree();
  for (let i = 0; i < 60; i++) {
    await write(cluster, `k${i}`, `again ${i}`);
    await cluster.run(100);
  }
  await runPass(cluster);
  expect(verificationOf(cluster)).toMatchObject({ lastPass: { partialCount: 0 }, mismatchAtMs: null });
  expect(cluster.events.filter((event) => event === 'verified').length).toBeGreaterThan(1);
  expect(cluster.events).not.toContain('state-differs');
  await expectEqual(cluster);
});

test('a follower whose row differs is given everything anew, and the shard serves on', async () => {
  const cluster = await openThree();
  const primary = await cluster.primary();
  const odd = must(cluster.nodes[(cluster.nodes.indexOf(primary) + 1) % 3], 'a follower');
  await alter(odd);
  await cluster.until('the snapshot', () => (cluster.events.includes('snapshot-taken') ? true : undefined));
  expect(cluster.events).toContain('state-differs');
  expect(cluster.events).toContain('quarantined');
  expect(await cluster.primary()).toBe(primary);
  expect(verificationOf(cluster)?.mismatchAtMs).toEqual(expect.any(Number));
  await write(cluster, 'k', 'after');
  await expectEqual(cluster);
  await runPass(cluster);
  await runPass(cluster);
  expect(verificationOf(cluster)).toMatchObject({ lastPass: { partialCount: 0 }, mismatchAtMs: null });
});

test('a primary whose row differs hands over first, and is given everything anew', async () => {
  const cluster = await openThree();
  const odd = await cluster.primary();
  await alter(odd);
  await cluster.until('the snapshot', () => (cluster.events.includes('snapshot-taken') ? true : undefined));
  const [differs, steppedDown, quarantined, opened] = (
    ['state-differs', 'stepped-down', 'quarantined', 'opened'] as const
  ).map((event) => cluster.events.lastIndexOf(event));
  expect([differs, steppedDown, quarantined, opened]).toEqual(
    [differs, steppedDown, quarantined, opened].sort((a = 0, b = 0) => a - b),
  );
  expect(await cluster.primary()).not.toBe(odd);
  for (let i = 0; i < 50; i++) expect(await read(cluster, `k${i}`)).toBe(`text ${i}`);
  expect(verificationOf(cluster)?.mismatchAtMs).toEqual(expect.any(Number));
  await expectEqual(cluster);
});

test('while nobody else could lead, a primary whose row differs goes on', async () => {
  const cluster = await openThree();
  const odd = await cluster.primary();
  const { read: ask } = cluster.registry;
  cluster.registry.read = async () => {
    throw new Error('away');
  };
  await alter(odd);
  await cluster.until('the alarm', () => verificationOf(cluster)?.mismatchAtMs ?? undefined);
  await cluster.run(5000);
  expect(await cluster.primary()).toBe(odd);
  expect(cluster.events).not.toContain('quarantined');
  await write(cluster, 'k', 'meanwhile');
  cluster.registry.read = ask;
  await cluster.until('the snapshot', () => (cluster.events.includes('snapshot-taken') ? true : undefined));
  expect(await cluster.primary()).not.toBe(odd);
  await expectEqual(cluster);
});

test('of two that differ nobody knows which is right: an alarm, and neither is given up', async () => {
  const cluster = await openThree();
  const primary = await cluster.primary();
  const at = cluster.nodes.indexOf(primary);
  cluster.kill((at + 1) % 3);
  await alter(must(cluster.nodes[(at + 2) % 3], 'a follower'));
  await cluster.until('the alarm', () => verificationOf(cluster)?.mismatchAtMs ?? undefined);
  await cluster.run(5000);
  expect(cluster.events).toContain('state-differs');
  expect(cluster.events).not.toContain('quarantined');
  expect(await cluster.primary()).toBe(primary);
  // With the third voter it is decided.
  await cluster.start((at + 1) % 3);
  await cluster.until('the snapshot', () => (cluster.events.includes('snapshot-taken') ? true : undefined));
  await expectEqual(cluster);
});

test('a voter that is away is passed over, and the pass says so', async () => {
  const cluster = await openThree();
  cluster.kill((cluster.nodes.indexOf(await cluster.primary()) + 1) % 3);
  await runPass(cluster);
  await runPass(cluster);
  const { lastPass, mismatchAtMs } = must(verificationOf(cluster), 'a primary');
  expect(lastPass?.partialCount).toBeGreaterThan(0);
  expect(mismatchAtMs).toBeNull();
});

test('whoever leads next goes on where the pass had come to', async () => {
  const cluster = await openThree();
  const verifyKey = (key: Uint8Array) => key[2] === ENGINE_TABLES.verify.id;
  const first = await cluster.primary();
  const isUnderWay = async () => (await stateOf(first)).some(({ key }) => verifyKey(key));
  while (!(await isUnderWay())) await cluster.run(100);
  cluster.kill(cluster.nodes.indexOf(first));
  await runPass(cluster);
  await cluster.start(cluster.nodes.indexOf(first));
  await expectEqual(cluster);
  expect(cluster.events).not.toContain('state-differs');
});
