// What a cluster is, written once when it is made and read by every process that joins: `holdfast cluster init`.
// Contract (tests/contract/cluster-identity.test.ts): of any number of `init` one wins, and it is never changed,
// but for the mark of a rebuild.

export interface ClusterIdentity {
  /** Random, 32 hex digits. */
  clusterId: string;
  shardCount: number;
  /** Voters of each shard. */
  replicaCount: number;
  /** Copies of each chunk. */
  chunkCopies: number;
  /** Of the key that wraps the others when the cluster is made. */
  masterKeyId: string;
  /** Of what its nodes store: a program that knows only older ones must not join. */
  formatVersion: number;
}

/** Whether the coordinator has a certain cluster; `rebuilt`: what it knows of it was lost once, and may not be all. */
export type ClusterState = 'as-made' | 'rebuilt' | 'unknown';

export interface ClusterIdentityPort {
  /**
   * Durable when it resolves. Throws Refusal when there is a cluster already, unless it is this very one, by its id: a
   * try whose answer was lost may be repeated. Rejects with another error when the outcome is not known.
   * `isRebuilt`: it is of a coordinator that was lost or set back. The one that is there is marked so, and stays so.
   */
  init(identity: ClusterIdentity, how?: { isRebuilt: boolean }): Promise<void>;
  /** Linearizable; undefined: no cluster was made. Rejects when the coordinator is away. */
  read(): Promise<ClusterIdentity | undefined>;
  /** Linearizable. Rejects when the coordinator is away. */
  stateOf(clusterId: string): Promise<ClusterState>;
}
