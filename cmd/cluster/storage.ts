// The role storage: the chunks of its disks, served to the cluster. Wiring only.
import { join, resolve } from 'node:path';
import { advertisedAddress, type JoinedCluster, joinCluster } from '../../src/admin/join-cluster.ts';
import { type NodeFolder, openNodeFolder, refuseStrangeDisk } from '../../src/admin/node-folder.ts';
import { chunkCredentials, watchPlacement } from '../../src/admin/open-chunks.ts';
import { CHUNK_COLUMNS, CHUNKS_FOLDER, extentEvents } from '../../src/admin/open-databases.ts';
import type { ProcessContext, RunningRole } from '../../src/admin/process-context.ts';
import { within } from '../../src/base/async/within.ts';
import { Refusal } from '../../src/base/refusal.ts';
import { hostPortText } from '../../src/base/text/host-port.ts';
import { followDiskAddresses } from '../../src/chunks/copies/disk-addresses.ts';
import { createDiskReserve } from '../../src/chunks/disk/disk-reserve.ts';
import { CHUNK_PLACES } from '../../src/chunks/disk/keyspace.ts';
import type { DiskToOpen } from '../../src/chunks/disk/node-disks.ts';
import { createStorageNode } from '../../src/chunks/disk/storage-node.ts';
import type { KnownPlacement } from '../../src/chunks/placement/known-placement.ts';
import { knownOwners } from '../../src/chunks/placement/placement.ts';
import { placementOf } from '../../src/chunks/placement/placement-document.ts';
import type { ChunkBuffers } from '../../src/objects/chunk-buffers.ts';
import { createChunkClient } from '../../src/platform/chunk-http/client.ts';
import { createChunkServer } from '../../src/platform/chunk-http/server.ts';
import { EXTENTS_FORMAT } from '../../src/platform/disk/data-dir-lock.ts';
import { readDiskSpace } from '../../src/platform/disk/disk-space.ts';
import { createMountMemory } from '../../src/platform/disk/mount-points.ts';
import { openWitnessFile } from '../../src/platform/disk/witness-file.ts';
import { describeEtcdFailure } from '../../src/platform/etcd/etcd-failure.ts';
import { openSeparatedKv, usesExtents } from '../../src/platform/extents/open-separated.ts';
import { RecordMemory } from '../../src/platform/extents/record-memory.ts';
import { createWorkerRunner } from '../../src/platform/worker-runner.ts';
import type { Logger } from '../../src/ports/telemetry.ts';
import { LIMITS } from '../../src/types/limits.ts';
import { createBuffers } from '../open-objects.ts';
import { storageNodeWorkers } from '../workers.ts';

export async function startStorage(processContext: ProcessContext): Promise<RunningRole> {
  const { config, log, telemetry, clock, random, closing } = processContext;
  refuseTwice(config.storage.disks);
  const own = await openNodeFolder(processContext, 'storage');
  const { nodeId } = own;
  const joined = await joinCluster(processContext, { nodeId, role: 'storage' }, own);
  const { clusterId } = joined.identity;
  const credentials = chunkCredentials(config, joined);
  const received = new RecordMemory(LIMITS.chunkPutsBytesMax);
  const buffers = createBuffers(config, { received });
  const placement = watchPlacement(joined);
  await learnPlacement(placement, { joined, log });
  const others = createChunkClient({
    clusterId,
    credentials,
    clock,
    onMapVersion: (version) => placement.noteVersion(version),
  });
  closing.defer(() => others.close());
  const directory = followDiskAddresses(others);
  joined.onMembers((members) => directory.learn(members));
  const node = createStorageNode({
    clusterId,
    nodeId,
    clock,
    random,
    log,
    telemetry,
    zone: joined.zone,
    disks: disksToOpen(processContext, own, { buffers, received }),
    owners: knownOwners(placement),
    isRemoved: (diskId) => placement.current().retired.includes(diskId),
    fetch: ({ diskId, address }, id, signal) => {
      const disk = { id: diskId, address, nodeId: '', zone: '', capacityBytes: 0 };
      return directory.chunksOf(disk).get(id, { isProven: false, signal });
    },
    server: createChunkServer({
      listen: config.node.listen,
      clusterId,
      credentials,
      clock,
      log,
      takeMemory: (sizeBytes) => buffers.lease(sizeBytes),
      ...(config.node.advertise && { advertise: hostPortText(config.node.advertise) }),
    }),
    members: {
      async announce({ address, disks, unserved }) {
        joined.announce(
          advertisedAddress(config, address),
          disks.map(({ id, ...disk }) => ({ diskId: id, ...disk })),
          unserved,
        );
      },
      leave: () => joined.leave(),
    },
    reclaim: { afterBytes: config.storage.reclaimAfterBytes, delayMs: config.storage.reclaimDelayMs },
    scrub: {
      bytesPerSecond: config.storage.scrubRateBytes,
      periodMs: config.storage.scrubPeriodMs,
    },
  });
  closing.defer(() => node.stop());
  await node.start();
  const runner = createWorkerRunner({
    workers: storageNodeWorkers({ made: node.workers }),
    clock,
    log,
    telemetry,
  });
  runner.start();
  // Beside one another: a worker may be reading from a drive that hangs, and the node is to leave at once.
  closing.defer(async () => {
    await Promise.all([within(runner.stop(), LIMITS.storeCloseMaxMs, clock), node.stop()]);
  });
  return { address: node.address, nodeId, clusterId, failed: node.failed, isReady: () => true };
}

