// The placement map (R34): the partition of a chunk, the disks that own it, and how a map is made from disks or from the
// map before it. Pure: the same disks give the same map everywhere.
import { assert, must } from '../../base/assert.ts';
import { finishAtOnce, type Steps } from '../../base/async/steps.ts';
import { crc32 } from '../../base/crypto/crc32.ts';
import type { ChunkId } from '../../ports/chunks.ts';
import type { KnownOwners } from '../../ports/disk-orders.ts';
import type { Member } from '../../ports/members.ts';
import type { DiskId, DiskLeave, PlacedDisk, PlacementMap, PlacementPort } from '../../ports/placement.ts';
import { LIMITS } from '../../types/limits.ts';
import { bestSpread, shareOut } from './placement-shares.ts';
import { spreadCopies } from './spread-copies.ts';

const ID_BYTES = 20;
/** Partitions per step of a computation that does little for each. */
const STEP_PARTITIONS = 256;
const idBytes = Buffer.alloc(ID_BYTES);

/** Must never change: chunks are found by it. */
export function partitionOf(id: ChunkId): number {
  return hashOf(id) % LIMITS.partitionCount;
}

/** By the whole id, so that chunks of one blob are spread, too. */
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
 * Disks whose silence matters: not those that were given up and own nothing, not even by a pending change. Their chunks are
 * dropped when they return (R32).
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

/** The placement before the first map: nothing can be placed. */
export const NO_PLACEMENT: PlacementMap = {
  version: 0,
  copies: 0,
  disks: [],
  auditFrom: 0,
  retired: [],
  owners: EMPTY,
  previous: EMPTY,
  former: EMPTY,
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
  /** The disks of the next map, with the reason why they leave. */
  disks: readonly PlacedDisk[];
  copies?: number;
}

/**
 * The next map. Owners stay where possible; beyond that, disks hold partitions in proportion to their capacity, and each
 * partition is as distinct as possible. A leaving disk owns only what too few other disks are left for; a returning disk
 * gets back what it had. A partition with a pending change changes only for owners that leave or return (R34).
 */
export function changePlacement(map: PlacementMap, change: PlacementChange): PlacementMap {
  return finishAtOnce(changePlacementInSteps(map, change));
}

export function changePlacementInSteps(map: PlacementMap, change: PlacementChange): Steps<PlacementMap> {
  return layOut({ ...map, copies: change.copies ?? map.copies }, change.disks);
}

function* layOut(map: PlacementMap, given: readonly PlacedDisk[]): Steps<PlacementMap> {
  // The order of the given disks must not matter.
  const disks = given.toSorted((a, b) => (a.id < b.id ? -1 : 1));
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
  const next: PartitionState[] = [];
  for (const [partition, ids] of owners.entries()) {
    next.push(ownedBy(map, { partition, ids, leaves }));
    if (partition % STEP_PARTITIONS === 0) yield;
  }
  const isChanged = next.some(({ isChanged }) => isChanged);
  return {
    version,
    copies: map.copies,
    disks,
    owners: next.map(({ owners }) => owners),
    previous: next.map(({ previous }) => previous),
    former: next.map(({ former }) => former),
    auditFrom: isChanged ? version : map.auditFrom,
    retired: map.retired,
  };
}

/**
 * Puts all disks of a node into one zone, whatever the map says of a disk that was not served since its node was moved:
 * copies cannot be kept apart by zones that share a node.
 */
function inOneZone(disks: readonly PlacedDisk[]): PlacedDisk[] {
  const zones = new Map(disks.map(({ nodeId, zone }) => [nodeId, zone]));
  return disks.map((disk) => ({ ...disk, zone: must(zones.get(disk.nodeId), 'each node has a zone') }));
}

/** Owners among the disks that stay, followed by leaving ones where there are fewer than `copies`. */
function* spreadOverStaying(map: PlacementMap, disks: readonly PlacedDisk[]): Steps<DiskId[][]> {
  const staying = inOneZone(disks.filter(({ leave }) => leave === undefined));
  const stayingIds = new Set(staying.map(({ id }) => id));
  const spread = bestSpread(staying, map.copies);
  const spreadOut =
    staying.length === 0
      ? map.owners.map((): DiskId[] => [])
      : yield* spreadCopies({
          disks: staying,
          spread,
          shares: shareOut(staying, spread),
          before: map.owners,
          isPinned: (partition) => at(map.previous, partition).length > 0,
          returning: (partition) => at(map.former, partition).filter((id) => stayingIds.has(id)),
        });
  // A draining disk can still be read.
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

interface PartitionState {
  owners: readonly DiskId[];
  previous: readonly DiskId[];
  former: readonly DiskId[];
  isChanged: boolean;
}

/** The state of one partition when `ids` own it. */
function ownedBy(
  map: PlacementMap,
  change: { partition: number; ids: readonly DiskId[]; leaves: ReadonlyMap<DiskId, DiskLeave | 'stays'> },
): PartitionState {
  const { partition, ids, leaves } = change;
  const before = at(map.owners, partition);
  const isThere = (id: DiskId) => leaves.has(id);
  const isChanged = ids.length !== before.length || ids.some((id) => !before.includes(id));
  if (!isChanged && at(map.previous, partition).length + at(map.former, partition).length === 0)
    return { owners: before, previous: [], former: [], isChanged };
  const gone = before.filter((id) => isThere(id) && !ids.includes(id));
  const earlier = at(map.previous, partition).filter(isThere);
  const previous = [...new Set([...gone, ...earlier.filter((id) => !ids.includes(id))])];
  // Each of them may have the only copy of a chunk: the owners do not change until an audit, so that none is forgotten.
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

// The newest placement map as the disks of a node use it (R38).

export function knownOwners(placement: Pick<PlacementPort, 'current' | 'noteVersion'>): KnownOwners {
  return {
    version: () => placement.current().version,
    owns: (diskId, id) => ownersOf(placement.current(), id).includes(diskId),
    noteVersion: (version) => placement.noteVersion(version),
  };
}

// The disks that are served now, by the list of members, which is a hint.

/** With their present addresses. */
export function servedDisks(members: readonly Member[]): Map<DiskId, PlacedDisk> {
  const served = members.flatMap(({ role, nodeId, zone, address, disks }) =>
    role === 'storage'
      ? disks.map(({ diskId: id, ...disk }): PlacedDisk => ({ id, nodeId, zone, address, ...disk }))
      : [],
  );
  return new Map(served.map((disk) => [disk.id, disk]));
}
