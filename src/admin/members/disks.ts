// holdfast cluster disks: the disks of the placement map and their states.

import { Refusal } from '../../base/refusal.ts';
import { servedDisks } from '../../chunks/placement/placement.ts';
import { holdings, newDisks } from '../../chunks/placement/placement-changes.ts';
import { placementOf } from '../../chunks/placement/placement-document.ts';
import { formatBytes, formatCount, formatId, formatTable } from '../../cli/format.ts';
import type { Config } from '../../config/schema.ts';
import type { Coordination } from '../../ports/coordination.ts';
import type { Member } from '../../ports/members.ts';
import type { PlacedDisk, PlacementMap } from '../../ports/placement.ts';
import { answer } from '../join-cluster.ts';
import { withOperatorTools } from '../operator-tools.ts';

export interface DiskStatus {
  diskId: string;
  nodeId: string;
  zone: string;
  address: string;
  capacityBytes: number;
  /** `new`: it is served, and in no map yet; `removed`: it is served, and not taken in again. */
  state: 'placed' | 'draining' | 'absent' | 'new' | 'removed';
  /** Partitions that it owns. */
  ownedCount: number;
  /** Partitions that it owned before a pending change: it may have the only copies of chunks. */
  pendingCount: number;
  /** By a node that is there now. */
  isServed: boolean;
}

export interface DisksStatus {
  /** Of the map; 0: there is none yet. */
  version: number;
  copies: number;
  partitionCount: number;
  /** Partitions with a pending change. */
  pendingPartitionCount: number;
  /** The version that all shards have to audit before the change is done. */
  auditFrom: number;
  disks: DiskStatus[];
  retired: readonly string[];
}

/** Throws {@link Refusal} when there is no cluster, or etcd does not answer. */
export function readDisks(config: Config): Promise<DisksStatus> {
  return withOperatorTools({ config, clusterId: undefined }, ({ coordination, members }) =>
    describeDisks(coordination, members),
  );
}

export async function describeDisks(
  { placementMap }: Pick<Coordination, 'placementMap'>,
  members: readonly Member[],
): Promise<DisksStatus> {
  const stored = await answer(placementMap.read());
  if (stored === undefined)
    throw new Refusal('no disk is placed yet: there are fewer storage nodes than copies');
  const map = placementOf(stored.document);
  const { version, copies, auditFrom, retired } = map;
  return {
    version,
    copies,
    auditFrom,
    retired,
    partitionCount: map.owners.length,
    pendingPartitionCount: map.previous.filter((ids) => ids.length > 0).length,
    disks: [...placed(map, members), ...unplaced(map, members)],
  };
}

function placed(map: PlacementMap, members: readonly Member[]): DiskStatus[] {
  const held = holdings(map);
  const served = servedDisks(members);
  return map.disks.map((disk) => {
    const { ownedCount = 0, pendingCount = 0 } = held.get(disk.id) ?? {};
    const isServed = served.has(disk.id);
    return {
      ...described({ ...disk, ...served.get(disk.id) }),
      state: disk.leave ?? ('placed' as const),
      ownedCount,
      pendingCount,
      isServed,
    };
  });
}

function unplaced(map: PlacementMap, members: readonly Member[]): DiskStatus[] {
  const served = [...servedDisks(members).values()];
  const inState = (state: 'new' | 'removed') => (disk: PlacedDisk) => ({
    ...described(disk),
    state,
    ownedCount: 0,
    pendingCount: 0,
    isServed: true,
  });
  // An operator who starts a removed disk again must see why it stays empty.
  const removed = served.filter(({ id }) => map.retired.includes(id));
  return [...newDisks(map, served).map(inState('new')), ...removed.map(inState('removed'))];
}

function described({ id, nodeId, zone, address, capacityBytes }: PlacedDisk) {
  return { diskId: id, nodeId, zone, address, capacityBytes };
}

export function printDisks(found: DisksStatus, print: (line: string) => void): void {
  const { version, copies, partitionCount, pendingPartitionCount, disks } = found;
  const rows = disks.map((disk) => [
    ...[
      formatId(disk.diskId),
      formatId(disk.nodeId),
      disk.zone === disk.nodeId ? '' : disk.zone,
      disk.address,
    ],
    ...[formatBytes(disk.capacityBytes), formatCount(disk.ownedCount), formatCount(disk.pendingCount)],
    ...[disk.state, disk.isServed ? 'yes' : 'NO'],
  ]);
  print(`Placement ${version}: ${partitionCount} partitions, ${copies} copies`);
  print('');
  const head = ['DISK', 'NODE', 'ZONE', 'ADDRESS', 'CAPACITY', 'OWNS', 'PENDING', 'STATE', 'SERVED'];
  print(formatTable([head, ...rows]));
  print('');
  if (pendingPartitionCount === 0) print('No change is pending.');
  else
    print(
      `A change of ${pendingPartitionCount} partitions is pending: it is done when all shards have audited placement ${found.auditFrom}.`,
    );
}
