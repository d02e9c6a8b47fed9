// The role metadata: replicas of shards over one database, the calls of gateways, and the background work of the shards
// that it leads. Wiring only.
import { setImmediate } from 'node:timers/promises';
import { advertisedAddress, type JoinedCluster, joinCluster } from '../../src/admin/join-cluster.ts';
import { refuseRemovedNode } from '../../src/admin/members/refuse-removed.ts';
import {
  keepPlacement,
  markUnreadable,
  type OwnDatabase,
  openOwnDatabase,
  readNodeRecords,
  witnessPath,
} from '../../src/admin/metadata-folder.ts';
import { openNodeFolder } from '../../src/admin/node-folder.ts';
import { openChunks } from '../../src/admin/open-chunks.ts';
import type { ProcessContext, RunningRole } from '../../src/admin/process-context.ts';
import { isMetadataReady } from '../../src/admin/status/cluster-status.ts';
import {
  DISK_METRICS,
  measureAudits,
  measurePlacement,
  measureReplicas,
  measureRoom,
  measureSilentDisks,
  report,
  SHARD_METRICS,
} from '../../src/admin/status/metrics.ts';
import { createFairTurns } from '../../src/base/async/fair-turns.ts';
import { Corruption } from '../../src/base/corruption.ts';
import { closeUnlessItHangs } from '../../src/base/drive-hangs.ts';
import { Refusal } from '../../src/base/refusal.ts';
import { hostPortText } from '../../src/base/text/host-port.ts';
import { createDiskReserve } from '../../src/chunks/disk/disk-reserve.ts';
import { auditedVersion } from '../../src/chunks/placement/audited-version.ts';
import { readDiskStates } from '../../src/chunks/placement/disk-states.ts';
import type { KnownPlacement } from '../../src/chunks/placement/known-placement.ts';
import { type DiskPlacerDeps, runDiskPlacer } from '../../src/chunks/placement/place-disks.ts';
import { placementOf } from '../../src/chunks/placement/placement-document.ts';
import { createHomeDisks } from '../../src/chunks/repair/home-disks.ts';
import { answerDamage } from '../../src/coordination/answer-damage.ts';
import { answerRecords } from '../../src/coordination/answer-records.ts';
import { callOwnNode } from '../../src/coordination/call-own-node.ts';
import { delayRevocations } from '../../src/coordination/delay-revocations.ts';
import { createShardPlacer } from '../../src/coordination/place-shards.ts';
import { createRevocationWait } from '../../src/coordination/revocation-wait.ts';
import { createMetadataRouter } from '../../src/coordination/route-metadata.ts';
import { DamageNames } from '../../src/metadata/blobs/name-damage-worker.ts';
import { refuseGrowingCalls } from '../../src/metadata/refuse-growth.ts';
import { createMetadataNode, type MetadataNode } from '../../src/metadata/replication/metadata-node.ts';
import { createMeteredMachine } from '../../src/metadata/state-machine.ts';
import { readDiskSpace } from '../../src/platform/disk/disk-space.ts';
import type { HangWatch } from '../../src/platform/disk/hang-watch.ts';
import { openWitnessFile } from '../../src/platform/disk/witness-file.ts';
import { describeEtcdFailure } from '../../src/platform/etcd/etcd-failure.ts';
import { createCallClient } from '../../src/platform/rpc/call-client.ts';
import { createCallServer } from '../../src/platform/rpc/call-server.ts';
import { createPeerClient } from '../../src/platform/rpc/peer-client.ts';
import { createPeerServer } from '../../src/platform/rpc/peer-server.ts';
import { startRpcServer } from '../../src/platform/rpc/rpc-server.ts';
import type { KvPort } from '../../src/ports/kv.ts';
import { SYSTEM_SHARD } from '../../src/ports/metadata/port.ts';
import type { PlacementMap } from '../../src/ports/placement.ts';
import type { PlacementDocument } from '../../src/ports/placement-map.ts';
import { LIMITS } from '../../src/types/limits.ts';
import { startShardWork } from './shard-work.ts';

