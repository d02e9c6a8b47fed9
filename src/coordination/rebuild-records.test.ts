import { describe, expect, test } from 'vitest';
import {
  type ClusterNode,
  openShardCluster,
  type ShardCluster,
} from '../../tests/support/metadata/shard-cluster.ts';
import { must } from '../base/assert.ts';
import type { ReplicaRef } from '../ports/replication.ts';
import type { RegisteredShard, ShardRecord } from '../ports/shard-registry.ts';
import { type FoundReplica, planRebuild, planRebuilds } from './rebuild-records.ts';

const WRITING = { rebuiltAtMs: 5000, nonce: 'n' };

const ref = (name: string): ReplicaRef => ({ replicaId: `replica-${name}`, nodeId: `node-${name}` });
const VOTERS = ['a', 'b', 'c'].map(ref);
const SEEN = { epoch: 4, rebuiltAtMs: 0, revision: 40, voters: VOTERS, prevVoters: null, learners: [] };

function replica(name: string, fields: Partial<FoundReplica> = {}): FoundReplica {
  return {
    ...ref(name),
    shard: 0,
    state: 'live',
    incarnation: 1,
    promised: 4,
    appliedSeq: 9,
    seen: SEEN,
    last: { seq: 9, epoch: 4 },
    witness: { seq: 9, epoch: 4 },
    ...fields,
  };
}

function registered(fields: Partial<ShardRecord> = {}, revision = 40): RegisteredShard {
  const record: ShardRecord = {
    incarnation: 1,
    epoch: 4,
    primary: ref('a'),
    voters: VOTERS,
    prevVoters: null,
    learners: [],
    nonce: 'old',
    ...fields,
  };
  return { record, revision, registryRevision: revision };
}

const plan = (found: FoundReplica[], record?: RegisteredShard) =>
  planRebuild({ found, registered: record }, WRITING);

