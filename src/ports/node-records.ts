// What a metadata node durably knows of its cluster, as plain data: what the registry is rebuilt from, and a shard
// recovered, when more was lost than the protocol bears (R23). Read from its folder, whether or not it runs.
import type { ClusterIdentity } from './cluster-identity.ts';
import type { PlacementDocument } from './placement-map.ts';
import type { LogPosition, NodeId, ReplicaId, SeenRecord } from './replication.ts';

export interface StoredReplica {
  shard: number;
  state: 'installing' | 'live' | 'quarantined' | 'removed';
  incarnation: number;
  /** The highest epoch promised. */
  promised: number;
  /** The end of its log, and of what is applied. */
  last: LogPosition;
  appliedSeq: number;
  /** What it has last acknowledged (R17); null: nothing. */
  witness: LogPosition | 'damaged' | null;
  /** null: it has acted on no record yet. */
  seen: SeenRecord | null;
}

export interface NodeRecords {
  nodeId: NodeId;
  /** Of its database (R1). */
  replicaId: ReplicaId;
  cluster: ClusterIdentity;
  /** The newest map that it knows; null: none. */
  placement: PlacementDocument | null;
  /** It serves nothing but these: no replica is open. */
  isAtRest: boolean;
  replicas: StoredReplica[];
}
