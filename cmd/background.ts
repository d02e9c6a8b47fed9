// The background jobs of the embedded form: all of them, run in this process. Wiring only.
import { createWorkerRunner } from '../src/adapters/worker-runner.ts';
import type { Config } from '../src/config/schema.ts';
import { createBlobCondemner } from '../src/metadata/background/condemn-blobs.ts';
import { createOutboxDelivery } from '../src/metadata/background/deliver-outbox.ts';
import { createUploadExpiry } from '../src/metadata/background/expire-uploads.ts';
import { createCompletedUploadForgetter } from '../src/metadata/background/forget-completed-uploads.ts';
import { createBlobRelease } from '../src/metadata/background/release-blobs.ts';
import { createClaimResolver } from '../src/metadata/background/resolve-claims.ts';
import { createKeyRotation, type KeyRotation } from '../src/metadata/background/rotate-keys.ts';
import type { ClockPort } from '../src/ports/clock.ts';
import type { Logger, TelemetryPort } from '../src/ports/telemetry.ts';
import { createChunkSweep } from '../src/storage/sweep-chunks.ts';
import type { Stores } from './open-stores.ts';

export interface Background {
  rotation: KeyRotation;
  /** Ends the wait of an idle job. */
  wake(name: string): void;
}

export function startBackground(options: {
  config: Config;
  log: Logger;
  telemetry: TelemetryPort;
  clock: ClockPort;
  closing: AsyncDisposableStack;
  stores: Stores;
  /** As KeyRotation's. */
  oldestRequestMs(): number | undefined;
}): Background {
  const { config, log, telemetry, clock, closing } = options;
  const { metadata, chunks, keyring, fenceOf, engineWorkers } = options.stores;
  const allShards = Array.from({ length: metadata.shardCount }, (_, shard) => shard);
  const shards = () => allShards;
  const rotation = createKeyRotation({
    metadata,
    keyring,
    clock,
    log,
    oldestRequestMs: options.oldestRequestMs,
  });
  const runner = createWorkerRunner({
    workers: [
      createBlobCondemner({ metadata, shards }),
      createBlobRelease({ metadata, chunks, shards, fenceOf, readingGraceMs: config.storage.readingGraceMs }),
      createClaimResolver({ metadata, shards }),
      createOutboxDelivery({ metadata, shards, log }),
      createUploadExpiry({ metadata, shards, uploadKeptMs: config.uploads.expiryMs }),
      createCompletedUploadForgetter({ metadata, shards }),
      createChunkSweep({ chunks, metadata, clock, log, fenceOf }),
      rotation,
      ...engineWorkers,
    ],
    clock,
    log,
    telemetry,
  });
  runner.start();
  closing.defer(() => runner.stop());
  return { rotation, wake: (name) => runner.wake(name) };
}
