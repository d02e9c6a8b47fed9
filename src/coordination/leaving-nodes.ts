// The metadata nodes that should hold no shards, one document under `leaving-nodes`.
import type { LeavingNodesPort } from '../ports/coordination.ts';
import type { CoordinationContext } from './coordination-context.ts';
import { leavingNodesRecord } from './records.ts';

export function createLeavingNodes({ store, prefix }: CoordinationContext): LeavingNodesPort {
  const key = `${prefix}leaving-nodes`;
  return {
    async read() {
      const { row } = await store.get(key);
      if (row === undefined) return { nodes: [], revision: 0 };
      return { ...leavingNodesRecord.decode(key, row.value), revision: row.modRevision };
    },
    async swap({ expected, nodes }) {
      return store.put({ key, value: leavingNodesRecord.encode({ nodes: [...nodes] }), expected });
    },
  };
}
