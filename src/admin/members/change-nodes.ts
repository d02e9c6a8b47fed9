// holdfast cluster drain, undrain, remove, for metadata nodes: writes the operator's wish into etcd by compare-and-swap.
// The shard placer carries it out (src/coordination/place-shards.ts).

import { Refusal } from '../../base/refusal.ts';
import { formatId } from '../../cli/format.ts';
import { voterCounts } from '../../coordination/place-shards.ts';
import type { LeavingNodesPort, NodeLeave } from '../../ports/coordination.ts';
import type { Member } from '../../ports/members.ts';
import type { NodeId } from '../../ports/replication.ts';
import type { ShardRecord } from '../../ports/shard-registry.ts';
import { answer } from '../join-cluster.ts';
import type { DiskChange } from './change-disks.ts';

/** Other writers are rare: after this many lost races something else is wrong. */
const TRIES_MAX = 5;

/** The state that each change records; undefined: none. */
const LEAVES: Record<DiskChange, NodeLeave | undefined> = {
  drain: 'draining',
  undrain: undefined,
  remove: 'gone',
};

export interface NodeChange {
  change: DiskChange;
  nodeIds: ReadonlySet<NodeId>;
}

export interface NodeChangeParts {
  leavingNodes: LeavingNodesPort;
  members: readonly Member[];
  /** Of all shards. */
  records: readonly (ShardRecord | undefined)[];
  /** Voters that each shard should have. */
  replicaCount: number;
  print(line: string): void;
}

/** Throws {@link Refusal} when it cannot be done, and then nothing has changed. */
export async function writeNodeChange(parts: NodeChangeParts, wish: NodeChange): Promise<void> {
  const leave = LEAVES[wish.change];
  const needing = voterCounts(parts.records);
  const sentence = (nodeId: NodeId) => sentenceOf(wish.change, nodeId, needing.get(nodeId) ?? 0);
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const { nodes, revision } = await answer(parts.leavingNodes.read());
    const leaves = new Map(nodes.map(({ nodeId, leave: was }) => [nodeId, was]));
    const changed = [...wish.nodeIds].filter((nodeId) => leaves.get(nodeId) !== leave);
    if (changed.length === 0) {
      parts.print('Nothing to do: it is so already.');
      if (leave !== undefined) for (const nodeId of wish.nodeIds) parts.print(sentence(nodeId));
      return;
    }
    refuse(parts, { ...wish, leaves });
    for (const nodeId of changed)
      if (leave === undefined) leaves.delete(nodeId);
      else leaves.set(nodeId, leave);
    const next = [...leaves].sort().map(([nodeId, leave]) => ({ nodeId, leave }));
    const swapped = await answer(parts.leavingNodes.swap({ expected: revision, nodes: next }));
    if (swapped.kind === 'lost') continue;
    for (const nodeId of changed) parts.print(sentence(nodeId));
    return;
  }
  throw new Refusal('the records of metadata nodes change all the time; run this again');
}

function refuse(
  { members, records, replicaCount }: NodeChangeParts,
  { change, nodeIds, leaves }: NodeChange & { leaves: ReadonlyMap<NodeId, NodeLeave> },
): void {
  if (change === 'undrain') return;
  const running = members.filter(({ role }) => role === 'metadata');
  for (const nodeId of nodeIds) {
    const node = `metadata node ${formatId(nodeId)}`;
    const address = running.find((member) => member.nodeId === nodeId)?.address;
    if (change === 'drain' && leaves.get(nodeId) === 'gone')
      throw new Refusal(`${node} has been removed: \`holdfast cluster undrain\` takes that back`);
    if (change === 'remove' && address !== undefined)
      throw new Refusal(`${node} still runs at ${address}: \`holdfast cluster drain\` it first, and stop it`);
  }
  // A node that no shard needs may be forgotten, whatever other nodes there are.
  const needing = voterCounts(records);
  if (change === 'remove' && ![...nodeIds].some((nodeId) => needing.has(nodeId))) return;
  const others = running.filter(({ nodeId }) => !nodeIds.has(nodeId) && !leaves.has(nodeId));
  if (others.length >= replicaCount) return;
  const few = `${others.length} other metadata nodes are there to hold shards, and each shard is to have ${replicaCount} voters`;
  const way = change === 'drain' ? '' : ', or start an empty one under its id';
  throw new Refusal(`${few}: add a node first${way}`);
}

function sentenceOf(change: DiskChange, nodeId: NodeId, voterCount: number): string {
  const node = `Metadata node ${formatId(nodeId)}`;
  if (change === 'undrain') return `${node} stays: it gets shards again.`;
  const what = change === 'drain' ? 'drains' : 'is removed';
  if (voterCount === 0) return `${node} ${what}: no shard has a voter there.`;
  return `${node} ${what}: ${voterCount} shards get another voter in its place. \`holdfast cluster status\` shows when it is done.`;
}

/** All nodes that the cluster knows, whether or not they run. */
export function metadataNodeIds(known: {
  members: readonly Member[];
  records: readonly (ShardRecord | undefined)[];
  leaving: readonly { nodeId: NodeId }[];
}): Set<NodeId> {
  const { members, records, leaving } = known;
  const replicas = records.flatMap((record) => [
    ...(record?.voters ?? []),
    ...(record?.prevVoters ?? []),
    ...(record?.learners ?? []),
    ...(record?.wanted?.voters ?? []),
  ]);
  const running = members.filter(({ role }) => role === 'metadata');
  return new Set([...running, ...replicas, ...leaving].map(({ nodeId }) => nodeId));
}
