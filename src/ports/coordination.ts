// All that a process of a cluster asks of its coordinator, over one connection. Nothing here is in the path of a
// request: with the coordinator away, and nothing else wrong, none fails.
import type { ClusterIdentityPort } from './cluster-identity.ts';
import type { JobLocksPort } from './job-locks.ts';
import type { LeavingNodesPort } from './leaving-nodes.ts';
import type { MembersPort } from './members.ts';
import type { PlacementMapPort } from './placement-map.ts';
import type { ShardRegistryPort } from './shard-registry.ts';

export interface Coordination {
  registry: ShardRegistryPort;
  identity: ClusterIdentityPort;
  members: MembersPort;
  jobLocks: JobLocksPort;
  placementMap: PlacementMapPort;
  leavingNodes: LeavingNodesPort;
}
