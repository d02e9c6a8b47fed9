import { expect, test } from 'vitest';
import { createMemoryCoordinator } from '../../platform/memory/memory-coordinator.ts';
import { systemClock } from '../../platform/system-clock.ts';
import type { NodeLeave } from '../../ports/leaving-nodes.ts';
import { refuseRemovedNode } from './refuse-removed.ts';

const NODE = 'ab'.repeat(16);
const OTHER = 'cd'.repeat(16);
const log = { debug() {}, info() {}, warn() {}, error() {} };

interface ClusterFacts {
  leave?: NodeLeave;
  voters: string[];
  prevVoters?: string[];
}

/** A cluster of two shards, of which the second one has these voters, and, while they change, had those of before. */
async function starting(said: ClusterFacts): Promise<void> {
  const memory = createMemoryCoordinator({ clock: systemClock, log, memberLeaseMs: 1000, jobLeaseMs: 1000 });
  const coordination = memory.connect('test');
  const refsOf = (nodeIds: string[]) => nodeIds.map((nodeId) => ({ nodeId, replicaId: nodeId }));
  const record = { incarnation: 1, epoch: 1, primary: null, learners: [], nonce: '' };
  const second = {
    ...{ ...record, voters: refsOf(said.voters) },
    prevVoters: said.prevVoters === undefined ? null : refsOf(said.prevVoters),
  };
  await coordination.registry.swap(0, {
    expected: 0,
    record: { ...record, voters: refsOf([OTHER]), prevVoters: null },
  });
  await coordination.registry.swap(1, { expected: 0, record: second });
  if (said.leave !== undefined)
    await coordination.leavingNodes.swap({ expected: 0, nodes: [{ nodeId: NODE, leave: said.leave }] });
  await refuseRemovedNode(coordination, { nodeId: NODE, folder: '/srv/metadata', shardCount: 2 });
}

test('a metadata node that was removed and that no shard needs is refused, with what to do', async () => {
  await expect(starting({ leave: 'gone', voters: [OTHER] })).rejects.toThrow(
    '/srv/metadata is the folder of metadata node abababab, which was removed from the cluster: `holdfast cluster undrain abababab` takes that back',
  );
});

test('one that a shard still needs may start, and so may one that drains, or of which nothing was said', async () => {
  const cases: ClusterFacts[] = [
    { leave: 'gone', voters: [NODE, OTHER] },
    { leave: 'gone', voters: [OTHER], prevVoters: [NODE] },
    { leave: 'draining', voters: [OTHER] },
    { voters: [OTHER] },
  ];
  for (const said of cases) await expect(starting(said)).resolves.toBeUndefined();
});
