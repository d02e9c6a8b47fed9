import { expect, test } from 'vitest';
import { openShardCluster, type ShardCluster } from '../../../tests/support/metadata/shard-cluster.ts';

const BUCKET = 'b';

async function openThree(): Promise<ShardCluster> {
  const cluster = await openShardCluster({ nodeCount: 3 });
  for (const index of [0, 1, 2]) await cluster.start(index);
  return cluster;
}

async function write(cluster: ShardCluster, key: string, text: string): Promise<void> {
  for (;;) {
    const primary = await cluster.primary();
    const reply = await cluster.call(primary, 'execute', 'write-note', { bucketId: BUCKET, key, text });
    // Another leads now, and nothing was evaluated here.
    if (reply.kind === 'not-primary') continue;
    expect(reply).toMatchObject({ kind: 'done', value: { kind: 'written' } });
    return;
  }
}

async function read(cluster: ShardCluster, key: string): Promise<unknown> {
  const primary = await cluster.primary();
  const reply = await cluster.call(primary, 'query', 'read-note', { bucketId: BUCKET, key });
  expect(reply.kind).toBe('done');
  return reply.kind === 'done' && (reply.value as { text: string | null }).text;
}

test('three voters elect one primary, which serves what a majority has', async () => {
  const cluster = await openThree();
  await write(cluster, 'k', 'one');
  expect(await read(cluster, 'k')).toBe('one');
  await cluster.run(1000);
  const roles = cluster.nodes.map(({ node }) => node?.replica(0)?.status());
  expect(roles.map((status) => status?.role).sort()).toEqual(['follower', 'follower', 'primary']);
  expect(new Set(roles.map((status) => status?.appliedSeq)).size).toBe(1);
});

test('a primary that dies is followed by one with everything acknowledged', async () => {
  const cluster = await openThree();
  for (let i = 0; i < 20; i++) await write(cluster, `k${i}`, `text ${i}`);
  const first = await cluster.primary();
  cluster.kill(cluster.nodes.indexOf(first));
  for (let i = 0; i < 20; i++) expect(await read(cluster, `k${i}`)).toBe(`text ${i}`);
  await write(cluster, 'k', 'after');
  await cluster.start(cluster.nodes.indexOf(first));
  await cluster.run(3000);
  const statuses = cluster.nodes.map(({ node }) => node?.replica(0)?.status());
  expect(new Set(statuses.map((status) => status?.appliedSeq)).size).toBe(1);
  expect(statuses.every((status) => status?.state === 'live')).toBe(true);
});

test('a primary that is cut off answers nobody, and its own entries are cut', async () => {
  const cluster = await openThree();
  await write(cluster, 'k', 'before');
  const old = await cluster.primary();
  const at = cluster.nodes.indexOf(old);
  for (const other of [0, 1, 2]) if (other !== at) cluster.cut(at, other);
  const lost = cluster.call(old, 'execute', 'write-note', { bucketId: BUCKET, key: 'k', text: 'lost' });
  expect((await lost).kind).toBe('unknown');
  const next = await cluster.until('another primary', () =>
    cluster.nodes.find((node) => node !== old && node.node?.replica(0)?.status().role === 'primary'),
  );
  const reply = await cluster.call(next, 'query', 'read-note', { bucketId: BUCKET, key: 'k' });
  expect(reply).toMatchObject({ kind: 'done', value: { text: 'before' } });
  cluster.heal();
  await cluster.run(4000);
  expect(cluster.events).toContain('log-cut');
  expect(await read(cluster, 'k')).toBe('before');
});

test('a read of a primary without a lease waits until a majority has answered', async () => {
  const cluster = await openThree();
  await write(cluster, 'k', 'one');
  const primary = await cluster.primary();
  const at = cluster.nodes.indexOf(primary);
  for (const other of [0, 1, 2]) if (other !== at) cluster.cut(at, other);
  // The lease ends while nobody answers, and there is no other primary yet.
  await cluster.run(2700);
  const reading = cluster.call(primary, 'query', 'read-note', { bucketId: BUCKET, key: 'k' });
  expect((await reading).kind).toBe('unknown');
});

