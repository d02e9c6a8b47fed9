// What a metadata node of the product does beside its shards (cmd/cluster/metadata.ts): answers of revocations wait for
// gateways, and the shards that it leads finish their work for other shards, and let data go.

import { auditedVersion } from '../../src/chunks/placement/audited-version.ts';
import { type DiskPlacerDeps, runDiskPlacer } from '../../src/chunks/placement/place-disks.ts';
import { createHomeDisks } from '../../src/chunks/repair/home-disks.ts';
import { callOwnNode } from '../../src/coordination/call-own-node.ts';
import { delayRevocations } from '../../src/coordination/delay-revocations.ts';
import { createRevocationWait } from '../../src/coordination/revocation-wait.ts';
import { createBlobAudit } from '../../src/metadata/blobs/audit-blobs.ts';
import { createCorruptionCollector } from '../../src/metadata/blobs/collect-corruption.ts';
import { createDeletionMarker } from '../../src/metadata/blobs/mark-blobs-worker.ts';
import { createBlobRelease } from '../../src/metadata/blobs/release-blobs.ts';
import { createRepairWorker } from '../../src/metadata/blobs/repair-chunks-worker.ts';
import { createClaimResolver } from '../../src/metadata/blobs/resolve-claims.ts';
import { createDiskSweep } from '../../src/metadata/blobs/sweep-disks.ts';
import { createBucketEmptier } from '../../src/metadata/buckets/empty-buckets.ts';
import { createOutboxDelivery } from '../../src/metadata/jobs/deliver-outbox.ts';
import { createJobDriver } from '../../src/metadata/jobs/drive-jobs.ts';
import type { MetadataNode } from '../../src/metadata/replication/metadata-node.ts';
import { createUploadExpiry } from '../../src/metadata/uploads/expire-uploads-worker.ts';
import { createPartRelease } from '../../src/metadata/uploads/release-parts-worker.ts';
import { createJobForgetter, createTokenForgetter } from '../../src/metadata/workers/forget-by-age.ts';
import { createWorkerRunner } from '../../src/platform/worker-runner.ts';
import type { Fence } from '../../src/ports/chunks.ts';
import { type MetadataPort, SYSTEM_SHARD } from '../../src/ports/metadata/port.ts';
import type { ShardCallHandler } from '../../src/ports/shard-calls.ts';
import type { Worker } from '../../src/ports/worker.ts';
import type { SimulatedProcess } from './clock.ts';
import { hurried } from './hurried.ts';
import type { PlacementBoard } from './placement-board.ts';
import { NO_CHUNKS, type OpenChunks, openRouter } from './product-gateway.ts';
import { type Ground, loggerOf } from './sites.ts';

/** Shorter than any body is read, so that a reader meets it now and then. */
const READING_GRACE_MS = 4000;

const COPIES = 3;
/** As in life: never in a seed, but for its own reasons. */
const AUDIT_EVERY_MS = 7 * 24 * 60 * 60_000;
const SWEEP_EVERY_MS = 5000;
/** Until a disk that nobody serves is given up. */
const AWAY_AFTER_MS = 9000;
/** Uploads that are left. */
const UPLOAD_KEPT_MS = 12 * 60 * 60_000;
/** Shard time follows a majority of clocks (R19). */
const NO_TIME_JUMPS = { mayRemoveByAge: () => true };

export const CLOSING_DRIVEN_ON = 'names: forced deletion driven on by its shard';

const SILENT = {
  count: () => undefined,
  observe: () => undefined,
  gauge: () => undefined,
  gaugeAll: () => undefined,
};

export interface ShardWorkOptions {
  ground: Ground;
  shardCount: number;
  process: SimulatedProcess;
  /** Names are finished by the outbox. */
  hasNames: boolean;
  /** Data is marked for deletion and erased. */
  openChunks: (() => OpenChunks) | undefined;
  /** Where disks are placed. */
  board: PlacementBoard | undefined;
  hasRevocations: boolean;
  /** Links end, claims are resolved, and jobs go on; what its workers ask goes through this. */
  links: { ofWorkers(metadata: MetadataPort, process: SimulatedProcess): MetadataPort } | undefined;
}

