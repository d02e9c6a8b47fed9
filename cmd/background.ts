// The background jobs of the embedded form: all of them, run in this process. Wiring only.
import { createWorkerRunner, type WorkerRunner } from '../src/adapters/worker-runner.ts';
import { createBlobCondemner } from '../src/metadata/background/condemn-blobs.ts';
import { createOutboxDelivery } from '../src/metadata/background/deliver-outbox.ts';
import { createJobDriver } from '../src/metadata/background/drive-jobs.ts';
import { createBucketEmptier } from '../src/metadata/background/empty-buckets.ts';
import { createUploadExpiry } from '../src/metadata/background/expire-uploads.ts';
import {
  createCompletedUploadForgetter,
  createJobForgetter,
  createTokenForgetter,
} from '../src/metadata/background/forget-by-age.ts';
import { createBlobRelease } from '../src/metadata/background/release-blobs.ts';
import { createPartRelease } from '../src/metadata/background/release-parts.ts';
import { createClaimResolver } from '../src/metadata/background/resolve-claims.ts';
import { createKeyRotation, type KeyRotation } from '../src/metadata/background/rotate-keys.ts';
import { createKeptWatch } from '../src/metadata/background/watch-kept.ts';
import type { Worker } from '../src/ports/worker.ts';
import { createChunkSweep } from '../src/storage/sweep-chunks.ts';
import type { Stores } from './open-stores.ts';
import type { Surroundings } from './surroundings.ts';

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
