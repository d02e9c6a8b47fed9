// What should become of the disks of the placement map, by what was seen of them (R34, R40). Pure: who watches and writes is
// place-disks.ts.
import type { DiskId, PlacedDisk, PlacementMap } from '../../ports/placement.ts';
import { isPending, newDisks } from './placement-changes.ts';

/** A capacity that differs by less is the same: file systems tell a little more or less. */
const CAPACITY_SHARE = 0.1;

export interface SeenDisks {
  /** By nodes that are there now, and where. */
  served: ReadonlyMap<DiskId, PlacedDisk>;
  /** Of the map: not served for too long. */
  away: ReadonlySet<DiskId>;
  /** Of the map: served, and for long enough. */
  steady: ReadonlySet<DiskId>;
  /** Those that are in no map yet have been the same ones for a while. */
  areJoiningDisksSettled: boolean;
}

export interface Judgement {
  /** Those of the next map; undefined: they stay as they are. */
  disks?: PlacedDisk[];
  joined: DiskId[];
  absent: DiskId[];
  returned: DiskId[];
  /** Of another node, zone or capacity than before. */
  moved: DiskId[];
  /** Come back without what was acknowledged last: all is to be audited (R40). */
  cut: DiskId[];
  /** Why disks that are away are not given up. */
  alarm?: 'too-few-disks-left' | 'most-disks-silent';
}

export function judgeDisks(map: PlacementMap, seen: SeenDisks): Judgement {
  const { served, away, steady } = seen;
  const staying = map.disks.filter(({ leave }) => leave === undefined);
  const lost = staying.filter(({ id }) => away.has(id));
  const joiningDisks = newDisks(map, [...served.values()]);
  // A pending change ends without new disks; but if a disk is lost, one of them may be what replaces it.
  const mayJoin = seen.areJoiningDisksSettled && (!isPending(map) || lost.length > 0);
  const joined = mayJoin ? joiningDisks : [];
  const returned = map.disks.filter(({ id, leave }) => leave === 'absent' && steady.has(id));
  const present = presentDisks(map, served);
  const moved = isPending(map) ? [] : map.disks.filter((disk, at) => isElsewhere(disk, present[at] ?? disk));
  const cut = map.disks.filter(({ id, cutSeq = 0 }) => (served.get(id)?.cutSeq ?? 0) > cutSeq);
  const leftCount = staying.length - lost.length + joined.length + returned.length;
  const alarm = lost.length === 0 ? undefined : alarmOf({ map, staying, served, leftCount });
  const absent = alarm === undefined ? lost : [];
  const ids = (disks: readonly PlacedDisk[]) => disks.map(({ id }) => id);
  const told = {
    joined: ids(joined),
    absent: ids(absent),
    returned: ids(returned),
    moved: ids(moved),
    cut: ids(cut),
  };
  const found = { ...told, ...(alarm !== undefined && { alarm }) };
  if (Object.values(told).every((some) => some.length === 0)) return found;
  const [areAbsent, haveReturned] = [new Set(told.absent), new Set(told.returned)];
  const disks = present.map((disk): PlacedDisk => {
    const { leave, ...rest } = disk;
    if (areAbsent.has(disk.id)) return { ...rest, leave: 'absent' };
    return leave === undefined || haveReturned.has(disk.id) ? rest : { ...rest, leave };
  });
  return { ...found, disks: [...disks, ...joined] };
}

/** When so many are silent, it is rather the network, or whoever watches. */
function alarmOf(parts: {
  map: PlacementMap;
  staying: readonly PlacedDisk[];
  served: ReadonlyMap<DiskId, PlacedDisk>;
  leftCount: number;
}): Judgement['alarm'] {
  const { map, staying, served, leftCount } = parts;
  if (leftCount < map.copies) return 'too-few-disks-left';
  const heard = staying.filter(({ id }) => served.has(id));
  const zonesOf = (disks: readonly PlacedDisk[]) => new Set(disks.map(({ zone }) => zone)).size;
  const areMostSilent = 2 * heard.length < staying.length || 2 * zonesOf(heard) < zonesOf(staying);
  return areMostSilent ? 'most-disks-silent' : undefined;
}

/** Those of the map, as they are now. */
function presentDisks(map: PlacementMap, served: SeenDisks['served']): PlacedDisk[] {
  const zones = new Map([...served.values()].map(({ nodeId, zone }) => [nodeId, zone]));
  return map.disks.map((disk) => ({
    ...disk,
    // One that its node does not serve has gone with it: a node is in one zone.
    zone: zones.get(disk.nodeId) ?? disk.zone,
    ...served.get(disk.id),
    capacityBytes: capacityOf(disk, served),
  }));
}

/** As the map has it, unless it differs: a change that has to do with something else moves nothing for a little of it. */
function capacityOf({ id, capacityBytes }: PlacedDisk, served: SeenDisks['served']): number {
  const told = served.get(id)?.capacityBytes ?? capacityBytes;
  return Math.abs(told - capacityBytes) / capacityBytes > CAPACITY_SHARE ? told : capacityBytes;
}

function isElsewhere(disk: PlacedDisk, now: PlacedDisk): boolean {
  return now.nodeId !== disk.nodeId || now.zone !== disk.zone || now.capacityBytes !== disk.capacityBytes;
}
