import { describe, expect, test } from 'vitest';
import { noteMachine } from '../../../tests/scenarios/note-machine.ts';
import {
  type ClusterNode,
  openShardCluster,
  type ShardCluster,
} from '../../../tests/support/metadata/shard-cluster.ts';
import { must } from '../../base/assert.ts';
import { packPlain, unpackPlain } from '../../base/record-codec.ts';
import type { ReplicaStatus } from '../../ports/shard-calls.ts';
import type { HistoryRow, StateMachine } from '../../ports/state-machine.ts';
import { replicaCodec } from '../engine/entry-rows.ts';
import { replicaKey } from '../engine/row-keys.ts';

const BUCKET = 'b';
/** Every record is read anew in this time. */
const LOOKED_AGAIN_MS = 16_000;

async function open(...started: number[]): Promise<ShardCluster> {
  const cluster = await openShardCluster({ nodeCount: 4, voterCount: 3 });
  for (const index of started) await cluster.start(index);
  return cluster;
}

async function write(cluster: ShardCluster, key: string, text: string): Promise<void> {
  for (;;) {
    const primary = await cluster.primary();
    const reply = await cluster.call(primary, 'execute', 'write-note', { bucketId: BUCKET, key, text });
    if (reply.kind === 'not-primary') continue;
    expect(reply).toMatchObject({ kind: 'done', value: { kind: 'written' } });
    return;
  }
}

async function read(cluster: ShardCluster, key: string): Promise<unknown> {
  const reply = await cluster.call(await cluster.primary(), 'query', 'read-note', { bucketId: BUCKET, key });
  expect(reply.kind).toBe('done');
  return reply.kind === 'done' && (reply.value as { text: string | null }).text;
}

const statusOf = ({ node }: ClusterNode): ReplicaStatus | undefined =>
  node?.status().find(({ shard }) => shard === 0);

const leading = (cluster: ShardCluster) =>
  cluster.nodes.filter((node) => statusOf(node)?.role === 'primary').length;

/** Ends the leadership of the primary, so that another epoch begins. */
async function changePrimary(cluster: ShardCluster): Promise<void> {
  const primary = await cluster.primary();
  const index = cluster.nodes.indexOf(primary);
  cluster.kill(index);
  await cluster.primary();
  await cluster.start(index);
  await cluster.run(4000);
}

describe('what a replica knows of its voters', () => {
  test('is durable with the promise by which the others may acknowledge, without the registry', async () => {
    const cluster = await open(0, 1, 2);
    await write(cluster, 'k', 'one');
    const record = must(cluster.registry.records.get(0), 'a record').record;
    for (const { seen, promised } of await cluster.found(0, 1, 2)) {
      expect(promised).toBe(record.epoch);
      expect(seen).toMatchObject({ epoch: record.epoch, voters: record.voters, prevVoters: null });
    }
  });

  test('changes with them, on those that leave too', async () => {
    const cluster = await open(0, 1, 2, 3);
    await write(cluster, 'k', 'one');
    await cluster.want([1, 2, 3]);
    await cluster.until('other voters', () => {
      const { record } = must(cluster.registry.records.get(0), 'a record');
      return record.prevVoters === null && record.epoch > 1 ? true : undefined;
    });
    await cluster.run(1000);
    const voters = [1, 2, 3].map((index) => cluster.nodes[index]?.ref);
    for (const { seen } of await cluster.found(0, 1, 2, 3))
      expect(seen).toMatchObject({ voters, prevVoters: null });
  });

  test('rows of an older form are read', () => {
    const old = {
      clusterId: 'c',
      replicaId: 'r',
      incarnation: 1,
      promised: 3,
      state: 'live',
      revisionSeen: 9,
    };
    const { revisionSeen: _, ...rest } = old;
    expect(replicaCodec.decode(Buffer.concat([Uint8Array.of(1), packPlain(old)]))).toEqual({
      ...rest,
      isDamaged: false,
      votesFor: null,
      seen: null,
    });
  });
});

