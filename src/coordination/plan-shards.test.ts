import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { WantedShard } from '../ports/shard-registry.ts';
import { type NodeZones, type PlannedNode, type PresentShard, planShards } from './plan-shards.ts';

const nodes = (count: number, zoneCount = count): PlannedNode[] =>
  Array.from({ length: count }, (_, index) => ({
    ref: { nodeId: `n${index}`, replicaId: `r${index}` },
    zone: `z${index % zoneCount}`,
  }));

const zonesOf = (known: readonly PlannedNode[]): NodeZones =>
  new Map(known.map(({ ref, zone }) => [ref.nodeId, zone]));

/** Three voters for each shard; `leaving`: indexes of nodes; `known`: those whose zones are known. */
const planOf = (
  shards: readonly (PresentShard | undefined)[],
  there: readonly PlannedNode[],
  leaving: readonly number[] = [],
  known: readonly PlannedNode[] = there,
): WantedShard[] =>
  planShards(shards, {
    nodes: there,
    zones: zonesOf(known),
    replicaCount: 3,
    leaving: new Set(leaving.map((number) => `n${number}`)),
  });

const present = (wishes: readonly WantedShard[]): PresentShard[] =>
  wishes.map(({ voters, primary }) => ({ voters, primary }));

function loads(wishes: readonly WantedShard[], of: (wish: WantedShard) => (string | undefined)[]): number[] {
  const counts = new Map<string, number>();
  for (const id of wishes.flatMap(of)) if (id !== undefined) counts.set(id, (counts.get(id) ?? 0) + 1);
  return [...counts.values()];
}
const voterIds = ({ voters }: WantedShard) => voters.map(({ replicaId }) => replicaId);

test('spreads new shards evenly over nodes, both voters and primaries', () => {
  const wishes = planOf(Array(64).fill(undefined), nodes(5));
  expect(wishes.every((wish) => new Set(voterIds(wish)).size === 3)).toBe(true);
  for (const [counts, allowed] of [
    [loads(wishes, voterIds), 1],
    [loads(wishes, ({ primary }) => [primary]), 2],
  ] as const)
    expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(allowed);
});

test('wants nothing more when the plan is carried out', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 40 }), (nodeCount, shardCount) => {
      const first = planOf(Array(shardCount).fill(undefined), nodes(nodeCount));
      expect(planOf(present(first), nodes(nodeCount))).toEqual(first);
    }),
  );
});

test('gives a new node its share, and changes at most one voter of a shard', () => {
  const before = planOf(Array(60).fill(undefined), nodes(3));
  const after = planOf(present(before), nodes(4));
  expect(loads(after, voterIds)).toEqual([45, 45, 45, 45]);
  for (const [index, wish] of after.entries()) {
    const was = new Set(voterIds(before[index] as WantedShard));
    expect(voterIds(wish).filter((id) => !was.has(id)).length).toBeLessThanOrEqual(1);
  }
});

test('leaves a node that is away its shards, and lets it lead none', () => {
  const before = planOf(Array(12).fill(undefined), nodes(4));
  const after = planOf(present(before), nodes(3));
  expect(after.map(voterIds)).toEqual(before.map(voterIds));
  expect(after.some(({ primary }) => primary === 'r3')).toBe(false);
});

test('keeps the shards of a node that has a new database, and moves nothing else', () => {
  const before = planOf(Array(12).fill(undefined), nodes(4));
  const lost = nodes(4).map((node) =>
    node.ref.nodeId === 'n3' ? { ...node, ref: { nodeId: 'n3', replicaId: 'r3-new' } } : node,
  );
  const after = planOf(present(before), lost);
  const renamed = before.map((wish) => voterIds(wish).map((id) => (id === 'r3' ? 'r3-new' : id)));
  expect(after.map(voterIds)).toEqual(renamed);
});

test('puts voters into distinct zones as far as there are zones', () => {
  const wishes = planOf(Array(30).fill(undefined), nodes(6, 3));
  const zoneOf = (id: string) => Number(id.slice(1)) % 3;
  expect(wishes.every((wish) => new Set(voterIds(wish).map(zoneOf)).size === 3)).toBe(true);
});

describe('two nodes of one zone, and three of others', () => {
  const all = nodes(5).map((node, at) => (at === 3 ? { ...node, zone: 'z1' } : node));
  const zoneCounts = (wishes: readonly WantedShard[]) =>
    wishes.map(({ voters }) => new Set(voters.map(({ nodeId }) => zonesOf(all).get(nodeId))).size);
  const without = (number: number) => all.filter((_, at) => at !== number);
  const first = planOf(Array(64).fill(undefined), all);

  test('a voter that is replaced gets no place beside one that is away', () => {
    const after = planOf(present(first), without(1), [2], all);
    expect(after.flatMap(voterIds)).not.toContain('r2');
    expect(zoneCounts(after)).toEqual(Array(64).fill(3));
  });

  test('voters that have come together are parted when all are there, one of each shard', () => {
    const crowded = planOf(present(first), without(1), [2]);
    expect(zoneCounts(crowded)).toContain(2);
    expect(planOf(present(crowded), without(1), [2], all)).toEqual(crowded);
    const parted = planOf(present(crowded), all);
    expect(zoneCounts(parted)).toEqual(Array(64).fill(3));
    expect(planOf(present(parted), all)).toEqual(parted);
  });
});

