// Which shards are not as the cluster was made to have them, by what the registry says: as `holdfast cluster status` raises
// alarms about them, and as whoever places shards measures them. Pure.

export interface UnsettledShards {
  /** Nobody was found to hold them yet. */
  nodeless: number;
  /** With fewer voters than each is to have. */
  fewVoters: number;
  /** Their voters are being changed, and those of before are still needed (R14). */
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
