// The disks of chunks that nodes serve now, as the list of members tells of them: a hint, as that is.
import type { Member } from '../../ports/members.ts';
import type { DiskId, PlacedDisk } from '../../ports/placement.ts';

/** Where they are now. */
export function servedDisks(members: readonly Member[]): Map<DiskId, PlacedDisk> {
  const served = members.flatMap(({ role, nodeId, zone, address, disks }) =>
    role === 'storage'
      ? disks.map(({ diskId: id, ...disk }): PlacedDisk => ({ id, nodeId, zone, address, ...disk }))
      : [],
  );
  return new Map(served.map((disk) => [disk.id, disk]));
}
