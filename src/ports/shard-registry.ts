// The records by which shards are owned (protocol 1.2), kept where all nodes see them: etcd, or a simulation of it.
// Contract (tests/contract/shard-registry.test.ts): records change only by `swap`; of two swaps that expect the same
// revision one wins; `read` is linearizable; a swap that rejects may have been done, or may be done later (A3).
import type { NodeId, ReplicaId, ReplicaRef, VoterRefs } from './replication.ts';

export interface ShardRecord extends VoterRefs {
  incarnation: number;
  epoch: number;
  /** One of `voters`; null before the shard has first been opened. */
  primary: ReplicaRef | null;
  /** Where it should come to (balancing, drains): the primary brings it there, one step at a time. */
  wanted?: WantedShard;
  /** Wall clock ms at which it was rebuilt from what replicas knew (R23): revisions of before mean nothing. */
  rebuiltAtMs?: number;
  /** The one replica whose rows this incarnation began with, all others being given up (R23). */
  recoveredFrom?: ReplicaId;
  /** Random, of the writer: a swap whose answer was lost is known by it (R2). */
  nonce: string;
}

export interface WantedShard {
  voters: ReplicaRef[];
  /** Absent: any of them. */
  primary?: ReplicaId;
  /** Where nodes of `voters` were when they were last there: copies are kept apart from those that are away, too. */
  zones?: Readonly<Record<NodeId, string>>;
}

export interface RegisteredShard {
  record: ShardRecord;
  /** Of this record: what `swap` expects. */
  revision: number;
  /** Of the whole registry when it was read: grows with every change, and shows when a registry was set back (R23). */
  registryRevision: number;
}

export interface ShardRegistryPort {
  /** Rejects when the registry is away. undefined: never written. */
  read(shard: number): Promise<RegisteredShard | undefined>;
  /** `expected` 0: there is none yet. `lost`: another revision is there. Rejects when the outcome is not known; is not retried. */
  swap(
    shard: number,
    change: { expected: number; record: ShardRecord },
  ): Promise<{ kind: 'done'; revision: number } | { kind: 'lost' }>;
  /** A hint that the record has changed, never a ground for a decision. Ends with `signal`. */
  watch(onChange: (shard: number, registered: RegisteredShard) => void, signal: AbortSignal): void;
}
