// Metadata nodes that leave by the operator's word, as `holdfast cluster status` tells of them. Pure.
import { voterCounts } from '../coordination/place-shards.ts';
import type { LeavingNode, NodeLeave } from '../ports/leaving-nodes.ts';
import type { Member } from '../ports/members.ts';
import type { NodeId } from '../ports/replication.ts';
import type { ShardRecord } from '../ports/shard-registry.ts';
import { short } from './operator-tools.ts';

export interface LeavingNodeStatus {
  nodeId: NodeId;
  leave: NodeLeave;
  /** It runs. */
  isThere: boolean;
  /** Shards that need it still. */
  voterCount: number;
}

/** Without those that are removed and of which nothing is left: they are no part of the cluster any more. */
export function describeLeaving(
  nodes: readonly LeavingNode[],
  { members, records }: { members: readonly Member[]; records: readonly (ShardRecord | undefined)[] },
): LeavingNodeStatus[] {
  const needing = voterCounts(records);
  return nodes.flatMap(({ nodeId, leave }) => {
    const isThere = members.some((member) => member.nodeId === nodeId);
    const voterCount = needing.get(nodeId) ?? 0;
    if (leave === 'gone' && !isThere && voterCount === 0) return [];
    return [{ nodeId, leave, isThere, voterCount }];
  });
}

/** One of each that is as the operator wants it, and of each that is on the way there. */
export function leavingSentences(leaving: readonly LeavingNodeStatus[]): string[] {
  return leaving.flatMap(({ nodeId, leave, isThere, voterCount }) => {
    const node = `Metadata node ${short(nodeId)}`;
    if (leave === 'gone')
      return isThere
        ? [`${node} was removed and runs: it gets no shards until \`holdfast cluster undrain\`.`]
        : [];
    if (voterCount > 0) return [`${node} drains: ${voterCount} shards have a voter there still.`];
    const last = isThere ? 'it may be stopped and removed' : 'it may be removed';
    return [`${node} drains: no shard has a voter there, ${last}.`];
  });
}

/** What is not as the operator wants it: shards that wait for another voter, and nobody who could be one. */
export function alarmsOfLeaving(
  leaving: readonly LeavingNodeStatus[],
  { members, replicaCount }: { members: readonly Member[]; replicaCount: number },
): string[] {
  const gone = leaving.filter(({ leave, voterCount }) => leave === 'gone' && voterCount > 0);
  const alarms = gone.map(
    ({ nodeId, voterCount }) =>
      `metadata node ${short(nodeId)} is removed: ${voterCount} shards wait for another voter`,
  );
  const ids = new Set(leaving.map(({ nodeId }) => nodeId));
  const stayingCount = members.filter(({ role, nodeId }) => role === 'metadata' && !ids.has(nodeId)).length;
  if (stayingCount < replicaCount && leaving.some(({ voterCount }) => voterCount > 0))
    alarms.push(
      `shards cannot leave metadata nodes that are drained or removed: ${stayingCount} others are there, and ${replicaCount} are needed`,
    );
  return alarms;
}
