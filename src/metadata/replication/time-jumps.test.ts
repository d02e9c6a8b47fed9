// Clocks of all voters that are set years ahead (R19): time follows, and what retention goes by does not, whoever leads,
// until the operator accepts it.
import { expect, test } from 'vitest';
import { noteMachine } from '../../../tests/scenarios/note-machine.ts';
import { openShardCluster, type ShardCluster } from '../../../tests/support/metadata/shard-cluster.ts';
import type { StateMachine } from '../../ports/state-machine.ts';

const DAY = 24 * 3600_000;
const JUMP_MS = 3650 * DAY;

/** Answers by what times it is asked. */
const machine: StateMachine = {
  ...noteMachine,
  queries: {
    ...noteMachine.queries,
    times: { run: async (_query: never, _state, { nowMs, acceptedMs }) => ({ nowMs, acceptedMs }) },
  },
};

async function ask<Result>(cluster: ShardCluster, kind: 'query' | 'execute', name: string): Promise<Result> {
  for (;;) {
    const reply = await cluster.call(await cluster.primary(), kind, name, {});
    if (reply.kind === 'not-primary') continue;
    expect(reply.kind).toBe('done');
    return (reply as unknown as { value: Result }).value;
  }
}

const gapOf = async (cluster: ShardCluster) => {
  const { nowMs, acceptedMs } = await ask<{ nowMs: number; acceptedMs: number }>(cluster, 'query', 'times');
  return nowMs - acceptedMs;
};

test('a jump of all clocks is kept through takeovers until it is accepted', async () => {
  const cluster = await openShardCluster({ nodeCount: 3, voterCount: 3, machine });
  for (const index of [0, 1, 2]) await cluster.start(index);
  expect(await gapOf(cluster)).toBe(0);
  cluster.shiftWall(JUMP_MS);
  // Clocks are believed once a majority has said the same since ours was set.
  await cluster.run(5000);
  const gapMs = await gapOf(cluster);
  expect(Math.abs(gapMs - JUMP_MS)).toBeLessThan(60_000);

  const primary = cluster.nodes.indexOf(await cluster.primary());
  cluster.kill(primary);
  expect(await gapOf(cluster)).toBe(gapMs);
  expect(await ask(cluster, 'query', 'get-time-jump')).toEqual({ jumpMs: gapMs });
  await cluster.start(primary);

  // Said by two operators at once, it is accepted once.
  const accepted = [1, 2, 3].map(() => ask(cluster, 'execute', 'accept-time-jump'));
  expect(await Promise.all(accepted)).toEqual(Array(3).fill({ kind: 'accepted', jumpMs: gapMs }));
  expect(await gapOf(cluster)).toBe(0);
  cluster.kill(cluster.nodes.indexOf(await cluster.primary()));
  expect(await gapOf(cluster)).toBe(0);
});
