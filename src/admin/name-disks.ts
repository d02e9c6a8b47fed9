// Disks as an operator names them: by the id of a disk, or of a node for all of its disks, or by how one of these begins.
import { Refusal } from '../base/refusal.ts';
import { newDisks } from '../chunks/placement/placement-changes.ts';
import type { DiskId, PlacedDisk, PlacementMap } from '../ports/placement.ts';
import { idsFitting, meantId } from './name-ids.ts';

export interface KnownDisks {
  disks: readonly PlacedDisk[];
  retired: readonly DiskId[];
}

/** Those of the map, and those that are served and in none yet: the status shows them too. */
export function knownDisks(map: PlacementMap, served: ReadonlyMap<DiskId, PlacedDisk>): KnownDisks {
  return { disks: [...map.disks, ...newDisks(map, [...served.values()])], retired: map.retired };
}

/** Throws {@link Refusal} for a name of nothing that is known, or of more than one node or disk. */
export function disksNamed(known: KnownDisks, names: readonly string[]): Set<DiskId> {
  return new Set(names.flatMap((name) => disksOf(known, name)));
}

function disksOf({ disks, retired }: KnownDisks, name: string): DiskId[] {
  const ids = new Set(disks.flatMap(({ id, nodeId }) => [id, nodeId]));
  const fitting = idsFitting(ids, name);
  const [only] = fitting;
  if (fitting.length > 1) throw new Refusal(`${name} may be any of ${fitting.join(', ')}`);
  if (only !== undefined)
    return disks.filter(({ id, nodeId }) => id === only || nodeId === only).map(({ id }) => id);
  if (idsFitting(new Set(retired), name).length > 0) throw new Refusal(`disk ${name} has been removed`);
  throw new Refusal(`there is no disk or storage node ${name}${meantId(ids, name)}`);
}