describe('a registry that was set back', () => {
  test('is refused by all that start, and does no harm to existing data', async () => {
    const cluster = await open(0, 1, 2);
    await write(cluster, 'k', 'before');
    const restore = cluster.registry.backUp();
    await changePrimary(cluster);
    await write(cluster, 'k', 'after');
    for (const index of [0, 1, 2]) cluster.kill(index);
    restore();
    for (const index of [0, 1, 2]) await cluster.start(index);
    await cluster.run(10_000);
    expect(leading(cluster)).toBe(0);
    for (const node of cluster.nodes.slice(0, 3))
      expect(statusOf(node)).toMatchObject({ isRegistryBehind: true, state: 'live' });
  });

  test('removes no replica that was added since', async () => {
    const cluster = await open(0, 1, 2, 3);
    await write(cluster, 'k', 'before');
    const restore = cluster.registry.backUp();
    await cluster.want([1, 2, 3]);
    await cluster.until('other voters', () => {
      const { record } = must(cluster.registry.records.get(0), 'a record');
      return record.prevVoters === null && record.epoch > 1 ? true : undefined;
    });
    await write(cluster, 'k', 'after');
    for (const index of [0, 1, 2, 3]) cluster.kill(index);
    restore();
    for (const index of [0, 1, 2, 3]) await cluster.start(index);
    await cluster.run(8000);
    expect(leading(cluster)).toBe(0);
    expect((await cluster.found(3))[0]?.state).toBe('live');
  });

  test('is reported while a primary leads, and a late hint is not taken for it', async () => {
    const cluster = await open(0, 1, 2);
    const stale = must(await cluster.registry.read(0), 'a record');
    await changePrimary(cluster);
    await write(cluster, 'k', 'one');
    for (const { node } of cluster.nodes) node?.replica(0)?.onRegistered(stale);
    await cluster.run(500);
    expect(cluster.nodes.slice(0, 3).map((node) => statusOf(node)?.isRegistryBehind)).toEqual([
      false,
      false,
      false,
    ]);
    const restore = cluster.registry.backUp();
    await changePrimary(cluster);
    const right = cluster.registry.backUp();
    restore();
    await cluster.run(500);
    expect(cluster.nodes.slice(0, 3).map((node) => statusOf(node)?.isRegistryBehind)).toEqual([
      true,
      true,
      true,
    ]);
    expect(await read(cluster, 'k')).toBe('one');
    // The right one is back, and says what is known already.
    right();
    await cluster.run(LOOKED_AGAIN_MS);
    expect(cluster.nodes.slice(0, 3).map((node) => statusOf(node)?.isRegistryBehind)).toEqual([
      false,
      false,
      false,
    ]);
  });

  test('makes no empty replica count on a node that has seen more of it by another shard', async () => {
    const cluster = await openShardCluster({ nodeCount: 2, voterCount: 1, shardCount: 2 });
    const elsewhere = cluster.nodes[1]?.ref;
    for (const shard of [0, 1]) {
      const { record, revision } = must(await cluster.registry.read(shard), 'a record');
      const voters = [must(cluster.nodes[shard], 'a node').ref];
      await cluster.registry.swap(shard, { expected: revision, record: { ...record, voters } });
    }
    const restore = cluster.registry.backUp();
    for (const _time of ['first', 'second']) {
      for (const index of [0, 1]) await cluster.start(index);
      await cluster.until('both lead', () =>
        cluster.nodes.every(({ node }) => node?.status().some(({ role }) => role === 'primary'))
          ? true
          : undefined,
      );
      for (const index of [0, 1]) cluster.kill(index);
    }
    restore();
    // Of shard 0, which was never opened by what the registry says, the other node has no rows.
    const { record, revision } = must(await cluster.registry.read(0), 'a record');
    const voters = [must(elsewhere, 'a node')];
    await cluster.registry.swap(0, { expected: revision, record: { ...record, voters } });
    await cluster.start(1);
    await cluster.run(8000);
    expect(cluster.nodes[1]?.node?.status().find(({ shard }) => shard === 0)).toMatchObject({
      state: 'installing',
      role: 'follower',
    });
  });
});

/** Counts the histories that a state has begun. */
const HISTORY: HistoryRow = {
  address: { table: { id: 9, column: 'rows' }, key: Uint8Array.of(0) },
  incarnationOf: (row) => (row === undefined ? 1 : (unpackPlain(row) as { incarnation: number }).incarnation),
  begin: (incarnation, nowMs) => packPlain({ incarnation, nowMs }),
};
const MACHINE: StateMachine = { ...noteMachine, history: HISTORY };

