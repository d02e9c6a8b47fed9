// How storage nodes make themselves known: a hint by which others find them and placement maps are made, never a ground
// for a decision about data (protocol 1.2).
import type { UnservedDisk } from './members.ts';
import type { DiskId } from './placement.ts';
import type { NodeId } from './replication.ts';

export interface StorageMember {
  nodeId: NodeId;
  zone: string;
  /** Where it serves chunks: `host:port`. */
  address: string;
  /** Those that it serves now. */
  disks: { id: DiskId; capacityBytes: number; cutSeq?: number }[];
  /** Those that it does not, and should. */
  unserved: UnservedDisk[];
}

export interface StorageMembersPort {
  /** Known to all others when it resolves, and kept so until `leave` or the end of the process; replaces the last one. */
  announce(member: StorageMember): Promise<void>;
  leave(): Promise<void>;
}
