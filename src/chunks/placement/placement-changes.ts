// Changes of disks in the placement map (R34, R39, R40): they join, are drained, go away, return, are removed. Each changes
// the list of disks; the owners follow from it (placement.ts). Pure.
import { assert } from '../../base/assert.ts';
import type { DiskId, DiskLeave, PlacedDisk, PlacementMap } from '../../ports/placement.ts';
import { LIMITS } from '../../types/limits.ts';
import { disksById } from './placement.ts';

/** A change is pending while previous owners may have the only copies: until all shards have audited it. */
export function isPending({ previous }: PlacementMap): boolean {
  return previous.some((ids) => ids.length > 0);
}

/** `disks`, with those of `ids` leaving for this reason; undefined: staying. */
export function withLeave(
  disks: readonly PlacedDisk[],
  ids: ReadonlySet<DiskId>,
  leave: DiskLeave | undefined,
): PlacedDisk[] {
  return disks.map((disk) => {
    if (!ids.has(disk.id)) return disk;
    const { leave: _former, ...rest } = disk;
    return leave === undefined ? rest : { ...rest, leave };
  });
}

/**
 * For use when all shards have audited at `auditFrom` or later: everything that previous owners had alone is on present
 * owners, too (R39).
 */
export function clearPrevious(map: PlacementMap): PlacementMap {
  return { ...map, version: map.version + 1, previous: map.previous.map(() => []) };
}

/** The partitions of a disk. */
export interface DiskHolding {
  ownedCount: number;
  /** Partitions that it owned before a pending change. */
  pendingCount: number;
}

export function holdings(map: PlacementMap): Map<DiskId, DiskHolding> {
  const found = new Map(map.disks.map(({ id }) => [id, { ownedCount: 0, pendingCount: 0 }]));
  const count = (partitions: PlacementMap['owners'], key: keyof DiskHolding) => {
    for (const ids of partitions)
      for (const id of ids) {
        const holding = found.get(id);
        if (holding !== undefined) holding[key]++;
      }
  };
  count(map.owners, 'ownedCount');
  count(map.previous, 'pendingCount');
  return found;
}

/**
 * The map without disks that own nothing and did not before a pending change; they are not taken in again. No chunk moves.
 */
export function retireDisks(map: PlacementMap, ids: ReadonlySet<DiskId>): PlacementMap {
  const held = holdings(map);
  for (const id of ids) {
    const { ownedCount = 1, pendingCount = 1 } = held.get(id) ?? {};
    assert(ownedCount + pendingCount === 0, 'who may have chunks alone is not removed');
  }
  return {
    ...map,
    version: map.version + 1,
    disks: map.disks.filter(({ id }) => !ids.has(id)),
    former: map.former.map((some) =>
      some.some((id) => ids.has(id)) ? some.filter((id) => !ids.has(id)) : some,
    ),
    retired: [...map.retired.filter((id) => !ids.has(id)), ...ids].slice(-LIMITS.retiredDisksMax),
  };
}

/** Copies that must be made for `after`: partitions that a disk owns anew. */
export function movedCount(before: PlacementMap, after: PlacementMap): number {
  return after.owners.reduce(
    (moved, owners, partition) =>
      moved + owners.filter((id) => before.owners[partition]?.includes(id) !== true).length,
    0,
  );
}

/** The fewest zones, and the fewest nodes, that the copies of a partition are on. */
export function leastSpread(map: PlacementMap): { zones: number; nodes: number } {
  const disks = disksById(map);
  const least = (key: 'zone' | 'nodeId') =>
    Math.min(...map.owners.map((ids) => new Set(ids.map((id) => disks.get(id)?.[key])).size));
  return { zones: least('zone'), nodes: least('nodeId') };
}

/** The disks that could join: neither in the map, nor removed on purpose. */
export function newDisks(map: PlacementMap, disks: readonly PlacedDisk[]): PlacedDisk[] {
  const known = disksById(map);
  return disks.filter(
    ({ id, capacityBytes }) => capacityBytes > 0 && !known.has(id) && !map.retired.includes(id),
  );
}
