// The addresses of disks. The placement map has the address from when it was made; since then a node may have restarted
// with another port, or a disk may have moved to another node, and then the list of members has the new one. An address is
// a hint: the node that answers there proves which disk it has.
import type { DiskDirectory } from '../../ports/disk-chunks.ts';
import type { Member } from '../../ports/members.ts';
import type { DiskId } from '../../ports/placement.ts';

export interface DiskAddresses extends DiskDirectory {
  /** Takes the whole list after each change. A disk that is no longer in it keeps its last address. */
  learn(members: readonly Member[]): void;
  /** Calls `listener` for each disk that joins the list, or joins it again, from now on. */
  onReturn(listener: (disk: DiskId) => void): void;
}

/** `directory` reaches a disk at the address in its record. */
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
        if (before.get(disk) !== address) for (const listener of listeners) listener(disk);
      }
    },
    onReturn: (listener) => void listeners.push(listener),
    chunksOf(disk) {
      const address = addresses.get(disk.id);
      return directory.chunksOf(address === undefined ? disk : { ...disk, address });
    },
  };
}
