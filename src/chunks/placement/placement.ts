// The placement map (R34): which partition a chunk is of, which disks own it, and how a map comes from disks or from the
// map before it. Pure: the same disks give the same map anywhere.
import { crc32 } from 'node:zlib';
import { assert, must } from '../../base/assert.ts';
import { finishAtOnce, type Steps } from '../../base/async/steps.ts';
import type { ChunkId } from '../../ports/chunks.ts';
import type { DiskId, DiskLeave, PlacedDisk, PlacementMap } from '../../ports/placement.ts';
import { LIMITS } from '../../types/limits.ts';
import { bestSpread, shareOut } from './placement-shares.ts';
import { spreadCopies } from './spread-copies.ts';

const ID_BYTES = 20;
/** In one step of a computation, where little is done for each. */
const STEP_PARTITIONS = 256;
const idBytes = Buffer.alloc(ID_BYTES);

/** Never to be changed: chunks are found by it. */
export function partitionOf(id: ChunkId): number {
  return hashOf(id) % LIMITS.partitionCount;
}

/** Of the whole id: chunks of one blob are spread too. */
export function hashOf({ blobId, index }: ChunkId): number {
  idBytes.write(blobId, 0, 'hex');
  idBytes.writeUInt32BE(index, ID_BYTES - 4);
  return crc32(idBytes);
}

export function ownersOf(map: PlacementMap, id: ChunkId): readonly DiskId[] {
  return must(map.owners[partitionOf(id)], 'a map has all partitions');
}

const disksOfMaps = new WeakMap<PlacementMap, ReadonlyMap<DiskId, PlacedDisk>>();

export function disksById(map: PlacementMap): ReadonlyMap<DiskId, PlacedDisk> {
  let disks = disksOfMaps.get(map);
  if (disks === undefined) {
    disks = new Map(map.disks.map((disk) => [disk.id, disk]));
    disksOfMaps.set(map, disks);
  }
  return disks;
}

const expectedOfMaps = new WeakMap<PlacementMap, readonly PlacedDisk[]>();

/**
 * Disks whose silence says something of chunks: not those that were given up and own nothing any more, not even by a change
 * that is pending. What they have beside that is dropped when they are back (R32).
 */
export function expectedDisks(map: PlacementMap): readonly PlacedDisk[] {
  let disks = expectedOfMaps.get(map);
  if (disks === undefined) {
    const holding = new Set([...map.owners, ...map.previous].flat());
    disks = map.disks.filter(({ id, leave }) => leave !== 'absent' || holding.has(id));
    expectedOfMaps.set(map, disks);
  }
  return disks;
}

const EMPTY = Array.from({ length: LIMITS.partitionCount }, () => []);

/** Before the first map: nothing can be placed. */
export const NO_PLACEMENT: PlacementMap = {
  ...{ version: 0, copies: 0, disks: [], auditFrom: 0, retired: [] },
  ...{ owners: EMPTY, previous: EMPTY, former: EMPTY },
};

/** The first map of a cluster. */
export function makePlacement(options: { disks: readonly PlacedDisk[]; copies: number }): PlacementMap {
  return finishAtOnce(makePlacementInSteps(options));
}

export function makePlacementInSteps(options: {
  disks: readonly PlacedDisk[];
  copies: number;
}): Steps<PlacementMap> {
  return layOut({ ...NO_PLACEMENT, copies: options.copies }, options.disks);
}

export interface PlacementChange {
  /** Those there shall be, with what makes them leave. */
  disks: readonly PlacedDisk[];
  copies?: number;
}

/**
 * The next map. What can stay stays; beyond that, disks hold what their capacity says, and each partition is as distinct as
 * it can be. A disk that leaves owns what fewer other disks than copies leave to it, and nothing else; who returns
 * gets back what it had. A partition whose last change is pending changes only for owners that leave or return (R34).
 */
export function changePlacement(map: PlacementMap, change: PlacementChange): PlacementMap {
  return finishAtOnce(changePlacementInSteps(map, change));
}

export function changePlacementInSteps(map: PlacementMap, change: PlacementChange): Steps<PlacementMap> {
  return layOut({ ...map, copies: change.copies ?? map.copies }, change.disks);
}

