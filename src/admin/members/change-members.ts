// holdfast cluster drain, undrain, remove: of disks and storage nodes, or of metadata nodes.

import { Refusal } from '../../base/refusal.ts';
import { NO_PLACEMENT, servedDisks } from '../../chunks/placement/placement.ts';
import { placementOf } from '../../chunks/placement/placement-document.ts';
import { formatId } from '../../cli/format.ts';
import type { Config } from '../../config/schema.ts';
import { systemClock } from '../../platform/system-clock.ts';
import type { Member } from '../../ports/members.ts';
import type { ShardRecord } from '../../ports/shard-registry.ts';
import { answer } from '../join-cluster.ts';
import { type OperatorTools, withOperatorTools } from '../operator-tools.ts';
import { createAskPrimary } from '../status/ask-primary.ts';
import { type DiskWish, writeDiskChange } from './change-disks.ts';
import { metadataNodeIds, writeNodeChange } from './change-nodes.ts';
import { knownDisks, nodesNamed } from './name-members.ts';
import { takesConnections, waitUntilGone } from './wait-until-gone.ts';
import { whyNeeded } from './why-needed.ts';

/** Throws {@link Refusal} when it cannot be, and then nothing has changed. */
export function changeMembers(config: Config, wish: DiskWish, print: (line: string) => void): Promise<void> {
  return withOperatorTools({ config, clusterId: undefined }, async (tools) => {
    const { coordination, identity, calls } = tools;
    if (identity === undefined) throw new Refusal('etcd does not say which shards there are');
    if (wish.change === 'remove' && (await forgetGateways(tools, wish.names, print))) return;
    const members = wish.change === 'remove' ? await runningMembers(tools, wish.names, print) : tools.members;
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
    const whyRequired = (disks: ReadonlySet<string>) => whyNeeded(ask, { shardCount, disks });
    await writeDiskChange({ coordination, members, print, whyRequired }, wish);
  });
}

function runningMembers(
  { coordination }: OperatorTools,
  names: readonly string[],
  print: (line: string) => void,
): Promise<readonly Member[]> {
  const readMembers = () => answer(coordination.members.current());
  return waitUntilGone({ clock: systemClock, readMembers, isReached: takesConnections, print }, names);
}

/** Gateways that ended without leaving, and will not return. False: the names mean something else. */
async function forgetGateways(
  { coordination }: OperatorTools,
  names: readonly string[],
  print: (line: string) => void,
): Promise<boolean> {
  const missing = await answer(coordination.members.missingGateways());
  const named = missing.filter(({ nodeId }) => names.some((name) => name !== '' && nodeId.startsWith(name)));
  if (named.length === 0) return false;
  if (named.length !== names.length)
    throw new Refusal('gateways are removed by a command of their own, each by its id');
  for (const { nodeId } of named) {
    await answer(coordination.members.forgetGateway(nodeId));
    print(`Gateway ${formatId(nodeId)} is not missed any more.`);
  }
  return true;
}

async function readRecords(
  { coordination }: OperatorTools,
  shardCount: number,
): Promise<(ShardRecord | undefined)[]> {
  const shards = Array.from({ length: shardCount }, (_, shard) => shard);
  const found = await answer(Promise.all(shards.map((shard) => coordination.registry.read(shard))));
  return found.map((registered) => registered?.record);
}