test('a shard grows by a learner, and shrinks, while it is written to', async () => {
  const cluster = await openShardCluster({ nodeCount: 4, voterCount: 3 });
  for (const index of [0, 1, 2, 3]) await cluster.start(index);
  for (let i = 0; i < 10; i++) await write(cluster, `k${i}`, `text ${i}`);
  await cluster.want([1, 2, 3]);
  for (let i = 10; i < 30; i++) {
    await write(cluster, `k${i}`, `text ${i}`);
    await cluster.run(200);
  }
  await cluster.until('the voters that are wanted', () => {
    const record = cluster.registry.records.get(0)?.record;
    const isThere =
      record?.prevVoters === null && record.voters.every(({ nodeId }) => !nodeId.startsWith('node0'));
    return isThere ? true : undefined;
  });
  for (let i = 0; i < 30; i++) expect(await read(cluster, `k${i}`)).toBe(`text ${i}`);
  await cluster.run(2000);
  const states = cluster.nodes.map(({ node }) => node?.replica(0)?.status().state);
  expect(states).toEqual(['removed', 'live', 'live', 'live']);
});

test('a voter that never answers again is replaced, whoever leads', async () => {
  const cluster = await openShardCluster({ nodeCount: 4, voterCount: 3 });
  for (const index of [0, 1, 2, 3]) await cluster.start(index);
  await write(cluster, 'k', 'before');
  const gone = cluster.nodes.indexOf(await cluster.primary());
  cluster.kill(gone);
  const others = [0, 1, 2, 3].filter((index) => index !== gone);
  await cluster.want(others);
  await cluster.until('the three that are left', () => {
    const record = cluster.registry.records.get(0)?.record;
    const isGone = record?.voters.every(({ nodeId }) => nodeId !== cluster.nodes[gone]?.ref.nodeId);
    return (isGone && record?.prevVoters === null) || undefined;
  });
  // The new one counts: one more may fail.
  cluster.kill(others.find((index) => index !== 3) ?? 0);
  await write(cluster, 'k2', 'after');
  expect(await read(cluster, 'k')).toBe('before');
});

test('a primary that drains hands over and is no voter any more', async () => {
  const cluster = await openShardCluster({ nodeCount: 4, voterCount: 3 });
  for (const index of [0, 1, 2, 3]) await cluster.start(index);
  await write(cluster, 'k', 'before');
  const draining = await cluster.primary();
  const at = cluster.nodes.indexOf(draining);
  await cluster.want([0, 1, 2, 3].filter((index) => index !== at));
  await cluster.until('it has been let go', () => {
    const record = cluster.registry.records.get(0)?.record;
    const isOut = record?.voters.every(({ nodeId }) => nodeId !== draining.ref.nodeId);
    return (isOut && record?.prevVoters === null) || undefined;
  });
  expect(await cluster.primary()).not.toBe(draining);
  expect(await read(cluster, 'k')).toBe('before');
});

test('a replica that lacks what the log no longer has gets a snapshot, and counts only when it is complete', async () => {
  const cluster = await openThree();
  const primary = await cluster.primary();
  const away = (cluster.nodes.indexOf(primary) + 1) % 3;
  cluster.kill(away);
  for (let i = 0; i < 10; i++) await write(cluster, `k${i}`, `text ${i}`);
  for (const { node } of cluster.nodes) await node?.replica(0)?.trim(Number.MAX_SAFE_INTEGER);
  await cluster.start(away);
  await write(cluster, 'k', 'during');
  await cluster.until('a whole replica', () =>
    cluster.events.includes('snapshot-taken') ? true : undefined,
  );
  await cluster.run(3000);
  cluster.kill(cluster.nodes.indexOf(primary));
  for (let i = 0; i < 10; i++) expect(await read(cluster, `k${i}`)).toBe(`text ${i}`);
  expect(await read(cluster, 'k')).toBe('during');
});