function* layOut(map: PlacementMap, told: readonly PlacedDisk[]): Steps<PlacementMap> {
  // The order in which disks are told must not matter.
  const disks = told.toSorted((a, b) => (a.id < b.id ? -1 : 1));
  assert(disks.length > 0, 'a map has disks');
  assert(new Set(disks.map(({ id }) => id)).size === disks.length, 'a disk is in a map once');
  assert(
    disks.every(({ capacityBytes }) => capacityBytes > 0),
    'a disk has room',
  );
  assert(Number.isInteger(map.copies) && map.copies >= 1, 'there is a copy at least');
  const leaves = new Map(disks.map(({ id, leave }) => [id, leave ?? ('stays' as const)]));
  const owners = yield* spreadOverStaying(map, disks);
  const version = map.version + 1;
  const next: Settled[] = [];
  for (const [partition, ids] of owners.entries()) {
    next.push(settle(map, { partition, ids, leaves }));
    if (partition % STEP_PARTITIONS === 0) yield;
  }
  const isChanged = next.some(({ isChanged }) => isChanged);
  return {
    ...{ version, copies: map.copies, disks },
    owners: next.map(({ owners }) => owners),
    previous: next.map(({ previous }) => previous),
    former: next.map(({ former }) => former),
    auditFrom: isChanged ? version : map.auditFrom,
    retired: map.retired,
  };
}

/**
 * A node is in one zone, whatever the map says of a disk that was not served since the node was moved: copies cannot be kept
 * apart by zones that share a node.
 */
function inOneZone(disks: readonly PlacedDisk[]): PlacedDisk[] {
  const zones = new Map(disks.map(({ nodeId, zone }) => [nodeId, zone]));
  return disks.map((disk) => ({ ...disk, zone: must(zones.get(disk.nodeId), 'each node has a zone') }));
}

/** Owners among the disks that stay; where those are fewer than copies, behind them whom nobody can stand in for. */
function* spreadOverStaying(map: PlacementMap, disks: readonly PlacedDisk[]): Steps<DiskId[][]> {
  const staying = inOneZone(disks.filter(({ leave }) => leave === undefined));
  const stayingIds = new Set(staying.map(({ id }) => id));
  const spread = bestSpread(staying, map.copies);
  const spreadOut =
    staying.length === 0
      ? map.owners.map((): DiskId[] => [])
      : yield* spreadCopies({
          ...{ disks: staying, spread, shares: shareOut(staying, spread), before: map.owners },
          isPinned: (partition) => at(map.previous, partition).length > 0,
          returning: (partition) => at(map.former, partition).filter((id) => stayingIds.has(id)),
        });
  // One that drains can still be read.
  const leaving = (['draining', 'absent'] as const).map(
    (leave) => new Set(disks.filter((disk) => disk.leave === leave).map(({ id }) => id)),
  );
  for (const [partition, ids] of spreadOut.entries()) {
    if (partition % STEP_PARTITIONS === 0) yield;
    if (ids.length >= map.copies) continue;
    const kept = leaving.flatMap((some) => at(map.owners, partition).filter((id) => some.has(id)));
    ids.push(...kept.slice(0, map.copies - ids.length));
  }
  return spreadOut;
}

interface Settled {
  owners: readonly DiskId[];
  previous: readonly DiskId[];
  former: readonly DiskId[];
  isChanged: boolean;
}

/** What is remembered of one partition when `ids` own it. */
function settle(
  map: PlacementMap,
  change: { partition: number; ids: readonly DiskId[]; leaves: ReadonlyMap<DiskId, DiskLeave | 'stays'> },
): Settled {
  const { partition, ids, leaves } = change;
  const before = at(map.owners, partition);
  const isThere = (id: DiskId) => leaves.has(id);
  const isChanged = ids.length !== before.length || ids.some((id) => !before.includes(id));
  if (!isChanged && at(map.previous, partition).length + at(map.former, partition).length === 0)
    return { owners: before, previous: [], former: [], isChanged };
  const gone = before.filter((id) => isThere(id) && !ids.includes(id));
  const earlier = at(map.previous, partition).filter(isThere);
  const previous = [...new Set([...gone, ...earlier.filter((id) => !ids.includes(id))])];
  // Chunks may lie with any of them alone: before one is forgotten, owners stay until an audit has been.
  if (previous.length > LIMITS.previousOwnersMax && before.every(isThere))
    return { owners: before, previous: earlier, former: at(map.former, partition), isChanged: false };
  const left = [...at(map.former, partition), ...gone].filter((id) => {
    const leave = leaves.get(id);
    return leave !== undefined && leave !== 'stays' && !ids.includes(id);
  });
  const former = [...new Set(left)].slice(-LIMITS.previousOwnersMax);
  return { owners: isChanged ? ids : before, previous, former, isChanged };
}

const at = (partitions: PlacementMap['owners'], partition: number) =>
  must(partitions[partition], 'a map has all partitions');
