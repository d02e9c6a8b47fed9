// A placement map as bytes, small enough for one value in the coordinator: owners are indexes of disks.
import { assert, must } from '../../base/assert.ts';
import { defineRecord } from '../../base/record-codec.ts';
import type { DiskId, PlacedDisk, PlacementMap } from '../../ports/placement.ts';
import { LIMITS } from '../../types/limits.ts';

interface PlacementRecord {
  version: number;
  copies: number;
  disks: readonly PlacedDisk[];
  /** For each partition the number of its owners, one byte, then two bytes for each: its index in `disks`. */
  owners: Uint8Array;
  previous: Uint8Array;
  former: Uint8Array;
  auditFrom: number;
  retired: readonly DiskId[];
}

type First = Omit<PlacementRecord, 'previous' | 'former' | 'auditFrom' | 'retired'>;

const codec = defineRecord<PlacementRecord>({
  name: 'placement',
  version: 2,
  migrations: {
    1: (old: First): PlacementRecord => ({
      ...old,
      previous: new Uint8Array(LIMITS.partitionCount),
      former: new Uint8Array(LIMITS.partitionCount),
      auditFrom: old.version,
      retired: [],
    }),
  },
});

export function encodePlacement(map: PlacementMap): Uint8Array {
  const numbers = new Map(map.disks.map(({ id }, at) => [id, at]));
  const pack = (partitions: PlacementMap['owners']) => packDisks(partitions, numbers);
  const { owners, previous, former } = map;
  return codec.encode({ ...map, owners: pack(owners), previous: pack(previous), former: pack(former) });
}

function packDisks(partitions: PlacementMap['owners'], numbers: ReadonlyMap<DiskId, number>): Uint8Array {
  const diskCount = partitions.reduce((count, { length }) => count + length, 0);
  const bytes = Buffer.alloc(partitions.length + 2 * diskCount);
  let at = 0;
  for (const ids of partitions) {
    at = bytes.writeUInt8(ids.length, at);
    for (const id of ids) at = bytes.writeUInt16BE(must(numbers.get(id), 'an owner is a disk'), at);
  }
  return bytes;
}

/** Throws BrokenInvariant if it is not a map. */
export function decodePlacement(stored: Uint8Array): PlacementMap {
  const record = codec.decode(stored);
  const { disks } = record;
  const unpack = (packed: Uint8Array) => unpackDisks(packed, disks);
  const { owners, previous, former } = record;
  return { ...record, owners: unpack(owners), previous: unpack(previous), former: unpack(former) };
}

function unpackDisks(packed: Uint8Array, disks: readonly PlacedDisk[]): DiskId[][] {
  const bytes = Buffer.from(packed);
  let at = 0;
  const partitions: DiskId[][] = [];
  for (let partition = 0; partition < LIMITS.partitionCount; partition++) {
    assert(at < bytes.length, 'a map has all partitions');
    const count = bytes.readUInt8(at++);
    assert(at + 2 * count <= bytes.length, 'a map ends with its disks');
    const ids: DiskId[] = [];
    for (let disk = 0; disk < count; disk++, at += 2)
      ids.push(must(disks[bytes.readUInt16BE(at)], 'an owner is a disk').id);
    partitions.push(ids);
  }
  assert(at === bytes.length, 'a map has no more than all partitions');
  return partitions;
}