/** As it is now: which disks are forgotten is to be known before they are opened. */
async function learnPlacement(
  placement: KnownPlacement,
  { joined, log }: { joined: JoinedCluster; log: Logger },
): Promise<void> {
  try {
    const stored = await joined.coordinator.placementMap.read();
    if (stored !== undefined) placement.learn(placementOf(stored.document));
  } catch (error) {
    // The map arrives later; a removed disk that is served is of no use, and does no harm.
    log.warn({ reason: describeEtcdFailure(error) }, 'coordinator-away');
  }
}

function refuseTwice(disks: readonly string[]): void {
  const paths = disks.map((disk) => resolve(disk));
  const twice = paths.find((path, at) => paths.indexOf(path) !== at);
  if (twice !== undefined) throw new Refusal(`storage.disks names ${twice} twice`);
}

/** Of all disks of the node. */
interface NodeMemory {
  buffers: ChunkBuffers;
  received: RecordMemory;
}

function disksToOpen(processContext: ProcessContext, own: NodeFolder, memory: NodeMemory): DiskToOpen[] {
  const { folder } = own;
  const { disks } = processContext.config.storage;
  const mounts = createMountMemory(join(folder, 'mounts.json'));
  const looked = new Set<string>();
  return (disks.length > 0 ? disks : [folder]).map((name) => ({
    name,
    async open() {
      const disk = resolve(name);
      if (disk !== folder) await mounts.assertMounted(disk);
      // Once: the drive of one that is opened again has hung before.
      if (disk !== folder && !looked.has(disk)) await refuseStrangeDisk(disk);
      looked.add(disk);
      return openDisk(processContext, { own, folder: disk, memory });
    },
  }));
}

async function openDisk(
  { config, clock, telemetry, log }: ProcessContext,
  { own, folder, memory }: { own: NodeFolder; folder: string; memory: NodeMemory },
) {
  const hangs = { clock, afterMs: config.storage.hangAfterMs };
  const database = {
    folder: join(folder, CHUNKS_FOLDER),
    separateFromBytes: config.storage.separateFromBytes,
  };
  if (usesExtents(database)) await own.raiseFormat(EXTENTS_FORMAT);
  const kv = await openSeparatedKv({
    ...database,
    columns: CHUNK_COLUMNS,
    separated: CHUNK_PLACES,
    ...extentEvents(log),
    databaseCount: Math.max(1, config.storage.disks.length),
    hangs,
    onReleased: (buffer) => memory.buffers.give(buffer),
    received: memory.received,
    onGroup(group) {
      const labels = { store: 'chunks' };
      telemetry.observe('holdfast_kv_commit_group_size', group.commitCount, labels);
      telemetry.observe('holdfast_kv_commit_duration_seconds', group.durationMs / 1000, labels);
      telemetry.count('holdfast_kv_commit_bytes_total', labels, group.sizeBytes);
    },
  });
  const reserve = createDiskReserve({ readSpace: () => readDiskSpace(folder), clock, log });
  try {
    return { kv, reserve, witness: await openWitnessFile(join(folder, 'chunks.witness'), clock, hangs) };
  } catch (error) {
    await kv.close();
    throw error;
  }
}
