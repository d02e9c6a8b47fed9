// What a cluster is, written once when it is made and read by every process that joins: `holdfast cluster init`.
// Contract (tests/contract/cluster-identity.test.ts): of any number of `init` one wins, and it is never changed.

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

export interface ClusterIdentityPort {
  /**
   * Durable when it resolves. Throws Refusal when there is a cluster already, unless it is this very one, by its id: a
   * try whose answer was lost may be repeated. Rejects with another error when the outcome is not known.
   */
  init(identity: ClusterIdentity): Promise<void>;
  /** Linearizable; undefined: no cluster was made. Rejects when the coordinator is away. */
  read(): Promise<ClusterIdentity | undefined>;
}
