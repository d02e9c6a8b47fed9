// The disks that are served now, by the list of members, which is a hint.
import type { Member } from '../../ports/members.ts';
import type { DiskId, PlacedDisk } from '../../ports/placement.ts';

/** With their present addresses. */
export function servedDisks(members: readonly Member[]): Map<DiskId, PlacedDisk> {
  const served = members.flatMap(({ role, nodeId, zone, address, disks }) =>
    role === 'storage'
      ? disks.map(({ diskId: id, ...disk }): PlacedDisk => ({ id, nodeId, zone, address, ...disk }))
      : [],
  );
  return new Map(served.map((disk) => [disk.id, disk]));
}
