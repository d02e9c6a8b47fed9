// What the replicas of a shard say to one another (protocol 1.4), as plain data, and how it travels. One-way messages:
// an answer is a message of its own, so that any number may be under way, and any may be lost, late, doubled or out of
// order. What they mean is src/metadata/replication's.

/** A metadata node: random, made with its data folder, 32 hex digits. */
export type NodeId = string;
/** R1: random, made with the replica's rows, 32 hex digits. */
export type ReplicaId = string;

export interface ReplicaRef {
  replicaId: ReplicaId;
  nodeId: NodeId;
}

/** Where a log ends, or begins. */
export interface LogPosition {
  seq: number;
  epoch: number;
}

/** What a replica durably knows of its shard's record in the registry (R23): who could have what is acknowledged. */
export interface SeenRecord extends VoterRefs {
  epoch: number;
  /** 0: the registry had never been rebuilt. */
  rebuiltAtMs: number;
  /** Of the record; revisions compare only where `rebuiltAtMs` is the same. */
  revision: number;
}

export interface VoterRefs {
  voters: ReplicaRef[];
  /** Set while voters are being changed: majorities of both sets are needed (R14). */
  prevVoters: ReplicaRef[] | null;
  learners: ReplicaRef[];
}

interface Head {
  shard: number;
  /** Changes only when a history was given up (R23); others' are refused. */
  incarnation: number;
  epoch: number;
  from: ReplicaId;
  to: ReplicaId;
}

/** R4; without entries a heartbeat. `entries` as metadata/engine/entry-codec.ts encodes them, without gaps, from prev.seq + 1. */
export interface AppendMessage extends Head {
  kind: 'append';
  prev: LogPosition;
  entries: Uint8Array[];
  commitSeq: number;
  /** The primary's monotonic ms when it sent this: comes back in the answer (R10). */
  echoMs: number;
  /** What the primary has last been acknowledged by this replica in this epoch: a shorter log is damage (R17). */
  matchedSeq: number;
}

export interface AckMessage extends Head {
  kind: 'ack';
  /** The last entry verified to be the primary's, in this epoch (A4). */
  matchSeq: number;
  echoMs: number;
  wallMs: number;
  /** False while it is quarantined, installing or learning: it may not count for a majority (R5). */
  counts: boolean;
  /** R17: it needs a snapshot, and must have none before a majority has everything without it. Absent: false. */
  isDamaged?: boolean;
}

export interface NackMessage extends Head {
  kind: 'nack';
  /** As in an acknowledgement. */
  counts: boolean;
  /** The highest epoch promised: above `epoch` the sender's is over (R13). */
  promised: number;
  /** Where the primary should try next. */
  hintSeq: number;
  echoMs: number;
  wallMs: number;
}

/** R11: whether the receiver would let the sender take over, without any promise yet. */
export interface PreFenceMessage extends Head {
  kind: 'pre-fence';
  last: LogPosition;
}
export interface PreFencedMessage extends Head {
  kind: 'pre-fenced';
  agrees: boolean;
}

/** R12 b. */
export interface FenceMessage extends Head {
  kind: 'fence';
  /** The record by which the sender has its epoch. */
  seen: SeenRecord;
}
export interface FencedMessage extends Head {
  kind: 'fenced';
  last: LogPosition;
  base: LogPosition;
  wallMs: number;
  counts: boolean;
}
export interface RefusedMessage extends Head {
  kind: 'refused';
  promised: number;
}

/** R12 c: the entries behind `after` of the receiver's log. */
export interface FetchMessage extends Head {
  kind: 'fetch';
  after: LogPosition;
}
/** `prev` is the receiver's own row before them; when it is not `after`, the sender's log does not hold `after`. */
export interface FetchedMessage extends Head {
  kind: 'fetched';
  prev: LogPosition;
  entries: Uint8Array[];
  last: LogPosition;
}

/** R16: pages of rows, numbered from 0; the receiver asks for each when it has written the one before. */
export interface SnapshotBeginMessage extends Head {
  kind: 'snapshot-begin';
  /** Random, of this transfer. */
  snapshotId: string;
  /** The source's applied entry before its first page was read. */
  start: LogPosition & { timeMs: number };
}
export interface SnapshotPageMessage extends Head {
  kind: 'snapshot-page';
  snapshotId: string;
  page: number;
  rows: { column: string; key: Uint8Array; value: Uint8Array }[];
  /** Of the last page: the source's applied seq behind it. The target counts for nothing before it has applied it. */
  endSeq?: number;
}
export interface SnapshotNextMessage extends Head {
  kind: 'snapshot-next';
  snapshotId: string;
  /** The page that is wanted. */
  page: number;
}

/** R22: hash of the range that entry `seq` names, over the sender's state at exactly this entry. */
export interface VerifiedMessage extends Head {
  kind: 'verified';
  seq: number;
  /** Hex. */
  digest: string;
}
/** R22: the receiver's digest of `seq` differs from the majority's: its state is damaged. */
export interface OddMessage extends Head {
  kind: 'odd';
  seq: number;
}

/** R9, R13: promises to the sender end now; `heir` should be a candidate at once. */
export interface ReleaseMessage extends Head {
  kind: 'release';
  heir?: ReplicaId;
}

export type ReplicaMessage =
  | AppendMessage
  | AckMessage
  | NackMessage
  | PreFenceMessage
  | PreFencedMessage
  | FenceMessage
  | FencedMessage
  | RefusedMessage
  | FetchMessage
  | FetchedMessage
  | SnapshotBeginMessage
  | SnapshotPageMessage
  | SnapshotNextMessage
  | VerifiedMessage
  | OddMessage
  | ReleaseMessage;

/**
 * Contract (tests/contract/peers.test.ts): `send` never throws and never waits; messages to one node arrive in order or not
 * at all while a connection lasts; those of one turn of the event loop share a frame (R20: heartbeats of all shards).
 * Beyond LIMITS.peerQueueBytesMax of unsent bytes for a node, messages to it are dropped. Only messages of members of the
 * same cluster are received.
 */
export interface PeerPort {
  send(to: NodeId, message: ReplicaMessage): void;
  /** Called once, before anything arrives. */
  listen(onMessage: (from: NodeId, message: ReplicaMessage) => void): void;
}
