// Events over takeovers: each that was acknowledged is there once, in its order, whoever leads, and so is what was taken.
import { expect, test } from 'vitest';
import { BUCKET, BUCKET_NAME, etagOf, kek, OWNER } from '../../../tests/support/metadata/metadata-shards.ts';
import { openShardCluster, type ShardCluster } from '../../../tests/support/metadata/shard-cluster.ts';
import type { CommandName, CommandOf, OutcomeOf, ResultOf } from '../../ports/metadata/port.ts';
import type { ObjectKey } from '../../types/names.ts';
import { NO_ORIGINALS } from '../../types/originals.ts';
import { EMPTY_MANIFEST } from '../../types/version.ts';
import { metadataMachine } from '../state-machine.ts';

async function open(): Promise<ShardCluster> {
  const cluster = await openShardCluster({ nodeCount: 3, machine: metadataMachine });
  for (const index of [0, 1, 2]) await cluster.start(index);
  return cluster;
}

/** As a gateway sends it: under the same request id until it is answered. */
async function execute<N extends CommandName>(
  cluster: ShardCluster,
  name: N,
  command: CommandOf<N>,
  requestId: string,
): Promise<OutcomeOf<N>> {
  for (;;) {
    const reply = await cluster.call(await cluster.primary(), 'execute', name, command, requestId);
    if (reply.kind === 'done') return reply.value as OutcomeOf<N>;
  }
}

async function list(cluster: ShardCluster): Promise<ResultOf<'list-events'>> {
  const query = { consumer: 'feed', limit: 1000 };
  for (;;) {
    const reply = await cluster.call(await cluster.primary(), 'query', 'list-events', query);
    if (reply.kind === 'done') return reply.value as ResultOf<'list-events'>;
  }
}

function put(cluster: ShardCluster, key: string) {
  const version = {
    sizeBytes: 0,
    etag: etagOf(key),
    owner: OWNER,
    kek,
    originals: NO_ORIGINALS,
    manifest: EMPTY_MANIFEST,
  };
  const command = { bucketId: BUCKET, key: key as ObjectKey, version, data: { births: [], links: [] } };
  return execute(cluster, 'commit-version', command, `put ${key}`);
}

test('none is lost and none is told twice, whether a request is sent again or the primary changes', async () => {
  const cluster = await open();
  await execute(cluster, 'create-bucket', { bucketId: BUCKET, name: BUCKET_NAME, owner: OWNER }, 'create');
  const config = { bucketId: BUCKET, kind: 'events' } as const;
  await execute(cluster, 'set-bucket-config', { ...config, document: { consumers: ['feed'] } }, 'config');
  const keys: string[] = [];
  for (let round = 0; round < 4; round++) {
    for (let count = 0; count < 5; count++) {
      const key = `${round}-${count}`;
      keys.push(key);
      await put(cluster, key);
    }
    const last = keys.at(-1) as string;
    const primary = await cluster.primary();
    const index = cluster.nodes.indexOf(primary);
    cluster.kill(index);
    // Its answer may have been lost: the next primary knows it.
    await put(cluster, last);
    if (round === 2) {
      const upTo = { incarnation: 1, seq: 7 };
      await execute(cluster, 'take-events', { consumer: 'feed', upTo }, 'take');
    }
    await cluster.start(index);
  }
  const { events, lostCount, isAll } = await list(cluster);
  expect(events.map(({ event }) => event.key)).toEqual(keys.slice(7));
  expect(events.map(({ seq }) => seq)).toEqual(keys.map((_, at) => at).slice(7));
  expect([lostCount, isAll]).toEqual([0, true]);
});

test('what a primary wrote and nobody else got is no event, and its number goes to another one', async () => {
  const cluster = await open();
  await execute(cluster, 'create-bucket', { bucketId: BUCKET, name: BUCKET_NAME, owner: OWNER }, 'create');
  const config = { bucketId: BUCKET, kind: 'events' } as const;
  await execute(cluster, 'set-bucket-config', { ...config, document: { consumers: ['feed'] } }, 'config');
  await put(cluster, 'a');
  const primary = await cluster.primary();
  const index = cluster.nodes.indexOf(primary);
  const others = [0, 1, 2].filter((each) => each !== index);
  for (const other of others) cluster.cut(index, other);
  const command = { bucketId: BUCKET, owner: OWNER, items: [{ key: 'a' as ObjectKey }] };
  const { node } = primary;
  if (node === undefined) throw new Error('it is up');
  void node.handle({
    kind: 'execute',
    envelope: { shard: 0, requestId: 'lost' },
    name: 'delete-versions',
    body: command,
    ticket: node.ticket(),
    budgetMs: 10_000,
  });
  await cluster.run(100);
  cluster.kill(index);
  await put(cluster, 'b');
  cluster.heal();
  await cluster.start(index);
  await cluster.run(4000);
  const { events } = await list(cluster);
  expect(events.map(({ seq, event }) => [seq, event.type, event.key])).toEqual([
    [0, 's3:ObjectCreated:Put', 'a'],
    [1, 's3:ObjectCreated:Put', 'b'],
  ]);
});