describe('records rebuilt from what replicas know', () => {
  test('need a majority of the last voters, and name the missing ones', () => {
    expect(plan([replica('a'), replica('c')])).toEqual({
      kind: 'rebuild',
      expected: 0,
      record: {
        incarnation: 1,
        epoch: 5,
        primary: null,
        voters: VOTERS,
        prevVoters: null,
        learners: [],
        ...WRITING,
      },
    });
    expect(plan([replica('b')])).toMatchObject({ kind: 'cannot', missing: [ref('a'), ref('c')] });
    expect(plan([])).toMatchObject({ kind: 'cannot', why: 'no replica of it was found' });
  });

  test('need majorities of both sets during a change of voters', () => {
    const prevVoters = ['a', 'd', 'e'].map(ref);
    const seen = { ...SEEN, epoch: 6, prevVoters };
    const found = [replica('a', { promised: 6, seen }), replica('b', { seen: null })];
    expect(plan(found)).toMatchObject({ kind: 'cannot', missing: [ref('d'), ref('e')] });
    expect(plan([...found, replica('d')])).toMatchObject({
      kind: 'rebuild',
      record: { epoch: 7, voters: VOTERS, prevVoters },
    });
  });

  test('use the latest record that any replica has seen, even one that removed that replica', () => {
    const seen = { ...SEEN, epoch: 8, voters: ['b', 'c', 'd'].map(ref) };
    const found = [replica('a', { state: 'removed', seen }), replica('b'), replica('c', { promised: 8 })];
    expect(plan(found)).toMatchObject({ kind: 'rebuild', record: { epoch: 9, voters: seen.voters } });
    expect(plan([replica('a', { state: 'removed', seen }), replica('b')])).toMatchObject({
      kind: 'cannot',
      missing: [ref('c'), ref('d')],
    });
  });

  test('prefer the later record within an epoch, and a rebuilt one to all revisions', () => {
    const [first, second, third] = ['d', 'e', 'f'].map((name) => [ref(name)]);
    const seenBy = (learners: ReplicaRef[] | undefined, revision: number, rebuiltAtMs: number) => ({
      seen: { ...SEEN, learners: must(learners, 'learners'), revision, rebuiltAtMs },
    });
    const found = [
      replica('b', seenBy(second, 90, 0)),
      replica('c', seenBy(first, 50, 0)),
      replica('x', seenBy(third, 10, 7)),
    ];
    expect(plan(found)).toMatchObject({ record: { learners: third } });
    expect(plan(found.slice(0, 2))).toMatchObject({ record: { learners: second } });
  });

  test('ignore replicas that would not count', () => {
    const others: Partial<FoundReplica>[] = [
      { state: 'quarantined' },
      { state: 'installing' },
      { witness: 'damaged' },
      { witness: { seq: 10, epoch: 4 } },
      { witness: { seq: 9, epoch: 5 } },
    ];
    for (const fields of others) {
      expect(plan([replica('a'), replica('b', fields)])).toMatchObject({ kind: 'cannot' });
      expect(plan([replica('a'), replica('b', fields), replica('c')])).toMatchObject({ kind: 'rebuild' });
    }
  });

  test('have a higher epoch than any that was promised or acknowledged', () => {
    const found = [
      replica('a'),
      replica('b'),
      replica('c', { promised: 7 }),
      replica('d', { witness: { seq: 1, epoch: 9 } }),
    ];
    expect(plan(found)).toMatchObject({ record: { epoch: 10 } });
    expect(plan([replica('a'), replica('b')], registered({ epoch: 2 }, 30))).toMatchObject({
      kind: 'rebuild',
      expected: 30,
      record: { epoch: 5 },
    });
  });

  test('are not written where the registry is not behind', () => {
    const found = [replica('a'), replica('b')];
    expect(plan(found, registered())).toEqual({ kind: 'as-it-is' });
    expect(plan(found, registered({ epoch: 6 }, 60))).toEqual({ kind: 'as-it-is' });
    expect(plan(found, registered({ rebuiltAtMs: 3 }, 10))).toEqual({ kind: 'as-it-is' });
    expect(plan(found, registered({ epoch: 3 }))).toMatchObject({ kind: 'rebuild' });
    expect(plan(found, registered({}, 39))).toMatchObject({ kind: 'rebuild' });
    const later = found.map((one) => ({ ...one, seen: { ...SEEN, rebuiltAtMs: 2 } }));
    expect(plan(later, registered({}, 99))).toMatchObject({ kind: 'rebuild' });
  });

  test('are written anew beside others where the registry is not behind, so that all nodes take it for later', () => {
    const found = [replica('a'), replica('b')];
    const wanted = { voters: VOTERS };
    const later = registered({ epoch: 6, prevVoters: VOTERS, voters: ['b', 'c', 'd'].map(ref), wanted }, 60);
    const behind = { found, registered: registered({}, 39) };
    const [one, other, none] = planRebuilds(
      [{ found, registered: later }, behind, { found: [], registered: undefined }],
      () => WRITING,
    );
    const record = { ...later.record, ...WRITING, epoch: 7, primary: null };
    expect(one).toEqual({ kind: 'renew', expected: 60, record });
    expect(other).toMatchObject({ kind: 'rebuild', record: { rebuiltAtMs: WRITING.rebuiltAtMs } });
    expect(none).toMatchObject({ kind: 'cannot' });
    expect(planRebuilds([{ found, registered: later }], () => WRITING)).toEqual([{ kind: 'as-it-is' }]);
  });

  test('go on where an earlier rebuild ended before it had written the records that etcd was not behind of', () => {
    const found = [replica('a'), replica('b'), replica('c')];
    const renewed = registered({ epoch: 5, rebuiltAtMs: SEEN.rebuiltAtMs + 1 }, 60);
    const missed = registered({ epoch: 5 }, 60);
    const shards = [renewed, missed].map((record) => ({ found, registered: record }));
    expect(planRebuilds(shards, () => WRITING).map(({ kind }) => kind)).toEqual(['renew', 'renew']);
  });

  test('are not chosen between two sets of voters that have each gone on without the other', () => {
    const others = ['c', 'd', 'e'].map(ref);
    const anew = { promised: 5, seen: { ...SEEN, epoch: 5, revision: 3, voters: others } };
    const both = [replica('a'), replica('b'), replica('d', anew), replica('e', anew)];
    const rivals = [VOTERS, others];
    expect(plan(both, registered({ epoch: 5, voters: others }, 60))).toMatchObject({
      kind: 'cannot',
      rivals,
    });
    expect(plan(both)).toMatchObject({ kind: 'cannot', rivals });
    // By then a majority of the first set has promised: it is how voters change.
    const left = [replica('a', { promised: 5 }), replica('b', { promised: 5 }), replica('c', anew)];
    expect(plan([...left, replica('d', anew)])).toMatchObject({
      kind: 'rebuild',
      record: { voters: others },
    });
  });

  test('ignore rows of a history that was given up, and do not overwrite one that no replica knows', () => {
    const next = { incarnation: 2, promised: 9, seen: { ...SEEN, epoch: 9, voters: [ref('a')] } };
    expect(plan([replica('a', next), replica('b'), replica('c')])).toMatchObject({
      record: { incarnation: 2, epoch: 10, voters: [ref('a')] },
    });
    expect(plan([replica('b'), replica('c')], registered({ incarnation: 2 }))).toMatchObject({
      kind: 'cannot',
    });
  });
});

