// The list of members: hints for connecting, placing and showing, never a basis for decisions (R11). Contract
// (tests/contract/members.test.ts): a member that stops, or cannot reach the coordinator, disappears when its lease has
// ended, and returns when it renews it. While the coordinator is away the last list stays. One with a `clusterId` is not
// put into a coordinator that has another cluster.

import type { DiskId } from './placement.ts';
import type { NodeId } from './replication.ts';

export type MemberRole = 'metadata' | 'storage' | 'gateway';

export interface MemberDisk {
  diskId: string;
  capacityBytes: number;
  /** Of a disk of chunks, as in PlacedDisk (placement.ts). */
  cutSeq?: number;
}

/** A disk that a storage node is to serve and does not. */
export interface UnservedDisk {
  /** For people: its folder. */
  name: string;
  /** Absent: it was not opened, so nobody knows. */
  diskId?: string;
  /** One line, for people. */
  reason: string;
}

export interface Member {
  nodeId: NodeId;
  role: MemberRole;
  /** Of the cluster that it belongs to. Absent: a program announces it that does not say so. */
  clusterId?: string;
  /** Where other nodes reach it: `host:port`. */
  address: string;
  zone: string;
  /** Of the program. */
  version: string;
  /** Of a gateway: its machine, address and thread, which it has again when it is started again. */
  instance?: string;
  /** Of a storage node: where chunks may lie. */
  disks: MemberDisk[];
  /** Of a storage node. Absent: none. */
  unserved?: UnservedDisk[];
}

export interface MembersPort {
  /**
   * Keeps `member` in the list until `signal` aborts, over losses of its lease and of the coordinator. Resolves when it
   * has been taken out again, or could not be and goes by itself. Never rejects.
   */
  announce(member: Member, signal: AbortSignal): Promise<void>;
  /** Linearizable, by node id. Rejects when the coordinator is away. */
  current(): Promise<Member[]>;
  /**
   * Gateways of the last 24 h that ended without leaving, or are cut off: those with an `instance`. A gateway that
   * restarts, or is forgotten, is not among them. Rejects when the coordinator is away.
   */
  missingGateways(): Promise<Member[]>;
  forgetGateway(nodeId: NodeId): Promise<void>;
  /** The whole list at first and after each change, in the order of node ids. Ends with `signal`. */
  watch(onMembers: (members: Member[]) => void, signal: AbortSignal): void;
}

// How storage nodes make themselves known: a hint by which others find them and placement maps are made, never a ground
// for a decision about data (protocol 1.2).

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
