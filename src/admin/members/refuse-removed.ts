// A metadata node that the operator has had forgotten (`holdfast cluster remove`) and that is started again with its folder.

import { Refusal } from '../../base/refusal.ts';
import { formatId } from '../../cli/format.ts';
import { voterCounts } from '../../coordination/place-shards.ts';
import type { Coordination } from '../../ports/coordination.ts';
import type { NodeId } from '../../ports/replication.ts';

/**
 * Throws {@link Refusal} for one that no shard needs any more: it would be there for nothing. While a shard has a voter there
 * it may start, because what it has may be what that shard lacks. Rejects otherwise when the coordinator is away.
 */
export async function refuseRemovedNode(
  { leavingNodes, registry }: Pick<Coordination, 'leavingNodes' | 'registry'>,
  { nodeId, folder, shardCount }: { nodeId: NodeId; folder: string; shardCount: number },
): Promise<void> {
  const { nodes } = await leavingNodes.read();
  if (!nodes.some((node) => node.nodeId === nodeId && node.leave === 'gone')) return;
  for (let shard = 0; shard < shardCount; shard++) {
    const registered = await registry.read(shard);
    if (voterCounts([registered?.record]).has(nodeId)) return;
  }
  throw new Refusal(
    `${folder} is the folder of metadata node ${formatId(nodeId)}, which was removed from the cluster: \`holdfast cluster undrain ${formatId(nodeId)}\` takes that back, and an empty folder is a new node`,
  );
}