test('uses an odd number of voters with fewer nodes than replicas', () => {
  expect(planOf([undefined], nodes(2))[0]?.voters).toHaveLength(1);
  expect(planOf([undefined], nodes(1))[0]?.voters).toHaveLength(1);
});

describe('nodes that an operator has told to leave', () => {
  const before = planOf(Array(12).fill(undefined), nodes(4));
  const without = (...numbers: number[]) => nodes(6).filter((_, number) => !numbers.includes(number));
  const newcomersOf = (after: readonly WantedShard[]) =>
    after.map((wish, index) =>
      voterIds(wish).filter((id) => !voterIds(before[index] as WantedShard).includes(id)),
    );

  test('a removed node is replaced by a new one, and nothing else moves', () => {
    const after = planOf(present(before), without(3, 5), [3]);
    expect(after.flatMap(voterIds)).not.toContain('r3');
    expect(after.every((wish) => new Set(voterIds(wish)).size === 3)).toBe(true);
    const replaced = before.map((wish) => (voterIds(wish).includes('r3') ? ['r4'] : []));
    expect(newcomersOf(after)).toEqual(replaced);
  });

  test('four nodes become three', () => {
    const after = planOf(present(before), nodes(3), [3]);
    expect(after.map((wish) => voterIds(wish).sort())).toEqual(Array(12).fill(['r0', 'r1', 'r2']));
    expect(loads(after, ({ primary }) => [primary])).toEqual([4, 4, 4]);
  });

  test('a draining node leads nothing and gets nothing, though it runs', () => {
    const after = planOf(present(before), nodes(4), [0]);
    expect(after.flatMap(voterIds)).not.toContain('r0');
    expect(after.map(({ primary }) => primary)).not.toContain('r0');
    expect(planOf(Array(8).fill(undefined), nodes(5), [0, 1]).flatMap(voterIds).sort()).toEqual(
      ['r2', 'r3', 'r4'].flatMap((id) => Array(8).fill(id)),
    );
  });

  test('a draining node that nobody can replace stays a voter, and does not lead', () => {
    const three = planOf(Array(4).fill(undefined), nodes(3));
    const after = planOf(present(three), nodes(3), [1]);
    expect(after.map(voterIds)).toEqual(three.map(voterIds));
    expect(after.map(({ primary }) => primary)).not.toContain('r1');
  });

  test('a draining node with a new database keeps its place with that one', () => {
    const three = planOf(Array(4).fill(undefined), nodes(3));
    const emptied = nodes(3).map((node, number) =>
      number === 1 ? { ...node, ref: { nodeId: 'n1', replicaId: 'r1-new' } } : node,
    );
    const after = planOf(present(three), emptied, [1]);
    expect(after.every((wish) => voterIds(wish).includes('r1-new'))).toBe(true);
  });

  test('two leaving voters of one shard are both replaced, into distinct zones', () => {
    const [a, b, c, d, e] = nodes(5) as [PlannedNode, PlannedNode, PlannedNode, PlannedNode, PlannedNode];
    const shard = { voters: [a, b, c].map(({ ref }) => ref), primary: 'r0' };
    const there = [a, c, { ...d, zone: 'z1' }, e];
    const [wish] = planOf([shard], there, [1, 2]);
    expect(wish).toEqual({ voters: [a, d, e].map(({ ref }) => ref), primary: 'r0' });
  });

  test('a node that may stay after all takes back what it was about to give', () => {
    const drained = planOf(present(before), nodes(4), [0]);
    const after = planOf(present(drained), nodes(4));
    expect(loads(after, voterIds)).toEqual([9, 9, 9, 9]);
  });

  test('no shard loses voters, and a plan that is carried out wants nothing more', () => {
    const numbers = fc.uniqueArray(fc.integer({ min: 0, max: 6 }), { maxLength: 5 });
    fc.assert(
      fc.property(fc.integer({ min: 3, max: 7 }), numbers, numbers, (nodeCount, away, leaving) => {
        const shards = present(planOf(Array(9).fill(undefined), nodes(nodeCount)));
        const there = nodes(nodeCount).filter((_, number) => !away.includes(number));
        const wishes = planOf(shards, there, leaving);
        for (const [index, wish] of wishes.entries()) {
          const had = voterIds(shards[index] as WantedShard);
          expect(new Set(voterIds(wish)).size).toBe(had.length);
          const leaves = (id: string) => leaving.includes(Number(id.slice(1)));
          const free = there.filter(
            ({ ref }) => !leaves(ref.replicaId) && !voterIds(wish).includes(ref.replicaId),
          );
          if (free.length > 0) expect(voterIds(wish).some(leaves)).toBe(false);
          expect(voterIds(wish).filter((id) => leaves(id) && !had.includes(id))).toEqual([]);
          expect(wish.primary !== undefined && leaves(wish.primary)).toBe(false);
        }
        expect(planOf(present(wishes), there, leaving)).toEqual(wishes);
      }),
    );
  });
});
