// Counts shards that are not in their wanted state, by their records: for alarms of `holdfast cluster status`, and for the
// metrics of the shard placer. Pure.
import type { NodeId } from '../ports/replication.ts';
import type { NodeZones } from './plan-shards.ts';

export interface UnsettledShards {
  /** No node holds them yet. */
  nodeless: number;
  /** They have fewer voters than they should have. */
  fewVoters: number;
  /** Their voters are being changed, and previous ones are still needed (R14). */
  changing: number;
  /** Two of their voters are in one zone, though another zone has none. */
  crowded: number;
}

export interface ExpectedShards {
  shardCount: number;
  replicaCount: number;
  zones: NodeZones;
  /** The nodes that may hold them. */
  staying: readonly NodeId[];
}

/** `shards`: those that have a record. */
export function countUnsettled(
  shards: readonly { voters: readonly { nodeId: NodeId }[]; prevVoters: readonly unknown[] | null }[],
  { shardCount, replicaCount, zones, staying }: ExpectedShards,
): UnsettledShards {
  const isCrowded = (voters: readonly { nodeId: NodeId }[]) => {
    const taken = voters.flatMap(({ nodeId }) => zones.get(nodeId) ?? []);
    const free = staying.flatMap((nodeId) => zones.get(nodeId) ?? []).some((zone) => !taken.includes(zone));
    return free && new Set(taken).size < taken.length;
  };
  return {
    nodeless: shardCount - shards.length,
    fewVoters: shards.filter(({ voters }) => voters.length < replicaCount).length,
    changing: shards.filter(({ prevVoters }) => prevVoters !== null && prevVoters.length > 0).length,
    crowded: shards.filter(({ voters }) => isCrowded(voters)).length,
  };
}
