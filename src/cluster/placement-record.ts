// A placement map as bytes, small enough for one value of the coordinator: owners as numbers of disks.
import { assert, must } from '../lib/assert.ts';
import { defineRecord } from '../lib/record-codec.ts';
import { LIMITS } from '../model/limits.ts';
import type { PlacedDisk, PlacementMap } from '../ports/placement.ts';

interface PlacementRecord {
  version: number;
  copies: number;
  disks: readonly PlacedDisk[];
  /** Of each partition the count of its owners, one byte; then, two bytes each, where in `disks` they are. */
  owners: Uint8Array;
}

const codec = defineRecord<PlacementRecord>({ name: 'placement', version: 1 });

export function encodePlacement({ version, copies, disks, owners }: PlacementMap): Uint8Array {
  const numbers = new Map(disks.map(({ id }, at) => [id, at]));
  const ownerCount = owners.reduce((count, { length }) => count + length, 0);
  const bytes = Buffer.alloc(owners.length + 2 * ownerCount);
  let at = 0;
  for (const ids of owners) {
    at = bytes.writeUInt8(ids.length, at);
    for (const id of ids) at = bytes.writeUInt16BE(must(numbers.get(id), 'an owner is a disk'), at);
  }
  return codec.encode({ version, copies, disks, owners: bytes });
}

/** Throws BrokenInvariant for what is no map. */
export function decodePlacement(stored: Uint8Array): PlacementMap {
  const { version, copies, disks, owners: packed } = codec.decode(stored);
  const bytes = Buffer.from(packed);
  let at = 0;
  const owners = Array.from({ length: LIMITS.partitionCount }, () => {
    assert(at < bytes.length, 'a map has all partitions');
    const count = bytes.readUInt8(at++);
    assert(at + 2 * count <= bytes.length, 'a map ends with its owners');
    return Array.from({ length: count }, () => {
      const { id } = must(disks[bytes.readUInt16BE(at)], 'an owner is a disk');
      at += 2;
      return id;
    });
  });
  assert(at === bytes.length, 'a map has no more than all partitions');
  return { version, copies, disks, owners };
}