test('a log shorter than its witness does not count until it is refilled', async () => {
  const cluster = await openThree();
  for (let i = 0; i < 10; i++) await write(cluster, `k${i}`, `text ${i}`);
  const primary = await cluster.primary();
  const cutAt = (cluster.nodes.indexOf(primary) + 1) % 3;
  cluster.kill(cutAt);
  await cluster.cutLog(cutAt, 3);
  // With the primary gone too only one is left that has everything, and nobody may lead.
  cluster.kill(cluster.nodes.indexOf(primary));
  await cluster.start(cutAt);
  await cluster.run(8000);
  expect(cluster.nodes.some(({ node }) => node?.replica(0)?.status().role === 'primary')).toBe(false);
  await cluster.start(cluster.nodes.indexOf(primary));
  for (let i = 0; i < 10; i++) expect(await read(cluster, `k${i}`)).toBe(`text ${i}`);
  await cluster.until('it counts again', () =>
    cluster.nodes[cutAt]?.node?.replica(0)?.status().state === 'live' ? true : undefined,
  );
});

test('a removed replica whose node was restarted is added again', async () => {
  const cluster = await openShardCluster({ nodeCount: 4, voterCount: 3 });
  for (const index of [0, 1, 2, 3]) await cluster.start(index);
  const toVoters = async (...indices: number[]) => {
    await cluster.want(indices);
    await cluster.until(`the voters ${indices}`, () => {
      const record = cluster.registry.records.get(0)?.record;
      const ids = new Set(record?.voters.map(({ nodeId }) => nodeId));
      const isThere = indices.every((index) => ids.has(cluster.nodes[index]?.ref.nodeId ?? ''));
      return (isThere && record?.prevVoters === null) || undefined;
    });
  };
  for (let i = 0; i < 10; i++) await write(cluster, `k${i}`, `text ${i}`);
  await toVoters(1, 2, 3);
  await cluster.run(1000);
  cluster.kill(0);
  await cluster.start(0);
  await write(cluster, 'k', 'while it was away');
  await toVoters(0, 1, 2);
  await cluster.until('it counts again', () => {
    const { state, appliedSeq } = cluster.nodes[0]?.node?.replica(0)?.status() ?? {};
    return (state === 'live' && (appliedSeq ?? 0) > 10) || undefined;
  });
  expect(await read(cluster, 'k')).toBe('while it was away');
});

test('a primary that died is brought up to date by the log, though the next one has never received its messages', async () => {
  const cluster = await openThree();
  for (let i = 0; i < 10; i++) await write(cluster, `k${i}`, `text ${i}`);
  const first = await cluster.primary();
  await cluster.run(1000);
  for (const { node } of cluster.nodes) await node?.replica(0)?.trim(Number.MAX_SAFE_INTEGER);
  cluster.kill(cluster.nodes.indexOf(first));
  await write(cluster, 'k', 'after');
  await cluster.run(3000);
  await cluster.start(cluster.nodes.indexOf(first));
  await cluster.until('it has all', () => {
    const seqs = cluster.nodes.map(({ node }) => node?.replica(0)?.status().appliedSeq);
    return new Set(seqs).size === 1 || undefined;
  });
  expect(cluster.events).not.toContain('snapshot-sent');
});

/** Questions to the registry reject, and so do changes, until the function that is returned is called. */
function takeAway({ registry }: ShardCluster): () => void {
  const { read, swap } = registry;
  registry.read = () => Promise.reject(new Error('it is away'));
  registry.swap = () => Promise.reject(new Error('it is away'));
  return () => Object.assign(registry, { read, swap });
}

test('a primary that should hand over leads on while the registry is away', async () => {
  const cluster = await openThree();
  await write(cluster, 'k', 'one');
  await cluster.run(1000);
  const primary = await cluster.primary();
  const heir = cluster.nodes.find((node) => node !== primary)?.ref.replicaId ?? '';
  const voters = cluster.nodes.map(({ ref }) => ref);
  await cluster.register({ wanted: { voters, primary: heir } });
  const bringBack = takeAway(cluster);
  await cluster.run(5000);
  expect(await cluster.primary()).toBe(primary);
  await write(cluster, 'k', 'two');
  bringBack();
  await cluster.until('the one that is wanted', () => {
    const led = cluster.nodes.find(({ node }) => node?.replica(0)?.status().role === 'primary');
    return led?.ref.replicaId === heir || undefined;
  });
  expect(await read(cluster, 'k')).toBe('two');
});

