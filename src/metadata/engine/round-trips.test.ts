// How many messages of replicas an answer rests on: with those of gateways (gateway/s3/round-trips.test.ts) the table of
// design "Round trips".
import { expect, test } from 'vitest';
import { openShardCluster } from '../../../tests/support/metadata/shard-cluster.ts';
import type { ReplicaMessage } from '../../ports/replication.ts';

const NOTE = { bucketId: 'b', key: 'k', text: 'text' };

test('a write is answered after one message to each follower and the first answer, a read within the lease after none', async () => {
  const cluster = await openShardCluster({ nodeCount: 3 });
  for (const index of [0, 1, 2]) await cluster.start(index);
  const primary = await cluster.primary();
  await cluster.call(primary, 'execute', 'write-note', NOTE);
  // Between two heartbeats.
  cluster.sent.length = 0;
  await cluster.until('heartbeats', () => (cluster.sent.length >= 4 ? true : undefined));
  await cluster.run(20);

  cluster.sent.length = 0;
  const { bucketId, key } = NOTE;
  const found = await cluster.call(primary, 'query', 'read-note', { bucketId, key });
  expect(found).toMatchObject({ kind: 'done', value: { text: 'text' } });
  expect(cluster.sent).toEqual([]);

  expect((await cluster.call(primary, 'execute', 'write-note', NOTE)).kind).toBe('done');
  const kinds = cluster.sent.map((message) => [message.kind, entriesOf(message)]);
  expect(kinds.slice(0, 3)).toEqual([
    ['append', 1],
    ['append', 1],
    ['ack', 0],
  ]);
  expect(kinds.slice(3).filter(([kind]) => kind !== 'ack')).toEqual([]);
});

function entriesOf(message: ReplicaMessage): number {
  return message.kind === 'append' ? message.entries.length : 0;
}
