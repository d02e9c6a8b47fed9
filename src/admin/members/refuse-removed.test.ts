import { expect, test } from 'vitest';
import { createMemoryCoordinator } from '../../platform/memory/memory-coordinator.ts';
import { systemClock } from '../../platform/system-clock.ts';
import type { NodeLeave } from '../../ports/coordination.ts';
import { refuseRemovedNode } from './refuse-removed.ts';

const NODE = 'ab'.repeat(16);
const OTHER = 'cd'.repeat(16);
const log = { debug() {}, info() {}, warn() {}, error() {} };

interface ClusterFacts {
  leave?: NodeLeave;
  voters: string[];
  prevVoters?: string[];
}

/** Starts a node of a cluster with two shards; the second one has these voters and, during a change, these previous ones. */
async function starting(facts: ClusterFacts): Promise<void> {
  const memory = createMemoryCoordinator({ clock: systemClock, log, memberLeaseMs: 1000, jobLeaseMs: 1000 });
  const coordination = memory.connect('test');
  const refsOf = (nodeIds: string[]) => nodeIds.map((nodeId) => ({ nodeId, replicaId: nodeId }));
  const record = { incarnation: 1, epoch: 1, primary: null, learners: [], nonce: '' };
  const second = {
    ...record,
    voters: refsOf(facts.voters),
    prevVoters: facts.prevVoters === undefined ? null : refsOf(facts.prevVoters),
  };
  await coordination.registry.swap(0, {
    expected: 0,
    record: { ...record, voters: refsOf([OTHER]), prevVoters: null },
  });
  await coordination.registry.swap(1, { expected: 0, record: second });
  if (facts.leave !== undefined)
    await coordination.leavingNodes.swap({ expected: 0, nodes: [{ nodeId: NODE, leave: facts.leave }] });
  await refuseRemovedNode(coordination, { nodeId: NODE, folder: '/srv/metadata', shardCount: 2 });
}

test('a removed metadata node that no shard needs is refused, with what to do', async () => {
  await expect(starting({ leave: 'gone', voters: [OTHER] })).rejects.toThrow(
    '/srv/metadata is the folder of metadata node abababab, which was removed from the cluster: `holdfast cluster undrain abababab` takes that back',
  );
});

test('a node that a shard needs may start, and so may a draining one, or one without a mark', async () => {
  const cases: ClusterFacts[] = [
    { leave: 'gone', voters: [NODE, OTHER] },
    { leave: 'gone', voters: [OTHER], prevVoters: [NODE] },
    { leave: 'draining', voters: [OTHER] },
    { voters: [OTHER] },
  ];
  for (const facts of cases) await expect(starting(facts)).resolves.toBeUndefined();
});
