// What becomes of disks in the placement map (R34, R39, R40): they join, are drained, go away, return, are removed. Each is a
// change of the list of disks; who owns what then follows (placement.ts). Pure.
import { assert } from '../../base/assert.ts';
import type { DiskId, DiskLeave, PlacedDisk, PlacementMap } from '../../ports/placement.ts';
import { LIMITS } from '../../types/limits.ts';
import { disksById } from './placement.ts';

/** A change is pending while chunks may lie with former owners alone: until all shards have audited it. */
export function isPending({ previous }: PlacementMap): boolean {
  return previous.some((ids) => ids.length > 0);
}

/** `disks`, where those of `ids` leave for this reason; undefined: they stay. */
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

/** When all shards have audited at `auditFrom` or later: what previous owners had alone lies on present ones, too (R39). */
export function clearPrevious(map: PlacementMap): PlacementMap {
  return { ...map, version: map.version + 1, previous: map.previous.map(() => []) };
}

/** What a disk is to chunks. */
export interface DiskHolding {
  ownedCount: number;
  /** Partitions that it owned before a change which is not done. */
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
 * Without disks that own nothing and did not before a pending change; they are not taken in again. Nobody's chunks move.
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

/** Copies that have to be made for `after`: a disk owns a partition that it did not. */
export function movedCount(before: PlacementMap, after: PlacementMap): number {
  return after.owners.reduce(
    (moved, owners, partition) =>
      moved + owners.filter((id) => before.owners[partition]?.includes(id) !== true).length,
    0,
  );
}

/** Over how many zones, and how many nodes, the copies of the partition lie that has the fewest. */
export function leastSpread(map: PlacementMap): { zones: number; nodes: number } {
  const disks = disksById(map);
  const least = (key: 'zone' | 'nodeId') =>
    Math.min(...map.owners.map((ids) => new Set(ids.map((id) => disks.get(id)?.[key])).size));
  return { zones: least('zone'), nodes: least('nodeId') };
}

/** Those that the map could take in: it has neither them, nor forgotten them on purpose. */
export function newDisks(map: PlacementMap, disks: readonly PlacedDisk[]): PlacedDisk[] {
  const known = disksById(map);
  return disks.filter(
    ({ id, capacityBytes }) => capacityBytes > 0 && !known.has(id) && !map.retired.includes(id),
  );
}
