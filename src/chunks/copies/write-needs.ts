// How many copies, on how many nodes, a new chunk needs before it is acknowledged (R35), and whether enough disks can take
// one. Pure.

import type { DiskLeave } from '../../ports/placement.ts';
import { LIMITS } from '../../types/limits.ts';

export interface NeededCopies {
  copies: number;
  nodes: number;
}

interface Candidate {
  nodeId: string;
  leave?: DiskLeave;
}

/**
 * For the disks of one placement map. A node is lost with all of its disks, so where there are several nodes copies are on
 * distinct ones. Drained disks, and their copies, are not needed: an operator has decided so. A disk that is away is
 * needed: nobody has said that it will not return.
 */
export function neededCopies(disks: readonly Candidate[], copiesWanted: number): NeededCopies {
  const staying = disks.filter(({ leave }) => leave !== 'draining');
  const counted = staying.length > 0 ? staying : disks;
  // One even without any disk: a chunk that is stored nowhere is never acknowledged.
  const copies = Math.max(1, Math.min(LIMITS.copiesSyncedMin, copiesWanted, counted.length));
  return { copies, nodes: Math.min(copies, nodeCountOf(counted)) };
}

/** Whether copies on these disks are enough. */
export function areEnough(disks: readonly Pick<Candidate, 'nodeId'>[], needed: NeededCopies): boolean {
  return disks.length >= needed.copies && nodeCountOf(disks) >= needed.nodes;
}

/** The number of nodes that these disks are on. */
export function nodeCountOf(disks: readonly Pick<Candidate, 'nodeId'>[]): number {
  return new Set(disks.map(({ nodeId }) => nodeId)).size;
}
