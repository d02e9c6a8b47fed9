// The disks to ask for a chunk, in order. Pure, except for the known health of disks.
import { must } from '../../base/assert.ts';
import type { ChunkId } from '../../ports/chunks.ts';
import type { PlacedDisk, PlacementMap } from '../../ports/placement.ts';
import { disksById, hashOf, ownersOf, partitionOf } from '../placement/placement.ts';
import type { DiskHealth } from './disk-health.ts';

/** Where this process is: the nearer of two copies is read. */
export interface Whereabouts {
  nodeId?: string;
  zone?: string;
}

export function placedOwners(map: PlacementMap, id: ChunkId): PlacedDisk[] {
  const disks = disksById(map);
  return ownersOf(map, id).map((diskId) => must(disks.get(diskId), 'an owner is a disk of its map'));
}

/** Owners of its partition before a pending change; one of them may have the only copy (R37, R39). */
function previousOwners(map: PlacementMap, id: ChunkId): PlacedDisk[] {
  const disks = disksById(map);
  const previous = must(map.previous[partitionOf(id)], 'a map has all partitions');
  return previous.map((diskId) => must(disks.get(diskId), 'a previous owner is a disk of its map'));
}

/**
 * Near owners, other owners, previous owners, and last those that are unhealthy. Different chunks begin with different
 * disks.
 */
export function readingOrder(
  map: PlacementMap,
  id: ChunkId,
  { near, health }: { near: Whereabouts; health: DiskHealth },
): PlacedDisk[] {
  const hash = hashOf(id);
  const distance = ({ nodeId, zone }: PlacedDisk) =>
    nodeId === near.nodeId ? 0 : zone === near.zone ? 1 : 2;
  const rankAll = (disks: readonly PlacedDisk[], isOwner: boolean) =>
    disks.map((disk, at, { length }) => ({
      disk,
      rank: [
        health.isWell(disk.id, 'read') ? 0 : 1,
        isOwner ? 0 : 1,
        distance(disk),
        isOwner ? (at + hash) % length : at,
      ],
    }));
  const ranked = [...rankAll(placedOwners(map, id), true), ...rankAll(previousOwners(map, id), false)];
  return ranked.sort((a, b) => compareRanks(a.rank, b.rank)).map(({ disk }) => disk);
}

/** All disks but the owners, in a fixed order for each chunk, so that a read soon finds what a write put there. */
export function othersOf(map: PlacementMap, id: ChunkId): PlacedDisk[] {
  const owners = ownersOf(map, id);
  const { length } = map.disks;
  const first = hashOf(id) % length;
  const inSequence = Array.from({ length }, (_, at) => must(map.disks[(first + at) % length], 'a disk'));
  return inSequence.filter(({ id: diskId }) => !owners.includes(diskId));
}

/** The best disk for one more copy: one that stays, in a zone without a copy, else on a node without one. */
export function standIn(
  candidates: readonly PlacedDisk[],
  beside: readonly PlacedDisk[],
): PlacedDisk | undefined {
  const ranked = candidates.map((disk, at) => ({
    disk,
    rank: [
      disk.leave === undefined ? 0 : 1,
      beside.some(({ zone }) => zone === disk.zone) ? 1 : 0,
      beside.some(({ nodeId }) => nodeId === disk.nodeId) ? 1 : 0,
      at,
    ],
  }));
  return ranked.sort((a, b) => compareRanks(a.rank, b.rank))[0]?.disk;
}

function compareRanks(a: readonly number[], b: readonly number[]): number {
  for (const [at, rank] of a.entries()) {
    const difference = rank - (b[at] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
