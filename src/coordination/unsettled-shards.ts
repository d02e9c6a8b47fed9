// Counts shards that are not in their wanted state, by their records: for alarms of `holdfast cluster status`, and for the
// metrics of the shard placer. Pure.

export interface UnsettledShards {
  /** No node holds them yet. */
  nodeless: number;
  /** They have fewer voters than they should have. */
  fewVoters: number;
  /** Their voters are being changed, and previous ones are still needed (R14). */
  changing: number;
}

/** `shards`: those that have a record. */
export function countUnsettled(
  shards: readonly { voters: readonly unknown[]; prevVoters: readonly unknown[] | null }[],
  { shardCount, replicaCount }: { shardCount: number; replicaCount: number },
): UnsettledShards {
  return {
    nodeless: shardCount - shards.length,
    fewVoters: shards.filter(({ voters }) => voters.length < replicaCount).length,
    changing: shards.filter(({ prevVoters }) => prevVoters !== null && prevVoters.length > 0).length,
  };
}
