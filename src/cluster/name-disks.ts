// Disks as an operator names them: by the id of a disk, or of a node for all of its disks, or by how one of these begins.
import { Refusal } from '../lib/refusal.ts';
import type { DiskId, PlacementMap } from '../ports/placement.ts';
import { idsFitting, meantId } from './name-ids.ts';

/** Throws {@link Refusal} for a name of nothing in the map, or of more than one node or disk. */
export function disksNamed(map: PlacementMap, names: readonly string[]): Set<DiskId> {
  return new Set(names.flatMap((name) => disksOf(map, name)));
}

function disksOf({ disks, retired }: PlacementMap, name: string): DiskId[] {
  const ids = new Set(disks.flatMap(({ id, nodeId }) => [id, nodeId]));
  const fitting = idsFitting(ids, name);
  const [only] = fitting;
  if (fitting.length > 1) throw new Refusal(`${name} may be any of ${fitting.join(', ')}`);
  if (only !== undefined)
    return disks.filter(({ id, nodeId }) => id === only || nodeId === only).map(({ id }) => id);
  if (idsFitting(new Set(retired), name).length > 0) throw new Refusal(`disk ${name} has been removed`);
  throw new Refusal(`there is no disk or storage node ${name}${meantId(ids, name)}`);
}
