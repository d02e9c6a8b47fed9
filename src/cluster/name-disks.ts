// Disks as an operator names them: by the id of a disk, or of a node for all of its disks, or by how one of these begins.
import { nearestWord } from '../lib/nearest-word.ts';
import { Refusal } from '../lib/refusal.ts';
import type { DiskId, PlacementMap } from '../ports/placement.ts';

/** Fewer digits name nothing: too many ids begin with them. */
const DIGITS_MIN = 4;

/** Throws {@link Refusal} for a name of nothing in the map, or of more than one node or disk. */
export function disksNamed(map: PlacementMap, names: readonly string[]): Set<DiskId> {
  return new Set(names.flatMap((name) => disksOf(map, name)));
}

function disksOf({ disks, retired }: PlacementMap, name: string): DiskId[] {
  const ids = new Set(disks.flatMap(({ id, nodeId }) => [id, nodeId]));
  const fitting = ids.has(name)
    ? [name]
    : [...ids].filter((id) => name.length >= DIGITS_MIN && id.startsWith(name));
  const [only] = fitting;
  if (fitting.length > 1) throw new Refusal(`${name} may be any of ${fitting.join(', ')}`);
  if (only !== undefined)
    return disks.filter(({ id, nodeId }) => id === only || nodeId === only).map(({ id }) => id);
  if (retired.some((id) => id === name || (name.length >= DIGITS_MIN && id.startsWith(name))))
    throw new Refusal(`disk ${name} has been removed`);
  const nearest = nearestOf(name, ids);
  const meant = nearest === undefined ? '' : `: did you mean ${nearest}?`;
  throw new Refusal(`there is no disk or storage node ${name}${meant}`);
}

/** Of a few digits, the nearest beginning. */
function nearestOf(name: string, ids: ReadonlySet<string>): string | undefined {
  return nearestWord(name, new Set([...ids].map((id) => id.slice(0, name.length))));
}
