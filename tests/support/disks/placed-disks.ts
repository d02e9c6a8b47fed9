// Disks of a made-up cluster, for placement maps.
import type { PlacedDisk } from '../../../src/ports/placement.ts';

const TiB = 1024 ** 4;

/** `capacityOf`: by the number of the disk, from 0. */
export function placedDisks(options: {
  zones: number;
  nodesPerZone?: number;
  disksPerNode?: number;
  capacityOf?: (at: number) => number;
}): PlacedDisk[] {
  const { zones, nodesPerZone = 1, disksPerNode = 1, capacityOf = () => TiB } = options;
  const disks: PlacedDisk[] = [];
  for (let zone = 0; zone < zones; zone++) {
    for (let node = 0; node < nodesPerZone; node++) {
      for (let disk = 0; disk < disksPerNode; disk++) {
        const at = disks.length;
        disks.push({
          id: (at + 1).toString(16).padStart(32, '0'),
          nodeId: `node-${zone}-${node}`,
          zone: `zone-${zone}`,
          capacityBytes: capacityOf(at),
          address: `127.0.0.1:${7000 + at}`,
        });
      }
    }
  }
  return disks;
}
