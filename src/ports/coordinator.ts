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
