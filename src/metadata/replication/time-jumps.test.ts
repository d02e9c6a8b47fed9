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

async function ask<Result>(
  cluster: ShardCluster,
  kind: 'query' | 'execute',
  name: string,
  body: object = {},
): Promise<Result> {
  for (;;) {
    const reply = await cluster.call(await cluster.primary(), kind, name, body);
    if (reply.kind === 'not-primary') continue;
    expect(reply.kind).toBe('done');
    return (reply as unknown as { value: Result }).value;
  }
}

interface Times {
  nowMs: number;
  acceptedMs: number;
}

const gapOf = async (cluster: ShardCluster) => {
  const { nowMs, acceptedMs } = await ask<Times>(cluster, 'query', 'times');
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

  // Of what was not shown nothing is accepted.
  const atMostMs = gapMs - 1;
  expect(await ask(cluster, 'execute', 'accept-time-jump', { atMostMs })).toEqual({
    kind: 'grown',
    jumpMs: gapMs,
  });

  // Said by some operators at once, it is accepted once.
  const accepted = [1, 2, 3].map(() => ask(cluster, 'execute', 'accept-time-jump', { atMostMs: gapMs }));
  expect(await Promise.all(accepted)).toEqual(Array(3).fill({ kind: 'accepted', jumpMs: gapMs }));
  expect(await gapOf(cluster)).toBe(0);
  cluster.kill(cluster.nodes.indexOf(await cluster.primary()));
  expect(await gapOf(cluster)).toBe(0);
});

test('steps of less than 7 days add up, over takeovers', async () => {
  const cluster = await openShardCluster({ nodeCount: 3, voterCount: 3, machine });
  for (const index of [0, 1, 2]) await cluster.start(index);
  expect(await gapOf(cluster)).toBe(0);
  const beginMs = cluster.wallMs();
  for (let step = 1; step <= 4; step++) {
    cluster.shiftWall(6 * DAY);
    // Clocks are believed once a majority has said the same since they were set.
    for (let tries = 0; ; tries++) {
      const { nowMs, acceptedMs } = await ask<Times>(cluster, 'query', 'times');
      expect(acceptedMs - beginMs).toBeLessThan(7 * DAY);
      if (nowMs > cluster.wallMs() - 60_000) break;
      expect(tries).toBeLessThan(60);
      await cluster.run(1000);
    }
    const primary = cluster.nodes.indexOf(await cluster.primary());
    cluster.kill(primary);
    await cluster.primary();
    await cluster.start(primary);
  }
  const { nowMs, acceptedMs } = await ask<Times>(cluster, 'query', 'times');
  expect(nowMs - acceptedMs).toBeGreaterThanOrEqual(23 * DAY);
});
