// All ports of coordination over one store.

import type { ClockPort } from '../ports/clock.ts';
import type { Coordination } from '../ports/coordination.ts';
import type { Logger } from '../ports/telemetry.ts';
import { LIMITS } from '../types/limits.ts';
import { createClusterIdentity } from './cluster-identity.ts';
import { createJobLocks } from './job-locks.ts';
import { createLeavingNodes } from './leaving-nodes.ts';
import { createMembers } from './members.ts';
import { createPlacementMap } from './placement-map.ts';
import { createShardRegistry } from './shard-registry.ts';
import type { CoordinationStore } from './store.ts';

export interface CoordinationOptions {
  clock: ClockPort;
  log: Logger;
  /** This process as locks show it: role and node id, for example. */
  holder: string;
  /** Prefix of all keys of the cluster, without a slash at its end. Clusters that share an etcd differ in it. */
  prefix?: string;
  memberLeaseMs?: number;
  jobLeaseMs?: number;
}

export function createCoordination(store: CoordinationStore, options: CoordinationOptions): Coordination {
  const context = {
    memberLeaseMs: LIMITS.memberLeaseMs,
    jobLeaseMs: LIMITS.jobLeaseMs,
    ...options,
    store,
    prefix: `${options.prefix ?? 'holdfast'}/`,
  };
  return {
    registry: createShardRegistry(context),
    identity: createClusterIdentity(context),
    members: createMembers(context),
    jobLocks: createJobLocks(context),
    placementMap: createPlacementMap(context),
    leavingNodes: createLeavingNodes(context),
  };
}
