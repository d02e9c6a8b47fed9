import { expect, test } from 'vitest';
import type { DiskDirectory } from '../../ports/disk-chunks.ts';
import type { Member } from '../../ports/members.ts';
import type { PlacedDisk } from '../../ports/placement.ts';
import { followDiskAddresses } from './disk-addresses.ts';

const disk: PlacedDisk = { id: 'd1', nodeId: 'n1', zone: 'z', capacityBytes: 1, address: '127.0.0.1:1000' };

function storage(address: string, diskIds: readonly string[]): Member {
  const disks = diskIds.map((diskId) => ({ diskId, capacityBytes: 1 }));
  return { nodeId: 'n1', role: 'storage', address, zone: 'z', version: '0', disks };
}

/** The address at which the disk is looked for. */
function open() {
  const asked: PlacedDisk[] = [];
  const directory: DiskDirectory = {
    chunksOf(placed) {
      asked.push(placed);
      throw new Error('not of this test');
    },
  };
  const reached = followDiskAddresses(directory);
  const addressOf = (placed: PlacedDisk) => {
    expect(() => reached.chunksOf(placed)).toThrow('not of this test');
    return asked.at(-1)?.address;
  };
  return { reached, addressOf };
}

test('a disk that no member lists is looked for where the map says', () => {
  const { reached, addressOf } = open();
  expect(addressOf(disk)).toBe('127.0.0.1:1000');
  reached.learn([
    storage('127.0.0.1:2000', ['d2']),
    { ...storage('127.0.0.1:3000', ['d1']), role: 'metadata' },
  ]);
  expect(addressOf(disk)).toBe('127.0.0.1:1000');
});

test('a restarted node is reached at its new address, also when it is missing from the list for a while', () => {
  const { reached, addressOf } = open();
  reached.learn([storage('127.0.0.1:2000', ['d1', 'd2'])]);
  expect([addressOf(disk), addressOf({ ...disk, id: 'd2' })]).toEqual(['127.0.0.1:2000', '127.0.0.1:2000']);
  reached.learn([]);
  expect(addressOf(disk)).toBe('127.0.0.1:2000');
  reached.learn([storage('127.0.0.1:2001', ['d1'])]);
  expect(addressOf(disk)).toBe('127.0.0.1:2001');
});

test('listeners are called once for each disk that joins, returns or changes its address', () => {
  const { reached } = open();
  reached.learn([storage('127.0.0.1:2000', ['d1'])]);
  const returned: string[] = [];
  reached.onReturn((id) => void returned.push(id));
  const steps: [members: Member[], told: string[]][] = [
    [[storage('127.0.0.1:2000', ['d1'])], []],
    [[storage('127.0.0.1:2000', ['d1', 'd2'])], ['d2']],
    [[], []],
    [[storage('127.0.0.1:2000', ['d1'])], ['d1']],
    [[storage('127.0.0.1:2001', ['d1'])], ['d1']],
    [[{ ...storage('127.0.0.1:3000', ['database']), role: 'metadata' }], []],
  ];
  for (const [members, told] of steps) {
    reached.learn(members);
    expect(returned.splice(0)).toEqual(told);
  }
});
