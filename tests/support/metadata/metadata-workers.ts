// The background jobs of metadata over the shards of metadata-shards.ts and a real chunk store, run by hand.

import { openChunkStore } from '../../../src/chunks/disk/chunk-store.ts';
import { createDiskReserve } from '../../../src/chunks/disk/disk-reserve.ts';
import { CHUNK_COLUMNS } from '../../../src/chunks/disk/keyspace.ts';
import { createClaimAssertion } from '../../../src/metadata/blobs/assert-claims.ts';
import { createDeletionMarker } from '../../../src/metadata/blobs/mark-blobs-worker.ts';
import { createBlobRelease } from '../../../src/metadata/blobs/release-blobs.ts';
import { createClaimResolver } from '../../../src/metadata/blobs/resolve-claims.ts';
import { createBucketEmptier } from '../../../src/metadata/buckets/empty-buckets.ts';
import { createOutboxDelivery } from '../../../src/metadata/jobs/deliver-outbox.ts';
import { createJobDriver } from '../../../src/metadata/jobs/drive-jobs.ts';
import { createUploadExpiry } from '../../../src/metadata/uploads/expire-uploads-worker.ts';
import { createPartRelease } from '../../../src/metadata/uploads/release-parts-worker.ts';
import {
  createCompletedUploadForgetter,
  createJobForgetter,
  createTokenForgetter,
} from '../../../src/metadata/workers/forget-by-age.ts';
import { createMemoryKv } from '../../../src/platform/memory/memory-kv.ts';
import type { ChunkPort, Fence } from '../../../src/ports/chunks.ts';
import type { Worker } from '../../../src/ports/worker.ts';
import { chunkCount } from '../../../src/types/version.ts';
import { type MetadataShards, type NewData, openMetadata } from './metadata-shards.ts';
import { runUntilIdle } from './run-worker.ts';

export const MINUTE = 60_000;
export const DAY = 24 * 60 * MINUTE;

type WorkerName =
  | 'assert'
  | 'parts'
  | 'mark'
  | 'release'
  | 'resolve'
  | 'deliver'
  | 'expire'
  | 'forget'
  | 'tokens'
  | 'empty'
  | 'drive'
  | 'jobs';

export interface Background {
  world: MetadataShards;
  chunks: ChunkPort;
  /** Fixed event names that were logged as warnings or errors. */
  warnings: string[];
  workers: Record<WorkerName, Worker>;
  /** Each until it is idle, in this order. */
  run(...names: WorkerName[]): Promise<void>;
  /** As after a start of the process: workers remember nothing. */
  reopen(): void;
  /** A blob with its chunks stored. */
  newStored(sizeBytes: number, homeShard?: number): Promise<NewData>;
  chunksLeft(): Promise<number>;
}

/** With BUCKET in shard 0, a reading grace of ten minutes, uploads kept for 31 days. */
export async function openBackground(shardCount = 1): Promise<Background> {
  const world = await openMetadata({ shardCount });
  await world.createBucket();
  const { clock } = world;
  const warnings: string[] = [];
  const nothing = () => {};
  const warn = (_fields: object, event: string) => void warnings.push(event);
  const log = { debug: nothing, info: nothing, error: warn, warn };
  const readSpace = async () => ({ freeBytes: 1e12, totalBytes: 1e12 });
  const reserve = createDiskReserve({ readSpace, clock });
  const chunks = await openChunkStore({ kv: createMemoryKv(CHUNK_COLUMNS), reserve, clock, log });

  function openWorkers(): Record<WorkerName, Worker> {
    const metadata = world.shards;
    const { timeJumps } = metadata;
    const shards = () => Array.from({ length: shardCount }, (_, shard) => shard);
    const fenceOf = (shard: number): Fence => ({ shard, incarnation: 1, epoch: 1 });
    return {
      assert: createClaimAssertion({ metadata, shards, clock, log }),
      mark: createDeletionMarker({ metadata, shards }),
      parts: createPartRelease({ metadata, shards }),
      release: createBlobRelease({ metadata, shards, fenceOf, chunks, readingGraceMs: 10 * MINUTE }),
      resolve: createClaimResolver({ metadata, shards, clock, log }),
      deliver: createOutboxDelivery({ metadata, shards, clock, log }),
      expire: createUploadExpiry({ metadata, shards, timeJumps, uploadKeptMs: 31 * DAY }),
      forget: createCompletedUploadForgetter({ metadata, shards, timeJumps }),
      tokens: createTokenForgetter({ metadata, shards, timeJumps }),
      empty: createBucketEmptier({ metadata, shards, clock }),
      drive: createJobDriver({ metadata, shards, clock }),
      jobs: createJobForgetter({ metadata, shards, timeJumps }),
    };
  }

  const background: Background = {
    world,
    chunks,
    warnings,
    workers: openWorkers(),
    async run(...names) {
      for (const name of names) await runUntilIdle(background.workers[name]);
    },
    reopen() {
      background.workers = openWorkers();
    },
    async newStored(sizeBytes, homeShard = 0) {
      const data = world.newData({ sizeBytes, homeShard });
      for (const use of data.uses) {
        for (let index = 0; index < chunkCount(use); index++) {
          await chunks.put({ blobId: use.blobId, index }, new Uint8Array(10));
        }
      }
      return data;
    },
    chunksLeft: async () => (await chunks.usage()).chunkCount,
  };
  return background;
}
