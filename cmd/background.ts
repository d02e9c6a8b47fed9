// The background jobs of the embedded form: all of them, run in this process. Wiring only.

import type { Surroundings } from '../src/admin/process-context.ts';
import { createChunkSweep } from '../src/chunks/disk/sweep-chunks.ts';
import { createBlobCondemner } from '../src/metadata/blobs/condemn-blobs-worker.ts';
import { createBlobRelease } from '../src/metadata/blobs/release-blobs.ts';
import { createClaimResolver } from '../src/metadata/blobs/resolve-claims.ts';
import { createBucketEmptier } from '../src/metadata/buckets/empty-buckets.ts';
import { createOutboxDelivery } from '../src/metadata/jobs/deliver-outbox.ts';
import { createJobDriver } from '../src/metadata/jobs/drive-jobs.ts';
import { createKeyRotation, type KeyRotation } from '../src/metadata/master-keys/rotate-keys.ts';
import { createKeptWatch } from '../src/metadata/outcomes/watch-kept.ts';
import { createUploadExpiry } from '../src/metadata/uploads/expire-uploads-worker.ts';
import { createPartRelease } from '../src/metadata/uploads/release-parts-worker.ts';
import {
  createCompletedUploadForgetter,
  createJobForgetter,
  createTokenForgetter,
} from '../src/metadata/workers/forget-by-age.ts';
import { createWorkerRunner, type WorkerRunner } from '../src/platform/worker-runner.ts';
import type { Worker } from '../src/ports/worker.ts';
import type { Stores } from './open-stores.ts';

/** The jobs, not yet started. `oldestRequestMs` as KeyRotation's. */
export function createBackground(
  { config, log, telemetry, clock }: Surroundings,
  { metadata, chunks, keyring, fenceOf, storeWorkers, timeJumps }: Stores,
  oldestRequestMs: () => number | undefined,
): { rotation: KeyRotation; wakeRotation(): void; runner: WorkerRunner } {
  const allShards = Array.from({ length: metadata.shardCount }, (_, shard) => shard);
  const shards = () => allShards;
  const rotation = createKeyRotation({ metadata, keyring, clock, log, oldestRequestMs });
  const workers: Worker[] = [
    createPartRelease({ metadata, shards }),
    createBlobCondemner({ metadata, shards }),
    createBlobRelease({ metadata, chunks, shards, fenceOf, readingGraceMs: config.storage.readingGraceMs }),
    createClaimResolver({ metadata, shards, clock, log }),
    createOutboxDelivery({ metadata, shards, clock, log }),
    createUploadExpiry({ metadata, shards, timeJumps, uploadKeptMs: config.uploads.expiryMs }),
    createCompletedUploadForgetter({ metadata, shards, timeJumps }),
    createTokenForgetter({ metadata, shards, timeJumps }),
    createBucketEmptier({ metadata, shards, clock }),
    createJobDriver({ metadata, shards, clock }),
    createJobForgetter({ metadata, shards, timeJumps }),
    createKeptWatch({ metadata, shards, telemetry }),
    createChunkSweep({ chunks, metadata, clock, log, fenceOf }),
    rotation,
    ...storeWorkers,
  ];
  const runner = createWorkerRunner({ workers, clock, log, telemetry });
  return { rotation, runner, wakeRotation: () => runner.wake(rotation.name) };
}
