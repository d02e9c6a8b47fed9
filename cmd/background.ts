// The background work of the embedded form: all of it, in this process. Wiring only.

import type { ProcessContext } from '../src/admin/process-context.ts';
import { createFsck } from '../src/fsck/fsck.ts';
import { createKeyRotation, type ServerKeyRotation } from '../src/metadata/master-keys/rotate-keys.ts';
import { createWorkerRunner, type WorkerRunner } from '../src/platform/worker-runner.ts';
import type { MetadataPort } from '../src/ports/metadata/port.ts';
import { homeShardOf } from '../src/types/names.ts';
import type { Stores } from './open-stores.ts';
import { serverWorkers } from './workers.ts';

/** The workers, not yet started. `oldestRequestMs` as KeyRotation's. */
export function createBackground(
  { config, log, telemetry, clock }: ProcessContext,
  { metadata, chunks, keyring, fenceOf, storeWorkers, timeJumps, lost, damageNames }: Stores,
  oldestRequestMs: () => number | undefined,
): { rotation: ServerKeyRotation; wakeRotation(): void; runner: WorkerRunner } {
  const allShards = Array.from({ length: metadata.shardCount }, (_, shard) => shard);
  const rotation = createKeyRotation({ metadata, keyring, clock, log, oldestRequestMs });
  const workers = serverWorkers({
    metadata,
    chunks,
    fenceOf,
    timeJumps,
    clock,
    log,
    telemetry,
    shards: () => allShards,
    damage: {
      names: damageNames,
      lostBlobs: async (shard) => lost.blobs().filter((blobId) => homeShardOf(blobId) === shard),
    },
    made: [rotation, ...storeWorkers],
    uploadKeptMs: config.uploads.expiryMs,
    metering: config.metering,
    lifecycleDayMs: config.lifecycle.dayMs,
    lifecycleLookEveryMs: config.lifecycle.scanIntervalMs,
    lifecycleWorkShare: config.lifecycle.workShare,
    readingGraceMs: config.storage.readingGraceMs,
  });
  const runner = createWorkerRunner({ workers, clock, log, telemetry });
  return { rotation, runner, wakeRotation: () => runner.wake(rotation.name) };
}

/** What operators begin and ask for. Whatever it finds lost, readers know at once. */
export function createStoresFsck(
  { log, clock }: Pick<ProcessContext, 'clock' | 'log'>,
  { chunks, keyring, lost }: Stores,
  metadata: MetadataPort,
): ReturnType<typeof createFsck> {
  const noteLost: typeof lost.note = (id, kind) => lost.note(id, kind);
  return createFsck({ metadata, chunks, clock, log, keyIds: () => keyring.keyIds(), noteLost });
}
