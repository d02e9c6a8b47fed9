// The newest placement map as the disks of a node ask of it (R38).
import type { KnownOwners } from '../../ports/disk-orders.ts';
import type { PlacementPort } from '../../ports/placement.ts';
import { ownersOf } from './placement.ts';

export function knownOwners(placement: Pick<PlacementPort, 'current' | 'hear'>): KnownOwners {
  return {
    version: () => placement.current().version,
    owns: (diskId, id) => ownersOf(placement.current(), id).includes(diskId),
    hear: (version) => placement.hear(version),
  };
}
