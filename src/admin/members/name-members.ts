// Names of disks and nodes in commands: an id, or a prefix of one. The name of a storage node stands for all of its disks.
import { nearestWord } from '../../base/nearest-word.ts';
import { Refusal } from '../../base/refusal.ts';
import { newDisks } from '../../chunks/placement/placement-changes.ts';
import type { DiskId, PlacedDisk, PlacementMap } from '../../ports/placement.ts';
import type { NodeId } from '../../ports/replication.ts';

/** Fewer digits name nothing: too many ids begin with them. */
const DIGITS_MIN = 4;

/** The `ids` that `name` may mean; only one of them if it is a whole id. */
function idsFitting(ids: ReadonlySet<string>, name: string): string[] {
  if (ids.has(name)) return [name];
  return [...ids].filter((id) => name.length >= DIGITS_MIN && id.startsWith(name));
}

/** `: did you mean ...?`, for a name that fits none; empty when none is near. Of a few digits, the nearest beginning. */
function meantId(ids: ReadonlySet<string>, name: string): string {
  const nearest = nearestWord(name, new Set([...ids].map((id) => id.slice(0, name.length))));
  return nearest === undefined ? '' : `: did you mean ${nearest}?`;
}

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

/**
 * undefined: the names are of disks and storage nodes. Throws {@link Refusal} for a name of nothing, or of more than one,
 * and for names of both kinds: a command changes one record, or nothing.
 */
export function nodesNamed(
  metadataNodes: ReadonlySet<NodeId>,
  known: KnownDisks,
  names: readonly string[],
): Set<NodeId> | undefined {
  const disks = new Set(known.disks.flatMap(({ id, nodeId }) => [id, nodeId]));
  const retired = new Set(known.retired);
  const all = new Set([...metadataNodes, ...disks]);
  const nodes = new Set<NodeId>();
  let isOfDisks = false;
  for (const name of names) {
    const fitting = idsFitting(all, name);
    const [only] = fitting;
    if (fitting.length > 1) throw new Refusal(`${name} may be any of ${fitting.join(', ')}`);
    if (only === undefined && idsFitting(retired, name).length === 0)
      throw new Refusal(`there is no disk, storage node or metadata node ${name}${meantId(all, name)}`);
    if (only !== undefined && metadataNodes.has(only)) nodes.add(only);
    else isOfDisks = true;
  }
  if (nodes.size === 0) return undefined;
  if (isOfDisks) throw new Refusal('disks and metadata nodes are changed by commands of their own');
  return nodes;
}
