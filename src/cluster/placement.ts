// The placement map (R34): which partition a chunk is of, which disks own it, and how a map comes from disks or from the
// map before it. Pure: the same disks give the same map anywhere.
import { crc32 } from 'node:zlib';
import { assert, must } from '../lib/assert.ts';
import { LIMITS } from '../model/limits.ts';
import type { ChunkId } from '../ports/chunks.ts';
import type { DiskId, PlacedDisk, PlacementMap } from '../ports/placement.ts';
import { bestSpread, shareOut } from './placement-shares.ts';
import { spreadCopies } from './spread-copies.ts';

const FIRST_VERSION = 1;
const ID_BYTES = 20;
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

/** Before the first map: nothing can be placed. */
export const NO_PLACEMENT: PlacementMap = {
  version: 0,
  copies: 0,
  disks: [],
  owners: Array.from({ length: LIMITS.partitionCount }, () => []),
  previous: Array.from({ length: LIMITS.partitionCount }, () => []),
  auditFrom: 0,
  retired: [],
};

/** The first map of a cluster. */
export function makePlacement(options: { disks: readonly PlacedDisk[]; copies: number }): PlacementMap {
  return layOut({ ...options, version: FIRST_VERSION, before: [] });
}

/**
 * The next map: over `disks` instead, and with so many copies. What can stay stays; beyond that, disks hold what their
 * capacity says, and each partition is as distinct as it can be.
 */
export function changePlacement(
  map: PlacementMap,
  change: { disks: readonly PlacedDisk[]; copies?: number },
): PlacementMap {
  const { disks, copies = map.copies } = change;
  return layOut({ disks, copies, version: map.version + 1, before: map.owners });
}

/** The next map: with disks beside those that it has, which may stand in for owners, and own nothing yet. */
export function addDisks(map: PlacementMap, added: readonly PlacedDisk[]): PlacementMap {
  const disks = [...map.disks, ...added].toSorted(byId);
  return { ...map, version: map.version + 1, disks };
}

const byId = (a: PlacedDisk, b: PlacedDisk) => (a.id < b.id ? -1 : 1);

function layOut(options: {
  disks: readonly PlacedDisk[];
  copies: number;
  version: number;
  before: PlacementMap['owners'];
}): PlacementMap {
  const { copies, version, before } = options;
  // The order in which disks are told must not matter.
  const disks = options.disks.toSorted(byId);
  assert(disks.length > 0, 'a map has disks');
  assert(new Set(disks.map(({ id }) => id)).size === disks.length, 'a disk is in a map once');
  assert(
    disks.every(({ capacityBytes }) => capacityBytes > 0),
    'a disk has room',
  );
  assert(Number.isInteger(copies) && copies >= 1, 'there is a copy at least');
  const spread = bestSpread(disks, copies);
  const owners = spreadCopies({ disks, spread, shares: shareOut(disks, spread), before });
  const previous = owners.map(() => []);
  return { version, copies, disks, owners, previous, auditFrom: version, retired: [] };
}
