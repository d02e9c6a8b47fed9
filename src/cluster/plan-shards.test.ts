import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { WantedShard } from '../ports/shard-registry.ts';
import { type PlannedNode, type PresentShard, planShards } from './plan-shards.ts';

const nodes = (count: number, zoneCount = count): PlannedNode[] =>
  Array.from({ length: count }, (_, index) => ({
    ref: { nodeId: `n${index}`, replicaId: `r${index}` },
    zone: `z${index % zoneCount}`,
  }));

const present = (wishes: readonly WantedShard[]): PresentShard[] =>
  wishes.map(({ voters, primary }) => ({ voters, primary }));

function loads(wishes: readonly WantedShard[], of: (wish: WantedShard) => (string | undefined)[]): number[] {
  const counts = new Map<string, number>();
  for (const id of wishes.flatMap(of)) if (id !== undefined) counts.set(id, (counts.get(id) ?? 0) + 1);
  return [...counts.values()];
}
const voterIds = ({ voters }: WantedShard) => voters.map(({ replicaId }) => replicaId);

test('new shards are even over nodes, for voters and for primaries', () => {
  const wishes = planShards(Array(64).fill(undefined), nodes(5), 3);
  expect(wishes.every((wish) => new Set(voterIds(wish)).size === 3)).toBe(true);
  for (const [counts, allowed] of [
    [loads(wishes, voterIds), 1],
    [loads(wishes, ({ primary }) => [primary]), 2],
  ] as const)
    expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(allowed);
});

test('a plan that is carried out wants nothing else', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 40 }), (nodeCount, shardCount) => {
      const first = planShards(Array(shardCount).fill(undefined), nodes(nodeCount), 3);
      expect(planShards(present(first), nodes(nodeCount), 3)).toEqual(first);
    }),
  );
});

test('a node that joins takes its share, and no shard changes more than one voter', () => {
  const before = planShards(Array(60).fill(undefined), nodes(3), 3);
  const after = planShards(present(before), nodes(4), 3);
  expect(loads(after, voterIds)).toEqual([45, 45, 45, 45]);
  for (const [index, wish] of after.entries()) {
    const was = new Set(voterIds(before[index] as WantedShard));
    expect(voterIds(wish).filter((id) => !was.has(id)).length).toBeLessThanOrEqual(1);
  }
});

test('a node that is away keeps its shards, and leads none', () => {
  const before = planShards(Array(12).fill(undefined), nodes(4), 3);
  const after = planShards(present(before), nodes(3), 3);
  expect(after.map(voterIds)).toEqual(before.map(voterIds));
  expect(after.some(({ primary }) => primary === 'r3')).toBe(false);
});

test('a node with another database holds with it what it held, and nothing else moves', () => {
  const before = planShards(Array(12).fill(undefined), nodes(4), 3);
  const lost = nodes(4).map((node) =>
    node.ref.nodeId === 'n3' ? { ...node, ref: { nodeId: 'n3', replicaId: 'r3-new' } } : node,
  );
  const after = planShards(present(before), lost, 3);
  const renamed = before.map((wish) => voterIds(wish).map((id) => (id === 'r3' ? 'r3-new' : id)));
  expect(after.map(voterIds)).toEqual(renamed);
});

test('voters are in distinct zones as far as there are zones', () => {
  const wishes = planShards(Array(30).fill(undefined), nodes(6, 3), 3);
  const zoneOf = (id: string) => Number(id.slice(1)) % 3;
  expect(wishes.every((wish) => new Set(voterIds(wish).map(zoneOf)).size === 3)).toBe(true);
});

test('fewer nodes than replicas: an odd number of voters', () => {
  expect(planShards([undefined], nodes(2), 3)[0]?.voters).toHaveLength(1);
  expect(planShards([undefined], nodes(1), 3)[0]?.voters).toHaveLength(1);
});
