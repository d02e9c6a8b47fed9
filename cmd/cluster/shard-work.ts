// The background work of the shards that a metadata node leads (R21): where they are led, and only while they are.
// Wiring only.

import type { Surroundings } from '../../src/admin/process-context.ts';
import type { MetadataRouter } from '../../src/coordination/route-metadata.ts';
import { createClaimAssertion } from '../../src/metadata/blobs/assert-claims.ts';
import { createBlobAudit } from '../../src/metadata/blobs/audit-blobs.ts';
import { createBlobCondemner } from '../../src/metadata/blobs/condemn-blobs-worker.ts';
import { createDamageHearing } from '../../src/metadata/blobs/hear-damage.ts';
import { createBlobRelease } from '../../src/metadata/blobs/release-blobs.ts';
import { createDebtRepair } from '../../src/metadata/blobs/repair-debts.ts';
import { createClaimResolver } from '../../src/metadata/blobs/resolve-claims.ts';
import { createDiskSweep } from '../../src/metadata/blobs/sweep-disks.ts';
import { createDebtWatch } from '../../src/metadata/blobs/watch-debts.ts';
import { createBucketEmptier } from '../../src/metadata/buckets/empty-buckets.ts';
import { createEngineWorkers } from '../../src/metadata/engine/engine-workers.ts';
import { createOutboxDelivery } from '../../src/metadata/jobs/deliver-outbox.ts';
import { createJobDriver } from '../../src/metadata/jobs/drive-jobs.ts';
import { createKeptWatch } from '../../src/metadata/outcomes/watch-kept.ts';
import type { MetadataNode } from '../../src/metadata/replication/metadata-node.ts';
import { createUploadExpiry } from '../../src/metadata/uploads/expire-uploads-worker.ts';
import { createPartRelease } from '../../src/metadata/uploads/release-parts-worker.ts';
import {
  createCompletedUploadForgetter,
  createJobForgetter,
  createTokenForgetter,
} from '../../src/metadata/workers/forget-by-age.ts';
import { createWorkerRunner } from '../../src/platform/worker-runner.ts';
import type { ChunkPort, Fence } from '../../src/ports/chunks.ts';
import type { HomeDisks } from '../../src/ports/home-disks.ts';
import type { TimeJumps } from '../../src/ports/time-jumps.ts';
import type { Worker } from '../../src/ports/worker.ts';

/** Shard time follows a majority of clocks, so there are no jumps that wait for anybody's word (R19). */
export const NO_TIME_JUMPS: TimeJumps = {
  mayRemoveByAge: () => true,
  unacceptedMs: () => 0,
  async accept() {},
};

export function startShardWork(
  { config, clock, log, telemetry, closing }: Surroundings,
  parts: { metadata: MetadataRouter; chunks: ChunkPort; disks: HomeDisks; node: MetadataNode },
): void {
  const { metadata, chunks, disks, node } = parts;
  const led = () => node.status().filter(({ role }) => role === 'primary');
  const shards = () => led().map(({ shard }) => shard);
  const served = () => shards().flatMap((shard) => node.replica(shard)?.shard ?? []);
  const fenceOf = (shard: number): Fence => {
    const status = led().find((one) => one.shard === shard);
    return { shard, incarnation: status?.incarnation ?? 0, epoch: status?.epoch ?? 0 };
  };
  const home = { metadata, disks, shards, fenceOf, clock, log, telemetry };
  const { auditPeriodMs: auditEveryMs, sweepPeriodMs: passEveryMs } = config.storage;
  const workers: Worker[] = [
    createPartRelease({ metadata, shards }),
    createBlobCondemner({ metadata, shards }),
    createBlobRelease({ metadata, chunks, shards, fenceOf, readingGraceMs: config.storage.readingGraceMs }),
    createClaimResolver({ metadata, shards, clock, log }),
    createClaimAssertion({ metadata, shards, clock, log }),
    createOutboxDelivery({ metadata, shards, clock, log }),
    createUploadExpiry({ metadata, shards, timeJumps: NO_TIME_JUMPS, uploadKeptMs: config.uploads.expiryMs }),
    createCompletedUploadForgetter({ metadata, shards, timeJumps: NO_TIME_JUMPS }),
    createTokenForgetter({ metadata, shards, timeJumps: NO_TIME_JUMPS }),
    createBucketEmptier({ metadata, shards, clock }),
    createJobDriver({ metadata, shards, clock }),
    createJobForgetter({ metadata, shards, timeJumps: NO_TIME_JUMPS }),
    createDebtRepair(home),
    createBlobAudit({ ...home, auditEveryMs }),
    createDamageHearing(home),
    createDiskSweep({ ...home, passEveryMs }),
    createDebtWatch(home),
    createKeptWatch(home),
    ...createEngineWorkers(served),
  ];
  const runner = createWorkerRunner({ workers, clock, log, telemetry });
  runner.start();
  // At once: what is led here is not held up by a unit of work. And none waits for a shard that nobody leads, as all of them
  // are when all nodes are told to end.
  closing.defer(async () => {
    const ended = runner.stop();
    metadata.stop();
    await Promise.all([ended, node.stop()]);
  });
}