describe('a cluster whose registry was restored from a backup', () => {
  const BUCKET = 'b';

  async function write(cluster: ShardCluster, key: string): Promise<void> {
    for (;;) {
      const primary = await cluster.primary();
      const note = { bucketId: BUCKET, key, text: key };
      const reply = await cluster.call(primary, 'execute', 'write-note', note);
      if (reply.kind === 'not-primary') continue;
      expect(reply.kind).toBe('done');
      return;
    }
  }

  async function read(cluster: ShardCluster, key: string): Promise<unknown> {
    const reply = await cluster.call(await cluster.primary(), 'query', 'read-note', {
      bucketId: BUCKET,
      key,
    });
    return reply.kind === 'done' && (reply.value as { text: string | null }).text;
  }

  const isLeading = ({ node }: ClusterNode) => node?.replica(0)?.status().role === 'primary';

  /** Voters and epochs have changed since the backup. All nodes are down at the end. */
  async function setBack(): Promise<ShardCluster> {
    const cluster = await openShardCluster({ nodeCount: 4, voterCount: 3 });
    for (const index of [0, 1, 2, 3]) await cluster.start(index);
    await write(cluster, 'before');
    const restore = cluster.registry.backUp();
    await cluster.want([1, 2, 3]);
    await cluster.until('other voters', () => {
      const { record } = must(cluster.registry.records.get(0), 'a record');
      return record.prevVoters === null && record.epoch > 1 ? true : undefined;
    });
    await write(cluster, 'after');
    await cluster.run(1000);
    for (const index of [0, 1, 2, 3]) cluster.kill(index);
    restore();
    return cluster;
  }

  async function rebuild(cluster: ShardCluster, ...folders: number[]) {
    const facts = { found: await cluster.found(...folders), registered: await cluster.registry.read(0) };
    const made = planRebuild(facts, WRITING);
    if (made.kind === 'rebuild') await cluster.registry.swap(0, made);
    return made.kind;
  }

  test('continues with its last voters and all acknowledged data after a rebuild from a majority', async () => {
    const cluster = await setBack();
    expect(await rebuild(cluster, 0, 1)).toBe('cannot');
    expect(await rebuild(cluster, 0, 1, 3)).toBe('rebuild');
    for (const index of [0, 1, 2, 3]) await cluster.start(index);
    expect(await read(cluster, 'before')).toBe('before');
    expect(await read(cluster, 'after')).toBe('after');
    await write(cluster, 'later');
    expect(await read(cluster, 'later')).toBe('later');
    expect(await rebuild(cluster, 1, 2, 3)).toBe('as-it-is');
    expect(cluster.nodes.filter(isLeading)).toHaveLength(1);
  });

  test('refuses a registry that is set back to before the rebuild', async () => {
    const cluster = await setBack();
    const restore = cluster.registry.backUp();
    expect(await rebuild(cluster, 1, 2, 3)).toBe('rebuild');
    for (const index of [1, 2, 3]) await cluster.start(index);
    await write(cluster, 'later');
    for (const index of [1, 2, 3]) cluster.kill(index);
    restore();
    for (const index of [1, 2, 3]) await cluster.start(index);
    await cluster.run(8000);
    expect(cluster.nodes.some(isLeading)).toBe(false);
    for (const index of [1, 2, 3])
      expect(cluster.nodes[index]?.node?.status()[0]).toMatchObject({ isRegistryBehind: true });
  });

  test('that was made anew while nodes ran: both sets of voters are named, and none is chosen', async () => {
    const cluster = await openShardCluster({ nodeCount: 5, voterCount: 3 });
    const empty = cluster.registry.backUp();
    for (const index of [0, 1, 2, 3, 4]) void cluster.start(index);
    await write(cluster, 'acknowledged');
    empty();
    cluster.registry.records.clear();
    const voters = cluster.nodes.slice(2).map(({ ref }) => ref);
    const first = { incarnation: 1, epoch: 0, primary: null, prevVoters: null, learners: [], nonce: '' };
    await cluster.registry.swap(0, { expected: 0, record: { ...first, voters } });
    await cluster.run(20_000);
    const [old] = cluster.nodes;
    expect(old?.node?.status()[0]).toMatchObject({ role: 'primary', isRegistryBehind: true });
    const facts = { found: await cluster.found(0, 1, 2, 3, 4), registered: await cluster.registry.read(0) };
    expect(planRebuild(facts, WRITING)).toMatchObject({
      kind: 'cannot',
      rivals: [cluster.nodes.slice(0, 3).map(({ ref }) => ref), voters],
    });
  });

  test('is rebuilt when the registry is empty', async () => {
    const cluster = await setBack();
    cluster.registry.records.clear();
    expect(await rebuild(cluster, 2, 3)).toBe('rebuild');
    for (const index of [1, 2, 3]) await cluster.start(index);
    expect(await read(cluster, 'after')).toBe('after');
  });

  test('is not held up for long by a replica that was not asked and has promised a higher epoch', async () => {
    const cluster = await setBack();
    expect(await rebuild(cluster, 1, 2)).toBe('rebuild');
    const { record } = must(cluster.registry.records.get(0), 'a record');
    // The third replica has promised an epoch to a primary that no other has heard of.
    const ahead = must(cluster.nodes[3], 'a node');
    await cluster.start(3);
    const stray = must(ahead.node?.replica(0), 'a replica');
    const { replicaId } = ahead.ref;
    const from = must(cluster.nodes[1], 'a node').ref;
    stray.onMessage(from.nodeId, {
      kind: 'fence',
      shard: 0,
      incarnation: 1,
      epoch: record.epoch + 3,
      from: from.replicaId,
      to: replicaId,
      seen: {
        ...SEEN,
        voters: record.voters,
        epoch: record.epoch + 3,
        rebuiltAtMs: WRITING.rebuiltAtMs,
        revision: 0,
      },
    });
    for (const index of [1, 2]) await cluster.start(index);
    await write(cluster, 'later');
    await cluster.until('all three follow', () =>
      [1, 2, 3].every((index) => {
        const status = cluster.nodes[index]?.node?.replica(0)?.status();
        return status !== undefined && status.appliedSeq === status.lastSeq && !status.isRegistryBehind;
      })
        ? true
        : undefined,
    );
    expect(await read(cluster, 'after')).toBe('after');
  });
});
