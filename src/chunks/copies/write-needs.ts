// How many copies a new chunk needs before it is acknowledged (R35), on how many nodes, and whether there are so many disks
// that take one. Pure.

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
 * Of disks of one placement map. A node is lost with all of its disks, so where there are several nodes copies are on
 * distinct ones. One whose disks are drained shall get no more, and is not needed, nor are its copies: an operator has said
 * so. One that is away is needed, because nobody has said that it will not come back.
 */
export function neededCopies(disks: readonly Candidate[], copiesWanted: number): NeededCopies {
  const staying = disks.filter(({ leave }) => leave !== 'draining');
  const counted = staying.length > 0 ? staying : disks;
  // One even where there is no disk at all: nothing is acknowledged that is nowhere.
  const copies = Math.max(1, Math.min(LIMITS.copiesSyncedMin, copiesWanted, counted.length));
  return { copies, nodes: Math.min(copies, nodeCountOf(counted)) };
}

/** Whether copies on these disks are enough. */
export function areEnough(disks: readonly Pick<Candidate, 'nodeId'>[], needed: NeededCopies): boolean {
  return disks.length >= needed.copies && nodeCountOf(disks) >= needed.nodes;
}

/** On how many nodes they are. */
export function nodeCountOf(disks: readonly Pick<Candidate, 'nodeId'>[]): number {
  return new Set(disks.map(({ nodeId }) => nodeId)).size;
}
