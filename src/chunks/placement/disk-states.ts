// What each disk is to the cluster just now, by the placement map and the list of members: as `holdfast cluster status` shows
// it, and as whoever places disks measures it. Pure.
import type { Member } from '../../ports/members.ts';
import type { DiskId, PlacedDisk, PlacementMap } from '../../ports/placement.ts';
import { type DiskHolding, holdings } from './placement-changes.ts';
import { servedDisks } from './served-disks.ts';

export interface DiskState extends DiskHolding {
  /** Where it is now; of one that nobody serves, where it was when the map was made. */
  disk: PlacedDisk;
  /** `away`: no node serves it. `new`: it is in no map yet; `removed`: in none any more, and not taken in again. */
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
      ...{ disk, ownedCount: 0, pendingCount: 0 },
      state: retired.has(disk.id) ? 'removed' : 'new',
    }),
  );
  return [...placed, ...unplaced];
}

/** False: drained or given up, and nothing of it is needed any more. It may come back, or be removed. */
export function isMissed({
  leave,
  ownedCount,
  pendingCount,
}: DiskHolding & Pick<PlacedDisk, 'leave'>): boolean {
  return leave === undefined || ownedCount + pendingCount > 0;
}

/** Of disks that chunks are placed on: the nodes that have them. */
export function countOwnerNodes(disks: readonly { nodeId: string; ownedCount: number }[]): number {
  // One that is to leave keeps what no other can take.
  return new Set(disks.flatMap(({ nodeId, ownedCount }) => (ownedCount > 0 ? [nodeId] : []))).size;
}
