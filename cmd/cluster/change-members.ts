// holdfast cluster drain, undrain, remove: of disks and storage nodes, or of metadata nodes.
import { knownDisks } from '../../src/cluster/name-disks.ts';
import { nodesNamed } from '../../src/cluster/name-nodes.ts';
import { NO_PLACEMENT } from '../../src/cluster/placement.ts';
import { placementOf } from '../../src/cluster/placement-document.ts';
import { servedDisks } from '../../src/cluster/served-disks.ts';
import type { Config } from '../../src/config/schema.ts';
import { Refusal } from '../../src/lib/refusal.ts';
import type { ShardRecord } from '../../src/ports/shard-registry.ts';
import { createAskPrimary } from './ask-primary.ts';
import { type DiskWish, writeDiskChange } from './change-disks.ts';
import { metadataNodeIds, writeNodeChange } from './change-nodes.ts';
import { answer } from './join.ts';
import { type OperatorTools, withOperatorTools } from './operator-tools.ts';
import { whyNeeded } from './owed-by-disks.ts';

/** Throws {@link Refusal} when it cannot be, and then nothing has changed. */
export function changeMembers(config: Config, wish: DiskWish, print: (line: string) => void): Promise<void> {
  return withOperatorTools({ config, clusterId: undefined }, async (tools) => {
    const { coordination, identity, members, calls } = tools;
    if (identity === undefined) throw new Refusal('etcd does not say which shards there are');
    const { shardCount, replicaCount } = identity;
    const { placementMap, leavingNodes } = coordination;
    const records = await readRecords(tools, shardCount);
    const { nodes: leaving } = await answer(leavingNodes.read());
    const stored = await answer(placementMap.read());
    const map = stored === undefined ? NO_PLACEMENT : placementOf(stored.document);
    const nodeIds = nodesNamed(
      metadataNodeIds({ members, records, leaving }),
      knownDisks(map, servedDisks(members)),
      wish.names,
    );
    if (nodeIds !== undefined) {
      const parts = { leavingNodes, members, records, replicaCount, print };
      await writeNodeChange(parts, { change: wish.change, nodeIds });
      return;
    }
    const ask = createAskPrimary(calls, records);
    const whyOwed = (disks: ReadonlySet<string>) => whyNeeded(ask, { shardCount, disks });
    await writeDiskChange({ coordination, members, print, whyOwed }, wish);
  });
}

async function readRecords(
  { coordination }: OperatorTools,
  shardCount: number,
): Promise<(ShardRecord | undefined)[]> {
  const shards = Array.from({ length: shardCount }, (_, shard) => shard);
  const found = await answer(Promise.all(shards.map((shard) => coordination.registry.read(shard))));
  return found.map((registered) => registered?.record);
}
