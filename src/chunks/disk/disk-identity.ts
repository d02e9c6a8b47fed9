// The identity of a disk (protocol 1.2, R40): its cluster, and an id made with its database, so that an emptied disk is a
// new one. Also the highest placement version that its node knows, so that it holds after a restart (R34).
import { toHex } from '../../base/bytes/bytes.ts';
import { defineRecord } from '../../base/record-codec.ts';
import { Refusal } from '../../base/refusal.ts';
import type { RandomPort } from '../../ports/clock.ts';
import type { KvPort, KvPut } from '../../ports/kv.ts';
import type { DiskId } from '../../ports/placement.ts';
import { DISK_KEY, indexBounds, SCRUB_KEY } from './keyspace.ts';

export interface DiskIdentity {
  clusterId: string;
  diskId: DiskId;
  mapVersion: number;
  /**
   * The commit after which it continued when it last came back without acknowledged data (R40). It is no count: the next
   * loss may take the count along, and then the same loss would be reported again. Absent: it never lost any.
   */
  cutSeq?: number;
}

const DISK_ID_BYTES = 16;
const codec = defineRecord<DiskIdentity>({ name: 'disk', version: 1 });

/** Reads who the disk is, or makes an empty one a new disk. Throws {@link Refusal} for a disk that is not this cluster's. */
export async function openDiskIdentity(
  kv: KvPort,
  options: { name: string; clusterId: string; random: RandomPort },
): Promise<DiskIdentity> {
  const { name, clusterId, random } = options;
  const [row] = await kv.getMany('index', [DISK_KEY]);
  if (row !== undefined) {
    const identity = decodeDiskIdentity(row);
    if (identity.clusterId === clusterId) return identity;
    throw new Refusal(
      `The disk ${name} is of cluster ${identity.clusterId}, not of ${clusterId}: give it back, or empty its folder.`,
    );
  }
  const chunks = await kv.range({ column: 'index', ...indexBounds(), limit: 1 });
  if (chunks.length > 0)
    throw new Refusal(
      `The disk ${name} holds chunks, but of no cluster: it is of a single server, or damaged.`,
    );
  const identity = { clusterId, diskId: toHex(random.bytes(DISK_ID_BYTES)), mapVersion: 0 };
  await keepDiskIdentity(kv, identity);
  return identity;
}

/**
 * Records the loss of acknowledged commits (R40): the home shards then search for the lost chunks at once, and the scrub begins a
 * pass, because what rows of before the loss name in extents may have been overwritten.
 */
export async function noteCut(kv: KvPort, identity: DiskIdentity, cutSeq: number): Promise<DiskIdentity> {
  const cut = { ...identity, cutSeq };
  await kv.commit([rowOf(cut), { column: 'index', key: SCRUB_KEY, value: null }]);
  return cut;
}

/** The record under DISK_KEY. */
export function decodeDiskIdentity(row: Uint8Array): DiskIdentity {
  return codec.decode(row);
}

export function keepDiskIdentity(kv: KvPort, identity: DiskIdentity): Promise<void> {
  return kv.commit([rowOf(identity)]);
}

function rowOf(identity: DiskIdentity): KvPut {
  return { column: 'index', key: DISK_KEY, value: codec.encode(identity) };
}

/** undefined: the disk belongs to no cluster, or is empty. */
export async function readDiskIdentity(kv: KvPort): Promise<DiskIdentity | undefined> {
  const [row] = await kv.getMany('index', [DISK_KEY]);
  return row && decodeDiskIdentity(row);
}
