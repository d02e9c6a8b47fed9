// The state of each disk in the cluster, by the placement map and the list of members: for `holdfast cluster status` and
// for the metrics of the placer. Pure.
import type { Member } from '../../ports/members.ts';
import type { DiskId, PlacedDisk, PlacementMap } from '../../ports/placement.ts';
import { servedDisks } from './placement.ts';
import { type DiskHolding, holdings } from './placement-changes.ts';

export interface DiskState extends DiskHolding {
  /** With its present address; of a disk that is not served, with the one in the map. */
  disk: PlacedDisk;
  /** `away`: no node serves it. `new`: not in a map yet. `removed`: no longer in the map, and not taken in again. */
  state: 'serving' | 'away' | 'new' | 'removed';
}

export function readDiskStates(map: PlacementMap | undefined, members: readonly Member[]): DiskState[] {
  const served = servedDisks(members);
  const held = map === undefined ? new Map<DiskId, DiskHolding>() : holdings(map);
  const retired = new Set(map?.retired);
  const placed = (map?.disks ?? []).map((disk): DiskState => {
    const now = served.get(disk.id);
    const holding = { ownedCount: 0, pendingCount: 0, ...held.get(disk.id) };
    return { disk: { ...disk, ...now }, state: now === undefined ? 'away' : 'serving', ...holding };
  });
  const others = [...served.values()].filter(({ id }) => !held.has(id));
  const unplaced = others.map(
    (disk): DiskState => ({
      disk,
      ownedCount: 0,
      pendingCount: 0,
      state: retired.has(disk.id) ? 'removed' : 'new',
    }),
  );
  return [...placed, ...unplaced];
}

/** False for a disk that was drained or given up and is not needed any more. It may return, or be removed. */
export function isMissed({
  leave,
  ownedCount,
  pendingCount,
}: DiskHolding & Pick<PlacedDisk, 'leave'>): boolean {
  return leave === undefined || ownedCount + pendingCount > 0;
}

/** The number of nodes whose disks own chunks. */
export function countOwnerNodes(disks: readonly { nodeId: string; ownedCount: number }[]): number {
  // A leaving disk keeps what no other can take.
  return new Set(disks.flatMap(({ nodeId, ownedCount }) => (ownedCount > 0 ? [nodeId] : []))).size;
}
