// What the operator has said about metadata nodes that are to hold no shards: one document, changed by compare-and-swap,
// so that of two operators the second one decides by what the first has said.
// Contract (tests/contract/leaving-nodes.test.ts): as that of the placement map (placement-map.ts).
import type { NodeId } from './replication.ts';

/** `draining`: it serves on until others have its shards. `gone`: it is lost, and is not waited for. */
export type NodeLeave = 'draining' | 'gone';

export interface LeavingNode {
  nodeId: NodeId;
  leave: NodeLeave;
}

export interface LeavingNodesPort {
  /** Linearizable; before the first word none, by revision 0. Rejects when the coordinator is away. */
  read(): Promise<{ nodes: LeavingNode[]; revision: number }>;
  /** `expected`: the revision that was read. Rejects when the outcome is not known; is not retried. */
  swap(change: {
    expected: number;
    nodes: readonly LeavingNode[];
  }): Promise<{ kind: 'done'; revision: number } | { kind: 'lost' }>;
}
