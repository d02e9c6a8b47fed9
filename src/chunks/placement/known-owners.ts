// The newest placement map as the disks of a node use it (R38).
import type { KnownOwners } from '../../ports/disk-orders.ts';
import type { PlacementPort } from '../../ports/placement.ts';
import { ownersOf } from './placement.ts';

export function knownOwners(placement: Pick<PlacementPort, 'current' | 'noteVersion'>): KnownOwners {
  return {
    version: () => placement.current().version,
    owns: (diskId, id) => ownersOf(placement.current(), id).includes(diskId),
    noteVersion: (version) => placement.noteVersion(version),
  };
}
