// Chunks over all disks of the cluster, as gateways and metadata nodes see them: the placement map as it becomes known,
// connections to storage nodes, copies. Wiring only.

import { must } from '../base/assert.ts';
import { type DiskAddresses, followDiskAddresses } from '../chunks/copies/disk-addresses.ts';
import { createReplicatedChunks, type ReplicatedChunks } from '../chunks/copies/replicated-chunks.ts';
import { createKnownPlacement, type KnownPlacement } from '../chunks/placement/known-placement.ts';
import { NO_PLACEMENT } from '../chunks/placement/placement.ts';
import { placementOf } from '../chunks/placement/placement-document.ts';
import type { Config } from '../config/schema.ts';
import { createChunkClient } from '../platform/chunk-http/client.ts';
import type { PeerCredentials } from '../platform/chunk-http/peer-proof.ts';
import { type JoinedCluster, securityOf } from './join-cluster.ts';
import type { ProcessContext } from './process-context.ts';

export async function openChunks(
  { config, clock, log, closing }: ProcessContext,
  joined: JoinedCluster,
  onReleased?: (buffer: ArrayBuffer) => void,
): Promise<{ chunks: ReplicatedChunks; placement: KnownPlacement; directory: DiskAddresses }> {
  const placement = watchPlacement(joined);
  const client = createChunkClient({
    clusterId: joined.identity.clusterId,
    credentials: chunkCredentials(config, joined),
    clock,
    onMapVersion: (version) => placement.noteVersion(version),
  });
  closing.defer(() => client.close());
  const near = config.node.zone === undefined ? {} : { zone: config.node.zone };
  const directory = followDiskAddresses(client);
  joined.onMembers((members) => directory.learn(members));
  const chunks = createReplicatedChunks({
    placement,
    directory,
    clock,
    log,
    near,
    ...(onReleased && { onReleased }),
  });
  closing.defer(() => chunks.close());
  return { chunks, placement, directory };
}

/** The newest map that is known here; an empty one before the first map. */
export function watchPlacement(joined: JoinedCluster): KnownPlacement {
  const { placementMap } = joined.coordinator;
  const placement = createKnownPlacement(NO_PLACEMENT, () => {
    // A node announced a version that the watch has not reported: read the map at once.
    placementMap.read().then(
      (stored) => stored && placement.learn(placementOf(stored.document)),
      () => {},
    );
  });
  placementMap.watch(({ document }) => placement.learn(placementOf(document)), joined.stopping);
  return placement;
}

export function chunkCredentials(
  config: Config,
  { credentials }: Pick<JoinedCluster, 'credentials'>,
): PeerCredentials {
  const security = securityOf(config);
  if (security.mode === 'secret') return { kind: 'secret', secret: security.secret };
  return { kind: 'tls', ...must(credentials.certificates, 'nodes that have no secret have certificates') };
}
