// Where disks are reached: the placement map says which disks there are and where they were when it was made; a node may
// have another port since its last start, or a disk another node, which the list of members tells. A hint, as that is:
// who answers there proves which disk it has.
import type { DiskDirectory } from '../../ports/disk-chunks.ts';
import type { Member } from '../../ports/members.ts';
import type { DiskId } from '../../ports/placement.ts';

export interface DiskAddresses extends DiskDirectory {
  /** The whole list, as often as it changes. Of disks that are no more in it the last address stays. */
  learn(members: readonly Member[]): void;
  /** Tells of each disk that comes into the list, or comes there again, from now on. */
  onReturn(listener: (disk: DiskId) => void): void;
}

/** `directory` reaches a disk at the address that it is given with. */
export function followDiskAddresses(directory: DiskDirectory): DiskAddresses {
  const addresses = new Map<DiskId, string>();
  const listeners: ((disk: DiskId) => void)[] = [];
  let present: ReadonlyMap<DiskId, string> = new Map();
  return {
    learn(members) {
      const before = present;
      const storage = members.filter(({ role }) => role === 'storage');
      present = new Map(
        storage.flatMap(({ address, disks }) => disks.map(({ diskId }) => [diskId, address])),
      );
      for (const [disk, address] of present) {
        addresses.set(disk, address);
        if (before.get(disk) !== address) for (const tell of listeners) tell(disk);
      }
    },
    onReturn: (listener) => void listeners.push(listener),
    chunksOf(disk) {
      const address = addresses.get(disk.id);
      return directory.chunksOf(address === undefined ? disk : { ...disk, address });
    },
  };
}
