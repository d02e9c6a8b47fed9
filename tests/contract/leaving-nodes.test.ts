// What every LeavingNodesPort promises (src/ports/coordination.ts).
import { describe, expect, test } from 'vitest';
import type { LeavingNode } from '../../src/ports/coordination.ts';
import { COORDINATORS, useCluster } from '../support/coordination/coordinators.ts';

const draining = (nodeId: string): LeavingNode => ({ nodeId, leave: 'draining' });

describe.each(COORDINATORS)('%s', (_name, openAll) => {
  const cluster = useCluster(openAll);

  test('at first no node leaves', async () => {
    expect(await cluster.connect('a').leavingNodes.read()).toEqual({ nodes: [], revision: 0 });
  });

  test('all read what was written; of swaps with the same expectation one wins', async () => {
    const outcomes = await Promise.all(
      ['n1', 'n2', 'n3'].map((nodeId) =>
        cluster.connect(nodeId).leavingNodes.swap({ expected: 0, nodes: [draining(nodeId)] }),
      ),
    );
    const winner = outcomes.findIndex(({ kind }) => kind === 'done');
    expect(outcomes.filter(({ kind }) => kind === 'done')).toHaveLength(1);
    const { leavingNodes } = cluster.connect('b');
    const { nodes, revision } = await leavingNodes.read();
    expect(nodes).toEqual([draining(`n${winner + 1}`)]);
    expect(outcomes[winner]).toEqual({ kind: 'done', revision });
    const both: LeavingNode[] = [...nodes, { nodeId: 'n4', leave: 'gone' }];
    expect(await leavingNodes.swap({ expected: revision, nodes: both })).toMatchObject({ kind: 'done' });
    expect((await cluster.connect('c').leavingNodes.read()).nodes).toEqual(both);
  });

  test('everything may be taken back', async () => {
    const { leavingNodes } = cluster.connect('a');
    await leavingNodes.swap({ expected: 0, nodes: [draining('n1')] });
    const { revision } = await leavingNodes.read();
    await leavingNodes.swap({ expected: revision, nodes: [] });
    expect((await leavingNodes.read()).nodes).toEqual([]);
  });
});