export async function startMetadata(processContext: ProcessContext): Promise<RunningRole> {
  const { config, closing } = processContext;
  const own = await openNodeFolder(processContext, 'metadata');
  const { folder, nodeId } = own;
  const joined = await joinCluster(processContext, { nodeId, role: 'metadata' }, own);
  await refuseRemoved(processContext, { joined, nodeId, folder });
  const failure = Promise.withResolvers<Error>();
  const onFatal = (error: Error) => void endBy(error, folder).then(failure.resolve);
  const { kv, replicaId } = await openDatabase(processContext, folder, onFatal);
  const node = await openNode(processContext, {
    joined,
    folder,
    kv,
    nodeId,
    replicaId,
    onFatal,
  });
  const { peerServer, metadataNode, witness } = node;
  const { clock, log, telemetry } = processContext;
  measureReplicas(telemetry, () => metadataNode.status());
  const reserve = createDiskReserve({ readSpace: () => readDiskSpace(folder), clock, log });
  measureRoom(telemetry, { reserve, clock });
  const revocations = createRevocationWait({ clock, epoch: () => openEpoch(metadataNode) });
  const sources = { folder, nodeId, replicaId, kv, witness, cluster: joined.identity, isAtRest: false };
  const damageNames = new DamageNames();
  const answering = answerDamage(refuseGrowingCalls(metadataNode, reserve), (shard) => damageNames.of(shard));
  const handler = answerRecords(delayRevocations(answering, revocations), {
    read: () => readNodeRecords(sources),
    log,
  });
  const { placementMap } = joined.coordinator;
  const storedPlacement = await keepPlacement(folder, { placementMap, log, stopping: joined.stopping });
  const calls = createCallServer({ handler, log, telemetry });
  const server = await startRpcServer({
    ...processContext,
    self: joined.streams.self,
    listen: config.node.listen,
    advertise: config.node.advertise && hostPortText(config.node.advertise),
    credentials: joined.credentials,
    calls,
    peers: peerServer,
  });
  closing.defer(() => server.close());
  // First: it may lead some shards while it still asks for others.
  closing.defer(() => metadataNode.stop());
  await metadataNode.start();
  const address = advertisedAddress(config, hostPortText({ ...config.node.listen, port: server.port }));
  joined.announce(address, [{ diskId: replicaId, capacityBytes: 0 }]);
  await startWork(processContext, { joined, metadataNode, nodeId, damageNames, storedPlacement });
  return {
    address,
    nodeId,
    clusterId: joined.identity.clusterId,
    failed: failure.promise,
    isReady: () => isMetadataReady(metadataNode.status()),
  };
}

async function refuseRemoved(
  { log }: ProcessContext,
  { joined, nodeId, folder }: { joined: JoinedCluster; nodeId: string; folder: string },
): Promise<void> {
  const { shardCount } = joined.identity;
  await refuseRemovedNode(joined.coordinator, { nodeId, folder, shardCount }).catch((error: unknown) => {
    if (error instanceof Refusal) throw error;
    // It gets no shards; that it is there for nothing `holdfast cluster status` says, too.
    log.warn({ reason: describeEtcdFailure(error) }, 'coordinator-away');
  });
}

/** R17, R20: the error that the process is to end by. Opened again, a database with lost bytes would be no better. */
async function endBy(error: Error, folder: string): Promise<Error> {
  if (!(error instanceof Corruption)) return error;
  return markUnreadable(folder, error).then(
    () => error,
    (failed: Error) => failed,
  );
}

/** A node whose drive hangs ends, so that another one leads. */
function hangsOf({ config, clock }: ProcessContext): HangWatch {
  return { clock, afterMs: config.storage.hangAfterMs };
}

/** In which the system shard is open here. */
function openEpoch(node: MetadataNode): number | undefined {
  const status = node.replica(SYSTEM_SHARD)?.status();
  return status?.role === 'primary' ? status.epoch : undefined;
}

async function openDatabase(
  processContext: ProcessContext,
  folder: string,
  onFatal: (error: Error) => void,
): Promise<OwnDatabase> {
  const { telemetry, closing, clock, log, random } = processContext;
  const { kv, replicaId } = await openOwnDatabase(folder, {
    log,
    random,
    hangs: hangsOf(processContext),
    onGroup(group) {
      const labels = { store: 'metadata' };
      telemetry.observe('holdfast_kv_commit_group_size', group.commitCount, labels);
      telemetry.observe('holdfast_kv_commit_duration_seconds', group.durationMs / 1000, labels);
      telemetry.count('holdfast_kv_commit_bytes_total', labels, group.sizeBytes);
    },
  });
  closing.defer(() => closeUnlessItHangs(kv, { clock, maxMs: LIMITS.storeCloseMaxMs }));
  kv.failed.then(onFatal);
  return { kv, replicaId };
}

