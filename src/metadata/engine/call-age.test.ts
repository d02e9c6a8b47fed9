// R48: what was sent long ago is not evaluated, by whatever clock it is long ago.
import { expect, test } from 'vitest';
import { openShardCluster, type ShardCluster } from '../../../tests/support/metadata/shard-cluster.ts';
import { must } from '../../base/assert.ts';
import type { ShardReply, Ticket } from '../../ports/shard-calls.ts';
import { LIMITS } from '../../types/limits.ts';

const NOTE = { bucketId: 'b', key: 'k', text: 'text' };

async function openThree() {
  const cluster = await openShardCluster({ nodeCount: 3 });
  for (const index of [0, 1, 2]) await cluster.start(index);
  const { node, kv } = await cluster.primary();
  const primary = must(node, 'a node that is up');
  const write = (ticket: Ticket): Promise<ShardReply> => {
    const call = {
      kind: 'execute',
      envelope: { shard: 0 },
      name: 'write-note' as never,
      body: NOTE,
    } as const;
    const reply = { now: undefined as ShardReply | undefined };
    void primary.handle({ ...call, ticket, budgetMs: LIMITS.metadataAnswerMaxMs }).then((got) => {
      reply.now = got;
    });
    return cluster.until('a reply', () => reply.now);
  };
  return { cluster, primary, kv, write };
}

/** The machine was stopped for so long: nothing ran, and its monotonic clock stood still. */
const suspend = (cluster: ShardCluster, ms: number) => cluster.shiftWall(ms);

test('a ticket ages while its machine is suspended', async () => {
  const { cluster, primary, write } = await openThree();
  const ticket = primary.ticket();
  suspend(cluster, LIMITS.ticketAgeMaxMs);
  expect((await write(ticket)).kind).toBe('done');
  const late = primary.ticket();
  suspend(cluster, LIMITS.ticketAgeMaxMs + 1);
  expect((await write(late)).kind).toBe('too-old');
  expect((await write(primary.ticket())).kind).toBe('done');
});

test('and while it runs', async () => {
  const { cluster, primary, write } = await openThree();
  const ticket = primary.ticket();
  expect((await write(ticket)).kind).toBe('done');
  await cluster.run(LIMITS.ticketAgeMaxMs + 10);
  expect((await write(ticket)).kind).toBe('too-old');
});

test('a ticket from before the wall clock was set back is refused: the machine may have been suspended, too', async () => {
  const { cluster, primary, write } = await openThree();
  const ticket = primary.ticket();
  cluster.shiftWall(-60_000);
  expect((await write(ticket)).kind).toBe('too-old');
  expect((await write(primary.ticket())).kind).toBe('done');
});

test('a waiting command ages while its machine is suspended', async () => {
  const { cluster, primary, kv, write } = await openThree();
  const reading = Promise.withResolvers<void>();
  const { getMany } = kv;
  kv.getMany = async (...args) => {
    await reading.promise;
    return getMany(...args);
  };
  const waiting = write(primary.ticket());
  await cluster.run(20);
  suspend(cluster, LIMITS.metadataAnswerMaxMs + 1);
  reading.resolve();
  expect((await waiting).kind).toBe('busy');
  expect((await write(primary.ticket())).kind).toBe('done');
});
