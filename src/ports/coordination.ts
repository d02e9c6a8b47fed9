// All that a process of a cluster asks of its coordinator, over one connection. Nothing here is in the path of a
// request: with the coordinator away, and nothing else wrong, none fails.
import type { ClusterIdentityPort } from './cluster-identity.ts';
import type { MembersPort } from './members.ts';
import type { PlacementMapPort } from './placement-map.ts';
import type { NodeId } from './replication.ts';
import type { ShardRegistryPort } from './shard-registry.ts';

export interface Coordination {
  registry: ShardRegistryPort;
  identity: ClusterIdentityPort;
  members: MembersPort;
  jobLocks: JobLocksPort;
  placementMap: PlacementMapPort;
  leavingNodes: LeavingNodesPort;
}

// Who may act for a shard. Embedded: a counter in the local store; in a cluster: etcd (R2, R12).
// Contract (tests/contract/coordinator.test.ts): for one shard no two calls ever give the same epoch, whatever crashes
// in between, and a later call gives a higher one; what is returned is durable.

/** The right to write entries of one epoch. */
export interface EpochGrant {
  /** Changes only when a history was given up (R23). */
  incarnation: number;
  epoch: number;
}

export interface CoordinatorPort {
  /** Takes over the shard. Rejects when the coordinator cannot say whether it did. */
  acquire(shard: number): Promise<EpochGrant>;
}

// Who runs a job of which there is one in the cluster (R44). A lock says who should, not who does: a holder that stood
// still may go on after another has taken over, so every durable effect carries the token, and targets refuse lower ones.
// Contract (tests/contract/job-locks.test.ts): tokens of one name rise from holder to holder, in the order of waiting.

export interface JobLock {
  /** Of this holding; a later one of the same name has a greater one. */
  readonly token: number;
  /** Aborts when the lock may have gone to another. Measured by the holder's monotonic clock, so before it has. */
  readonly lost: AbortSignal;
  /** Lets the next one in at once, or, with the coordinator away, when the lease ends. Never rejects; safe to repeat. */
  release(): Promise<void>;
}

export interface JobLocksPort {
  /**
   * Waits its turn, through any absence of the coordinator. `name`: lower-case letters, digits and dashes.
   * Rejects with the reason of `signal` when it aborts while waiting; has no hold on the lock afterwards.
   */
  acquire(name: string, signal: AbortSignal): Promise<JobLock>;
  /** For the operator: who holds it, by the name that the holder's process gave. */
  holder(name: string): Promise<{ holder: string; token: number } | undefined>;
}

// What the operator has said about metadata nodes that are to hold no shards: one document, changed by compare-and-swap,
// so that of two operators the second one decides by what the first has said.
// Contract (tests/contract/leaving-nodes.test.ts): as that of the placement map (placement-map.ts).

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