async function openNode(
  processContext: ProcessContext,
  parts: {
    joined: JoinedCluster;
    folder: string;
    kv: KvPort;
    nodeId: string;
    replicaId: string;
    onFatal(error: Error): void;
  },
) {
  const { config, clock, random, log, telemetry, closing } = processContext;
  const { joined, kv, nodeId, replicaId } = parts;
  const { clusterId, shardCount } = joined.identity;
  const witness = await openWitnessFile(witnessPath(parts.folder), clock, hangsOf(processContext));
  closing.defer(() => closeUnlessItHangs(witness, { clock, maxMs: LIMITS.storeCloseMaxMs }));
  witness.failed.then(parts.onFatal);
  const peerServer = createPeerServer({ log, telemetry });
  const peerClient = createPeerClient({ ...joined.streams, addressOf: joined.addressOf, log, telemetry });
  closing.defer(() => peerClient.close());
  const metadataNode = createMetadataNode({
    clusterId,
    nodeId,
    replicaId,
    shardCount,
    kv,
    witness,
    clock,
    random,
    machine: createMeteredMachine(config.metering),
    turns: createFairTurns({ clock }),
    onUnreadable: parts.onFatal,
    onEvent: (event) => telemetry.count('holdfast_replica_events_total', { event }),
    registry: joined.coordinator.registry,
    cluster: () => joined.coordinator.identity.stateOf(clusterId),
    logger: log,
    peers: {
      send: (to, message) => peerClient.send(to, message),
      listen: (onMessage) => peerServer.listen(onMessage),
    },
  });
  return { peerServer, metadataNode, witness };
}

/** What a node does beside answering: the work of the shards that it leads, and who should hold which. */
async function startWork(
  processContext: ProcessContext,
  parts: {
    joined: JoinedCluster;
    metadataNode: MetadataNode;
    nodeId: string;
    damageNames: DamageNames;
    /** The placement map that the node knew last. */
    storedPlacement: PlacementDocument | undefined;
  },
): Promise<void> {
  const { clock, random, log, telemetry, closing } = processContext;
  const { joined, metadataNode, nodeId } = parts;
  const { shardCount } = joined.identity;
  const others = createCallClient({ ...joined.streams, addressOf: joined.addressOf, log, telemetry });
  closing.defer(() => others.close());
  const metadata = createMetadataRouter({
    shardCount,
    clock,
    random,
    calls: callOwnNode({ nodeId, handler: metadataNode, others }),
  });
  joined.coordinator.registry.watch(
    (shard, registered) => metadata.onRegistered(shard, registered),
    joined.stopping,
  );
  const { chunks, placement, directory } = await openChunks(processContext, joined);
  if (parts.storedPlacement !== undefined) placement.learn(placementOf(parts.storedPlacement));
  telemetry.gauge('holdfast_cluster_shards', shardCount);
  measurePlacement(telemetry, () => placement.current());
  measureAudits(telemetry, { node: metadataNode, placement: () => placement.current() });
  const disks = createHomeDisks({
    placement,
    directory,
    clock,
    log,
    telemetry,
    repairBytesPerSecond: processContext.config.storage.repairRateBytes,
  });
  measureSilentDisks(telemetry, { silent: () => disks.silent(), members: () => joined.members() });
  directory.onReturn((disk) => disks.returned(disk));
  startShardWork(processContext, {
    metadata,
    chunks,
    disks,
    node: metadataNode,
    damageNames: parts.damageNames,
  });
  const placer = createShardPlacer({
    shardCount,
    clock,
    log,
    replicaCount: joined.identity.replicaCount,
    registry: joined.coordinator.registry,
    leavingNodes: joined.coordinator.leavingNodes,
    jobLocks: joined.coordinator.jobLocks,
    members: () => joined.members(),
    cluster: () => joined.coordinator.identity.stateOf(joined.identity.clusterId),
    promised: () => metadataNode.promised(),
    onLook: (seen) => report(telemetry, SHARD_METRICS, seen),
  });
  void placer.run(joined.stopping);
  startDiskPlacer(processContext, {
    joined,
    placement,
    auditedVersion: () => auditedVersion(metadata),
    reach: (disk) => directory.chunksOf(disk).usage(),
  });
}

/** `auditedVersion`: the least placement version at which all shards have finished an audit; undefined: not all have. */
function startDiskPlacer(
  { config, clock, log, telemetry }: ProcessContext,
  parts: {
    joined: JoinedCluster;
    placement: KnownPlacement;
  } & Pick<DiskPlacerDeps, 'auditedVersion' | 'reach'>,
): void {
  const { joined, placement, auditedVersion, reach } = parts;
  const { placementMap, jobLocks } = joined.coordinator;
  const deps: DiskPlacerDeps = {
    placementMap,
    jobLocks,
    clock,
    log,
    auditedVersion,
    reach,
    pause: () => setImmediate(),
    chunkCopies: joined.identity.chunkCopies,
    awayAfterMs: config.storage.awayAfterMs,
    members: () => joined.members(),
    cluster: () => joined.coordinator.identity.stateOf(joined.identity.clusterId),
    announcedVersion: () => placement.announcedVersion(),
    learn: (map: PlacementMap) => placement.learn(map),
    onLook: (seen) => report(telemetry, DISK_METRICS, seen && readDiskStates(seen.map, seen.members)),
    newestKnown() {
      const map = placement.current();
      return map.version === 0 ? undefined : map;
    },
  };
  void runDiskPlacer(deps, joined.stopping);
}
