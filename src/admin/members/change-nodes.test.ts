import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startCoordinatorWorld } from '../../../tests/support/coordination/coordinator-world.ts';
import { placedDisks } from '../../../tests/support/disks/placed-disks.ts';
import { makePlacement, NO_PLACEMENT } from '../../chunks/placement/placement.ts';
import type { Coordination, LeavingNode } from '../../ports/coordination.ts';
import type { Member } from '../../ports/members.ts';
import type { ShardRecord } from '../../ports/shard-registry.ts';
import type { DiskChange } from './change-disks.ts';
import { metadataNodeIds, writeNodeChange } from './change-nodes.ts';
import { nodesNamed } from './name-members.ts';

const ids = ['a', 'b', 'c', 'd'].map((letter) => letter.repeat(32));
const [A = '', B = '', C = '', D = ''] = ids;
const ref = (nodeId: string) => ({ nodeId, replicaId: `replica of ${nodeId}` });
const memberOf = (nodeId: string): Member => ({
  nodeId,
  role: 'metadata',
  address: `${nodeId[0]}:1`,
  zone: nodeId,
  version: '0',
  disks: [{ diskId: ref(nodeId).replicaId, capacityBytes: 0 }],
});
const recordOf = (voters: string[], more: Partial<ShardRecord> = {}): ShardRecord => ({
  incarnation: 1,
  epoch: 3,
  primary: ref(A),
  prevVoters: null,
  learners: [],
  nonce: '',
  voters: voters.map(ref),
  ...more,
});
const RECORDS = [
  recordOf([A, B, C]),
  recordOf([A, B, D]),
  recordOf([A, B, D], { prevVoters: [ref(A), ref(B), ref(C)] }),
  undefined,
];

let world: ReturnType<typeof startCoordinatorWorld>;
let coordination: Coordination;
let printed: string[] = [];
beforeEach(() => {
  world = startCoordinatorWorld();
  coordination = world.connect('operator');
  printed = [];
});
afterEach(() => world.ending.abort());

const said = async () => (await coordination.leavingNodes.read()).nodes;
const run = (change: DiskChange, nodeIds: string[], there: readonly string[] = ids): Promise<void> =>
  writeNodeChange(
    {
      leavingNodes: coordination.leavingNodes,
      records: RECORDS,
      replicaCount: 3,
      members: there.map(memberOf),
      print: (line) => void printed.push(line),
    },
    { change, nodeIds: new Set(nodeIds) },
  );

test('a node is drained, undrained, drained, stopped and removed', async () => {
  await run('drain', [C]);
  expect(await said()).toEqual([{ nodeId: C, leave: 'draining' }]);
  expect(printed).toEqual([expect.stringContaining('Metadata node cccccccc drains: 2 shards get another')]);
  await run('drain', [C]);
  expect(printed.slice(-2)).toEqual([
    'Nothing to do: it is so already.',
    expect.stringContaining('Metadata node cccccccc drains: 2 shards get another'),
  ]);
  await run('undrain', [C]);
  expect(await said()).toEqual([]);
  expect(printed.at(-1)).toBe('Metadata node cccccccc stays: it gets shards again.');
  await run('drain', [C]);
  await expect(run('remove', [C])).rejects.toThrow('metadata node cccccccc still runs at c:1');
  await run('remove', [C], [A, B, D]);
  expect(await said()).toEqual([{ nodeId: C, leave: 'gone' }]);
  await expect(run('drain', [C])).rejects.toThrow('cccccccc has been removed: `holdfast cluster undrain`');
});

test('a lost node is removed when enough others are there for all voters', async () => {
  await expect(run('remove', [C], [A, B])).rejects.toThrow(
    '2 other metadata nodes are there to hold shards, and each shard is to have 3 voters: add a node first, or',
  );
  expect(await said()).toEqual([]);
  await run('remove', [C], [A, B, D]);
  expect(printed.at(-1)).toContain('is removed: 2 shards get another voter in its place');
});

test('a node that holds nothing is forgotten, whatever other nodes there are', async () => {
  await run('remove', ['e'.repeat(32)], [A, B]);
  expect(printed.at(-1)).toBe('Metadata node eeeeeeee is removed: no shard has a voter there.');
});

test('leaving nodes do not count as replacements', async () => {
  await run('drain', [D]);
  await expect(run('drain', [C])).rejects.toThrow('2 other metadata nodes are there');
  await expect(run('drain', [C, D])).rejects.toThrow('2 other metadata nodes are there');
});

test('a command that loses a race decides again, by the new state', async () => {
  const { leavingNodes } = coordination;
  let isRaced = false;
  const raced = {
    ...leavingNodes,
    async swap(change: { expected: number; nodes: readonly LeavingNode[] }) {
      if (!isRaced) {
        isRaced = true;
        await leavingNodes.swap({ expected: 0, nodes: [{ nodeId: D, leave: 'draining' }] });
      }
      return leavingNodes.swap(change);
    },
  };
  const parts = { records: RECORDS, replicaCount: 3, members: ids.map(memberOf), print: () => undefined };
  const change = { change: 'drain', nodeIds: new Set([C]) } as const;
  await expect(writeNodeChange({ ...parts, leavingNodes: raced }, change)).rejects.toThrow(
    '2 other metadata nodes are there',
  );
  expect(await said()).toEqual([{ nodeId: D, leave: 'draining' }]);
});

describe('names', () => {
  const disks = placedDisks({ zones: 3, disksPerNode: 1 });
  const map = makePlacement({ disks, copies: 3 });
  const known = metadataNodeIds({
    members: [memberOf(A), { ...memberOf('f'.repeat(32)), role: 'gateway' }],
    records: RECORDS,
    leaving: [{ nodeId: 'abcd'.repeat(8) }],
  });
  const named = (...names: string[]) => nodesNamed(known, map, names);

  test('a metadata node is known if it runs, is in a record, or was named before', () => {
    expect([...known].sort()).toEqual([A, 'abcd'.repeat(8), B, C, D].sort());
  });

  test('nodes are named by id or prefix; names of disks are left alone', () => {
    expect(named(A.slice(0, 8), C)).toEqual(new Set([A, C]));
    expect(named('node-0-0')).toBeUndefined();
    expect(nodesNamed(known, NO_PLACEMENT, [A])).toEqual(new Set([A]));
    const retired = { ...map, retired: ['1234'.repeat(8)] };
    expect(nodesNamed(known, retired, ['12341234'])).toBeUndefined();
  });

  test('unknown, ambiguous and mixed names are refused', () => {
    expect(() => named('cccccccd')).toThrow(
      'there is no disk, storage node or metadata node cccccccd: did you mean cccccccc?',
    );
    expect(() => named('node-')).toThrow('node- may be any of node-0-0, node-1-0');
    expect(() => named(A, 'node-0-0')).toThrow('by commands of their own');
  });
});
