// The background work of the shards that a metadata node leads (R21): where they are led, and only while they are.
// Wiring only.

import type { ProcessContext } from '../../src/admin/process-context.ts';
import type { MetadataRouter } from '../../src/coordination/route-metadata.ts';
import { createTimeJumps } from '../../src/coordination/time-jumps.ts';
import { type DamageNames, listLostBlobs } from '../../src/metadata/blobs/name-damage-worker.ts';
import { createEngineWorkers } from '../../src/metadata/engine/engine-workers.ts';
import type { MetadataNode } from '../../src/metadata/replication/metadata-node.ts';
import { createWorkerRunner } from '../../src/platform/worker-runner.ts';
import type { ChunkPort, Fence } from '../../src/ports/chunks.ts';
import type { HomeDisks } from '../../src/ports/home-disks.ts';
import type { TimeJumps } from '../../src/ports/time-jumps.ts';
import { metadataNodeWorkers } from '../workers.ts';

export function startShardWork(
  { config, clock, log, telemetry, closing }: ProcessContext,
  parts: {
    metadata: MetadataRouter;
    chunks: ChunkPort;
    disks: HomeDisks;
    node: MetadataNode;
    damageNames: DamageNames;
  },
): void {
  const { metadata, chunks, disks, node, damageNames } = parts;
  const led = () => node.status().filter(({ role }) => role === 'primary');
  const shards = () => led().map(({ shard }) => shard);
  const served = () => shards().flatMap((shard) => node.replica(shard)?.shard ?? []);
  const fenceOf = (shard: number): Fence => {
    const status = led().find((one) => one.shard === shard);
    return { shard, incarnation: status?.incarnation ?? 0, epoch: status?.epoch ?? 0 };
  };
  const mayRemoveByAge = (shard: number) => node.replica(shard)?.shard?.timeJumpMs === 0;
  const timeJumps: TimeJumps = { ...createTimeJumps(metadata), mayRemoveByAge };
  const { lifecycle, metering, storage, uploads } = config;
  const workers = metadataNodeWorkers({
    metadata,
    chunks,
    disks,
    shards,
    fenceOf,
    clock,
    log,
    telemetry,
    timeJumps,
    damage: { names: damageNames, lostBlobs: (shard) => listLostBlobs(metadata, shard) },
    made: createEngineWorkers(served),
    uploadKeptMs: uploads.expiryMs,
    metering,
    lifecycleDayMs: lifecycle.dayMs,
    lifecycleLookEveryMs: lifecycle.scanIntervalMs,
    lifecycleWorkShare: lifecycle.workShare,
    readingGraceMs: storage.readingGraceMs,
    auditEveryMs: storage.auditPeriodMs,
    passEveryMs: storage.sweepPeriodMs,
  });
  const runner = createWorkerRunner({ workers, clock, log, telemetry });
  runner.start();
  // At once: a unit of work must not hold up the shards that are led here, nor wait for a shard that nobody leads, as when
  // all nodes are stopped together.
  closing.defer(async () => {
    const ended = runner.stop();
    metadata.stop();
    await Promise.all([ended, node.stop()]);
  });
}
