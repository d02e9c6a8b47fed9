// Decides how the disks of the placement map change, by what was observed (R34, R40). Pure: place-disks.ts observes and
// writes.
import type { DiskId, PlacedDisk, PlacementMap } from '../../ports/placement.ts';
import { isPending, newDisks } from './placement-changes.ts';

/** A smaller difference of capacity is ignored: file systems vary a little. */
const CAPACITY_SHARE = 0.1;

export interface SeenDisks {
  /** Served now, with the present node, zone and capacity. */
  served: ReadonlyMap<DiskId, PlacedDisk>;
  /** Disks of the map that have not been served for too long. */
  away: ReadonlySet<DiskId>;
  /** Disks of the map that have been served for long enough. */
  steady: ReadonlySet<DiskId>;
  /** No further disk has come for a while. */
  areJoiningDisksComplete: boolean;
}

export interface Judgement {
  /** The disks of the next map; undefined: no change. */
  disks?: PlacedDisk[];
  joined: DiskId[];
  absent: DiskId[];
  returned: DiskId[];
  /** Disks with another node, zone or capacity than before. */
  moved: DiskId[];
  /** Disks that came back without acknowledged data: everything is audited (R40). */
  cut: DiskId[];
  /** Why absent disks are not given up. */
  alarm?: 'too-few-disks-left' | 'most-disks-silent';
}

export function judgeDisks(map: PlacementMap, seen: SeenDisks): Judgement {
  const { served, away, steady } = seen;
  const staying = map.disks.filter(({ leave }) => leave === undefined);
  const lost = staying.filter(({ id }) => away.has(id));
  const joiningDisks = newDisks(map, [...served.values()]);
  // New disks wait for a pending change to end, unless a disk is lost, which one of them may replace.
  const mayJoin = seen.areJoiningDisksComplete && (!isPending(map) || lost.length > 0);
  const joined = mayJoin ? joiningDisks : [];
  const returned = map.disks.filter(({ id, leave }) => leave === 'absent' && steady.has(id));
  const present = presentDisks(map, served);
  const moved = isPending(map) ? [] : map.disks.filter((disk, at) => isElsewhere(disk, present[at] ?? disk));
  const cut = map.disks.filter(({ id, cutSeq = 0 }) => (served.get(id)?.cutSeq ?? 0) > cutSeq);
  const leftCount = staying.length - lost.length + joined.length + returned.length;
  const alarm = lost.length === 0 ? undefined : alarmOf({ map, staying, served, leftCount });
  const absent = alarm === undefined ? lost : [];
  const ids = (disks: readonly PlacedDisk[]) => disks.map(({ id }) => id);
  const changes = {
    joined: ids(joined),
    absent: ids(absent),
    returned: ids(returned),
    moved: ids(moved),
    cut: ids(cut),
  };
  const found = { ...changes, ...(alarm !== undefined && { alarm }) };
  if (Object.values(changes).every((some) => some.length === 0)) return found;
  const [areAbsent, haveReturned] = [new Set(changes.absent), new Set(changes.returned)];
  const disks = present.map((disk): PlacedDisk => {
    const { leave, ...rest } = disk;
    if (areAbsent.has(disk.id)) return { ...rest, leave: 'absent' };
    return leave === undefined || haveReturned.has(disk.id) ? rest : { ...rest, leave };
  });
  return { ...found, disks: [...disks, ...joined] };
}

/** When so many are silent, the cause is more likely the network or this process. */
function alarmOf(parts: {
  map: PlacementMap;
  staying: readonly PlacedDisk[];
  served: ReadonlyMap<DiskId, PlacedDisk>;
  leftCount: number;
}): Judgement['alarm'] {
  const { map, staying, served, leftCount } = parts;
  if (leftCount < map.copies) return 'too-few-disks-left';
  const answering = staying.filter(({ id }) => served.has(id));
  const zonesOf = (disks: readonly PlacedDisk[]) => new Set(disks.map(({ zone }) => zone)).size;
  const areMostSilent = 2 * answering.length < staying.length || 2 * zonesOf(answering) < zonesOf(staying);
  return areMostSilent ? 'most-disks-silent' : undefined;
}

/** The disks of the map as they are now. */
function presentDisks(map: PlacementMap, served: SeenDisks['served']): PlacedDisk[] {
  const zones = new Map([...served.values()].map(({ nodeId, zone }) => [nodeId, zone]));
  return map.disks.map((disk) => ({
    ...disk,
    // A disk that its node does not serve has moved with the node: a node is in one zone.
    zone: zones.get(disk.nodeId) ?? disk.zone,
    ...served.get(disk.id),
    capacityBytes: capacityOf(disk, served),
  }));
}

/** The capacity in the map, unless it differs much: an unrelated change must move nothing for a small difference. */
function capacityOf({ id, capacityBytes }: PlacedDisk, served: SeenDisks['served']): number {
  const reported = served.get(id)?.capacityBytes ?? capacityBytes;
  return Math.abs(reported - capacityBytes) / capacityBytes > CAPACITY_SHARE ? reported : capacityBytes;
}

function isElsewhere(disk: PlacedDisk, now: PlacedDisk): boolean {
  return now.nodeId !== disk.nodeId || now.zone !== disk.zone || now.capacityBytes !== disk.capacityBytes;
}