for (const isDone of [false, true])
  test(`a registry that goes away during a hand-over stops no shard (the heir was ${isDone ? '' : 'not '}registered)`, async () => {
    const cluster = await openThree();
    await write(cluster, 'k', 'one');
    await cluster.run(1000);
    const primary = await cluster.primary();
    const heir = cluster.nodes.find((node) => node !== primary)?.ref.replicaId ?? '';
    const { swap } = cluster.registry;
    const leader = () => cluster.registry.records.get(0)?.record.primary?.replicaId;
    let bringBack: (() => void) | undefined;
    await cluster.register({ wanted: { voters: cluster.nodes.map(({ ref }) => ref), primary: heir } });
    cluster.registry.swap = async (shard, change) => {
      if (isDone) await swap(shard, change);
      bringBack ??= takeAway(cluster);
      throw new Error('it went away');
    };
    const back = await cluster.until('the hand-over', () => bringBack);
    expect(leader()).toBe(isDone ? heir : primary.ref.replicaId);
    await cluster.run(1000);
    await write(cluster, 'k', 'two');
    back();
    cluster.registry.swap = swap;
    await cluster.until('the one that is wanted', () => {
      const led = cluster.nodes.find(({ node }) => node?.replica(0)?.status().role === 'primary');
      return led?.ref.replicaId === heir || undefined;
    });
    expect(await read(cluster, 'k')).toBe('two');
  });

test('a planned hand-over takes one epoch, and needs no permission', async () => {
  const cluster = await openThree();
  await write(cluster, 'k', 'one');
  await cluster.run(1000);
  const primary = await cluster.primary();
  const epoch = cluster.registry.records.get(0)?.record.epoch ?? 0;
  const heir = cluster.nodes.find((node) => node !== primary);
  const from = cluster.sent.length;
  await cluster.register({
    wanted: { voters: cluster.nodes.map(({ ref }) => ref), primary: heir?.ref.replicaId ?? '' },
  });
  await cluster.until('the heir', () => heir?.node?.replica(0)?.status().role === 'primary' || undefined);
  expect(heir?.node?.replica(0)?.status().epoch).toBe(epoch + 1);
  expect(cluster.sent.slice(from)).not.toContainEqual(expect.objectContaining({ kind: 'pre-fence' }));
  expect(await read(cluster, 'k')).toBe('one');
});

for (const isDone of [false, true])
  test(`a registry that goes away during a change of voters stops no shard (the change was ${isDone ? '' : 'not '}done)`, async () => {
    const cluster = await openShardCluster({ nodeCount: 4, voterCount: 3 });
    for (const index of [0, 1, 2, 3]) await cluster.start(index);
    await write(cluster, 'k', 'one');
    const at = cluster.nodes.indexOf(await cluster.primary());
    const { swap } = cluster.registry;
    let bringBack: (() => void) | undefined;
    cluster.registry.swap = async (shard, change) => {
      if (bringBack !== undefined || change.record.prevVoters === null) return swap(shard, change);
      if (isDone) await swap(shard, change);
      bringBack = takeAway(cluster);
      throw new Error('it went away');
    };
    const [kept = 0] = [0, 1, 2].filter((index) => index !== at);
    await cluster.want([at, kept, 3]);
    const back = await cluster.until('the change', () => bringBack);
    await cluster.run(1000);
    await write(cluster, 'k', 'two');
    back();
    await cluster.until('the voters that are wanted', () => {
      const record = cluster.registry.records.get(0)?.record;
      const ids = record?.voters.map(({ nodeId }) => nodeId) ?? [];
      return (record?.prevVoters === null && ids.includes(cluster.nodes[3]?.ref.nodeId ?? '')) || undefined;
    });
    expect(await read(cluster, 'k')).toBe('two');
  });

test('an epoch that was taken, and in which nobody leads, ends the one before', async () => {
  const cluster = await openThree();
  await write(cluster, 'k', 'one');
  await cluster.run(1000);
  const primary = await cluster.primary();
  const other = cluster.nodes.find((node) => node !== primary)?.ref;
  const epoch = (cluster.registry.records.get(0)?.record.epoch ?? 0) + 1;
  await cluster.register({ epoch, primary: other ?? null });
  await cluster.until('a later epoch', () => {
    const statuses = cluster.nodes.map(({ node }) => node?.replica(0)?.status());
    return statuses.some((status) => status?.role === 'primary' && status.epoch >= epoch) || undefined;
  });
  expect(await read(cluster, 'k')).toBe('one');
});