describe('a shard without a majority', () => {
  /** Of three nodes only the first has its disk; what it has not was acknowledged by the others. */
  async function loseTwo(): Promise<ShardCluster> {
    const cluster = await openShardCluster({ nodeCount: 3, machine: MACHINE });
    for (const index of [0, 1, 2]) await cluster.start(index);
    for (let i = 0; i < 10; i++) await write(cluster, `k${i}`, `text ${i}`);
    await cluster.run(1000);
    for (const index of [0, 1, 2]) cluster.kill(index);
    for (const index of [1, 2]) cluster.wipe(index);
    return cluster;
  }

  const only = (cluster: ShardCluster, index = 0) => {
    const { replicaId, nodeId } = must(cluster.nodes[index], 'a node').ref;
    return {
      voters: [{ replicaId, nodeId }],
      recoveredFrom: replicaId,
      primary: null,
      prevVoters: null,
      learners: [],
    };
  };

  const nextHistory = (cluster: ShardCluster) => {
    const { incarnation, epoch } = must(cluster.registry.records.get(0), 'a record').record;
    return { incarnation: incarnation + 1, epoch: epoch + 1 };
  };

  test('continues with one replica when the registry says so, also while it runs', async () => {
    const cluster = await loseTwo();
    await cluster.start(0);
    await cluster.run(8000);
    expect(leading(cluster)).toBe(0);
    await cluster.register({ ...only(cluster), ...nextHistory(cluster) });
    for (let i = 0; i < 10; i++) expect(await read(cluster, `k${i}`)).toBe(`text ${i}`);
    await write(cluster, 'k', 'after');
    expect(statusOf(must(cluster.nodes[0], 'a node'))).toMatchObject({ incarnation: 2, state: 'live' });
    cluster.kill(0);
    await cluster.start(0);
    expect(await read(cluster, 'k')).toBe('after');
    const row = await cluster.nodes[0]?.kv.getMany('rows', [Uint8Array.of(0, 0, 9, 0)]);
    expect(HISTORY.incarnationOf(row?.[0])).toBe(2);
  });

  test('grows again with new nodes, whose state names its history', async () => {
    const cluster = await loseTwo();
    await cluster.register({ ...only(cluster), ...nextHistory(cluster) });
    for (const index of [0, 1, 2]) await cluster.start(index);
    await write(cluster, 'k', 'after');
    await cluster.want([0, 1, 2]);
    await cluster.until('three voters', () =>
      cluster.registry.records.get(0)?.record.voters.length === 3 ? true : undefined,
    );
    await cluster.run(3000);
    cluster.kill(0);
    expect(await read(cluster, 'k3')).toBe('text 3');
    expect(await read(cluster, 'k')).toBe('after');
    for (const { kv } of cluster.nodes)
      expect(HISTORY.incarnationOf((await kv.getMany('rows', [Uint8Array.of(0, 0, 9, 0)]))[0])).toBe(2);
  });

  test('continues with a damaged replica if that is what is left', async () => {
    const cluster = await loseTwo();
    await cluster.cutLog(0, 2);
    await cluster.start(0);
    await cluster.run(1000);
    expect(statusOf(must(cluster.nodes[0], 'a node'))?.state).toBe('quarantined');
    await cluster.register({ ...only(cluster), ...nextHistory(cluster) });
    expect(await read(cluster, 'k2')).toBe('text 2');
    cluster.kill(0);
    await cluster.start(0);
    expect(await read(cluster, 'k2')).toBe('text 2');
  });

  test('is unchanged by a crash before the new history is adopted', async () => {
    const cluster = await loseTwo();
    await cluster.register({ ...only(cluster), ...nextHistory(cluster) });
    await cluster.start(0);
    cluster.kill(0);
    await cluster.start(0);
    await write(cluster, 'k', 'after');
    expect(await read(cluster, 'k9')).toBe('text 9');
  });

  test('a later history belongs to no replica that it does not name alone', async () => {
    const cluster = await loseTwo();
    const next = nextHistory(cluster);
    await cluster.register({ ...only(cluster), ...next, recoveredFrom: 'another' });
    await cluster.start(0);
    await cluster.run(8000);
    expect(leading(cluster)).toBe(0);
    expect(statusOf(must(cluster.nodes[0], 'a node'))).toMatchObject({ state: 'superseded', incarnation: 1 });
  });

  test('replicas of the abandoned history are not opened, and keep their rows until they are discarded', async () => {
    const cluster = await openShardCluster({ nodeCount: 3, machine: MACHINE });
    for (const index of [0, 1, 2]) await cluster.start(index);
    await write(cluster, 'k', 'before');
    await cluster.run(1000);
    for (const index of [1, 2]) cluster.kill(index);
    await cluster.register({ ...only(cluster), ...nextHistory(cluster) });
    await write(cluster, 'k', 'after');
    for (const index of [1, 2]) await cluster.start(index);
    await cluster.want([0, 1, 2]);
    await cluster.run(5000);
    for (const index of [1, 2]) {
      const own = must(cluster.nodes[index], 'a node');
      expect(statusOf(own)).toMatchObject({ state: 'superseded', incarnation: 1 });
      const [row] = await own.kv.getMany('rows', [replicaKey(0)]);
      expect(replicaCodec.decode(must(row, 'a row'))).toMatchObject({ incarnation: 1, state: 'live' });
    }
    for (const index of [1, 2]) {
      const node = must(cluster.nodes[index]?.node, 'a node');
      const call = {
        kind: 'discard',
        envelope: { shard: 0 },
        name: 'tick',
        body: null,
        budgetMs: 1000,
      } as const;
      const reply = await node.handle({ ...call, ticket: node.ticket() });
      expect(reply).toMatchObject({ kind: 'done', value: { isDiscarded: true } });
    }
    await cluster.until('three voters', () =>
      cluster.registry.records.get(0)?.record.voters.length === 3 ? true : undefined,
    );
    await cluster.run(3000);
    cluster.kill(0);
    expect(await read(cluster, 'k')).toBe('after');
  });

  test('a replica of the abandoned history stops at once when it learns of the other', async () => {
    const cluster = await openShardCluster({ nodeCount: 3, machine: MACHINE });
    for (const index of [0, 1, 2]) await cluster.start(index);
    await write(cluster, 'k', 'before');
    await cluster.run(1000);
    await cluster.register({ ...only(cluster), ...nextHistory(cluster) });
    await cluster.run(1000);
    for (const index of [1, 2])
      expect(statusOf(must(cluster.nodes[index], 'a node'))).toMatchObject({ state: 'superseded' });
    expect(await read(cluster, 'k')).toBe('before');
  });
});
