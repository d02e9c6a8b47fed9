// What is wrong with shards, in sentences: of the cluster as it runs, and after disasters (R23). Pure.
import { countUnsettled } from '../coordination/see-shards.ts';
import type { ClusterIdentity } from '../ports/cluster-identity.ts';
import type { NodeId } from '../ports/replication.ts';
import type { ReplicaStatus } from '../ports/shard-calls.ts';
import type { HistoryRecord } from '../types/records/rows.ts';
import { short } from './operator-tools.ts';
import type { ShardStatus } from './status.ts';

/** Entries behind that are worth a word. */
export const LAG_SHOWN_MIN = 1000;

/** What each metadata node that answers says of its replicas. */
export type Said = ReadonlyMap<NodeId, readonly ReplicaStatus[]>;

/** R23: of shards that have gone on with one replica, and whose operator has not confirmed it. */
export type Doubts = ReadonlyMap<number, HistoryRecord>;

/** As people read times. */
export const timeText = (timeMs: number) => `${new Date(timeMs).toISOString().slice(0, 19)}Z`;

export function alarmsOfShards(
  shards: readonly ShardStatus[],
  {
    said,
    identity: { shardCount, replicaCount },
    gone,
  }: {
    said: Said;
    identity: ClusterIdentity;
    /** Nodes that are not waited for: that they do not answer is no news. */
    gone: ReadonlySet<NodeId>;
  },
): string[] {
  const alarms: string[] = [];
  const { nodeless, fewVoters, changing } = countUnsettled(shards, { shardCount, replicaCount });
  if (fewVoters > 0) alarms.push(`${fewVoters} shards have fewer than ${replicaCount} voters`);
  if (nodeless > 0) alarms.push(`${nodeless} shards have no nodes yet`);
  if (changing > 0) alarms.push(`${changing} shards change their voters: those of before are still needed`);
  const unheard = new Map<NodeId, number>();
  for (const { shard, isOpen, voters, verification } of shards) {
    if (!isOpen) alarms.push(`shard ${shard} is not open`);
    const mismatchAtMs = verification?.mismatchAtMs ?? null;
    if (mismatchAtMs !== null)
      alarms.push(
        `shard ${shard}: its replicas were found to differ at ${timeText(mismatchAtMs)}: the log of its primary has \`state-differs\``,
      );
    for (const { nodeId, state, lag = 0 } of voters) {
      if (!said.has(nodeId)) {
        if (!gone.has(nodeId)) unheard.set(nodeId, (unheard.get(nodeId) ?? 0) + 1);
      } else if (state !== 'live') alarms.push(`shard ${shard}: the replica of ${short(nodeId)} is ${state}`);
      else if (lag > LAG_SHOWN_MIN) alarms.push(`shard ${shard}: ${short(nodeId)} lacks ${lag} entries`);
    }
  }
  // One line for a node, however many shards it has.
  for (const [nodeId, count] of unheard)
    alarms.push(`metadata node ${short(nodeId)} does not answer: a voter of ${count} shards`);
  for (const [nodeId, statuses] of said)
    if (statuses.some(({ isTimeBelieved }) => !isTimeBelieved))
      alarms.push(`the clock of ${short(nodeId)} differs from a majority`);
  return alarms;
}

/** R23: what the operator has to look after before all is as it was. */
export function alarmsOfDisasters({
  said,
  doubts,
  shardCount,
}: {
  said: Said;
  doubts: Doubts;
  shardCount: number;
}): string[] {
  const alarms: string[] = [];
  for (const [nodeId, statuses] of said) {
    const behind = statuses.filter(({ isRegistryBehind }) => isRegistryBehind).map(({ shard }) => shard);
    if (behind.length > 0)
      alarms.push(
        `etcd is behind what ${short(nodeId)} has seen of shards ${behind.join(', ')}: stop the nodes and run \`holdfast cluster rebuild-coordination\``,
      );
    const given = statuses.filter(({ state }) => state === 'superseded').map(({ shard }) => shard);
    if (given.length > 0)
      alarms.push(
        `${short(nodeId)} has rows of histories that were given up, of shards ${given.join(', ')}: save what you want of them, then \`holdfast shard discard\``,
      );
  }
  for (const [shard, { assertedBy }] of doubts)
    alarms.push(
      `shard ${shard} was recovered and frees nothing: ${assertedBy.length} of ${shardCount} shards have told what they hold of it${assertedBy.length === shardCount ? ', `holdfast shard confirm` ends this' : ''}`,
    );
  return alarms;
}
