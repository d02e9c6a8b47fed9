// Refuses the start of a metadata node that an operator has removed (`holdfast cluster remove`).

import { Refusal } from '../../base/refusal.ts';
import { formatId } from '../../cli/format.ts';
import { voterCounts } from '../../coordination/place-shards.ts';
import type { Coordination } from '../../ports/coordination.ts';
import type { NodeId } from '../../ports/replication.ts';

/**
 * Throws {@link Refusal} if no shard needs the node: it would do nothing. While a shard has a voter there the node may
 * start, because that shard may lack what it has. Other rejections mean that the coordinator does not answer.
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