/** What gateways call instead of the node itself. */
export function beginShardWork(node: MetadataNode, options: ShardWorkOptions): ShardCallHandler {
  const { ground, process } = options;
  const { clock } = process;
  const led = () => node.status().filter(({ role }) => role === 'primary');
  const shards = () => led().map(({ shard }) => shard);
  const fenceOf = (shard: number): Fence => {
    const status = led().find((one) => one.shard === shard);
    return { shard, incarnation: status?.incarnation ?? 0, epoch: status?.epoch ?? 0 };
  };
  const nodeId = process.host.name;
  const calls = callOwnNode({ nodeId, handler: node, others: ground.calls.port(nodeId, process) });
  const registry = ground.registry.port(process);
  const router = openRouter(process, { shardCount: options.shardCount, registry, calls });
  const metadata = options.links?.ofWorkers(router, process) ?? router;
  const log = loggerOf(process, ground.scheduler);
  placeDisks(options, { log, metadata });
  const workers = workersOf(options, { metadata, shards, fenceOf, log });
  if (workers.length > 0) createWorkerRunner({ workers, clock, log, telemetry: SILENT }).start();
  if (!options.hasRevocations) return node;
  const openEpoch = () => {
    const status = node.replica(SYSTEM_SHARD)?.status();
    return status?.role === 'primary' ? status.epoch : undefined;
  };
  return delayRevocations(node, createRevocationWait({ clock, epoch: openEpoch }));
}

function placeDisks(
  { board, openChunks, process }: ShardWorkOptions,
  { log, metadata }: { log: ReturnType<typeof loggerOf>; metadata: MetadataPort },
): void {
  if (board === undefined || openChunks === undefined) return;
  const { placement, directory } = openChunks();
  const deps: DiskPlacerDeps = {
    clock: process.clock,
    log,
    chunkCopies: COPIES,
    awayAfterMs: AWAY_AFTER_MS,
    placementMap: board.port(process),
    jobLocks: board.locks(process),
    members: () => board.members(),
    cluster: async () => 'as-made',
    announcedVersion: () => placement.announcedVersion(),
    learn: (map) => placement.learn(map),
    newestKnown: () => (placement.current().version === 0 ? undefined : placement.current()),
    auditedVersion: () => auditedVersion(metadata),
    reach: (disk) => directory.chunksOf(disk).usage(),
    pause: async () => undefined,
  };
  void runDiskPlacer(deps, new AbortController().signal);
}

function workersOf(
  { hasNames, openChunks, links, process, ground }: ShardWorkOptions,
  deps: {
    metadata: MetadataPort;
    shards(): number[];
    fenceOf(shard: number): Fence;
    log: ReturnType<typeof loggerOf>;
  },
): Worker[] {
  const hasLinks = links !== undefined;
  const chunks = openChunks?.().chunks ?? NO_CHUNKS;
  const { clock } = process;
  const disks =
    openChunks &&
    createHomeDisks({ ...openChunks(), ...deps, clock, telemetry: SILENT, repairBytesPerSecond: 0 });
  const workers = [
    ...(disks === undefined
      ? []
      : [
          createRepairWorker({ ...deps, disks, clock, telemetry: SILENT }),
          createBlobAudit({ ...deps, disks, clock, telemetry: SILENT, auditEveryMs: AUDIT_EVERY_MS }),
          createCorruptionCollector({ ...deps, disks, clock, telemetry: SILENT }),
          createDiskSweep({ ...deps, disks, clock, telemetry: SILENT, passEveryMs: SWEEP_EVERY_MS }),
        ]),
    ...(hasNames || hasLinks ? [createOutboxDelivery({ ...deps, clock })] : []),
    ...(hasNames
      ? [createBucketEmptier({ ...deps, clock, metadata: countingClosings(deps.metadata, ground) })]
      : []),
    ...(openChunks !== undefined || hasLinks
      ? [createDeletionMarker(deps), createBlobRelease({ ...deps, chunks, readingGraceMs: READING_GRACE_MS })]
      : []),
    ...(hasLinks
      ? [
          createPartRelease(deps),
          createClaimResolver({ ...deps, clock }),
          createJobDriver({ ...deps, clock }),
          createJobForgetter({ ...deps, timeJumps: NO_TIME_JUMPS }),
          createTokenForgetter({ ...deps, timeJumps: NO_TIME_JUMPS }),
          createUploadExpiry({ ...deps, timeJumps: NO_TIME_JUMPS, uploadKeptMs: UPLOAD_KEPT_MS }),
        ]
      : []),
  ];
  return workers.map(hurried);
}

function countingClosings(metadata: MetadataPort, { counts }: Ground): MetadataPort {
  return {
    shardCount: metadata.shardCount,
    query: (envelope, name, query) => metadata.query(envelope, name, query),
    execute(envelope, name, command) {
      if (name === 'step-closing') counts.add(CLOSING_DRIVEN_ON);
      return metadata.execute(envelope, name, command);
    },
  };
}
