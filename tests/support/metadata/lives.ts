// Processes that end in the midst of their work, over stores that stay, and the background jobs that free what they leave
// behind: for tests that cut operations short.

import { createChunkSweep } from '../../../src/chunks/disk/sweep-chunks.ts';
import { createDeletionMarker } from '../../../src/metadata/blobs/mark-blobs-worker.ts';
import { createBlobRelease } from '../../../src/metadata/blobs/release-blobs.ts';
import { createClaimResolver } from '../../../src/metadata/blobs/resolve-claims.ts';
import { createBucketEmptier } from '../../../src/metadata/buckets/empty-buckets.ts';
import { createOutboxDelivery } from '../../../src/metadata/jobs/deliver-outbox.ts';
import { createJobDriver } from '../../../src/metadata/jobs/drive-jobs.ts';
import { createUploadExpiry } from '../../../src/metadata/uploads/expire-uploads-worker.ts';
import { createPartRelease } from '../../../src/metadata/uploads/release-parts-worker.ts';
import type { MemoryKv } from '../../../src/platform/memory/memory-kv.ts';
import type { Worker } from '../../../src/ports/worker.ts';
import { LIMITS } from '../../../src/types/limits.ts';
import type { FsckWorld } from '../fsck/fsck-world.ts';
import { runUntilIdle } from './run-worker.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** A process that ends before its commit number `left`, of both stores: what comes later is neither written nor answered. */
export interface Life {
  left: number;
  commitCount: number;
  end(): void;
}

export function mortal(kv: MemoryKv, life: Pick<Life, 'left' | 'commitCount' | 'end'>): MemoryKv {
  return {
    ...kv,
    commit(rows, options) {
      life.commitCount++;
      if (life.left-- > 0) return kv.commit(rows, options);
      life.end();
      return new Promise(() => {});
    },
  };
}

/** Of who need not rest between two steps. */
const RESTLESS = { monotonicMs: () => 0, sleep: async () => {} };

function jobsOf(world: FsckWorld): Worker[] {
  const metadata = world.metadata.shards;
  const nothing = () => {};
  const log = { debug: nothing, info: nothing, warn: nothing, error: nothing };
  const shards = () => [0, 1, 2];
  const fenceOf = (shard: number) => ({ shard, incarnation: 1, epoch: 1 });
  const { clock, shards: port } = world.metadata;
  return [
    createBucketEmptier({ metadata, shards, clock }),
    createJobDriver({ metadata, shards, clock: RESTLESS }),
    createPartRelease({ metadata, shards }),
    createDeletionMarker({ metadata, shards }),
    createBlobRelease({ metadata, shards, fenceOf, chunks: world.chunks, readingGraceMs: 10 * MINUTE }),
    createClaimResolver({ metadata, shards, clock, log }),
    createOutboxDelivery({ metadata, shards, clock, log }),
    createUploadExpiry({ metadata, shards, timeJumps: port.timeJumps, uploadKeptMs: HOUR }),
    createChunkSweep({ metadata, chunks: world.chunks, clock, log, fenceOf }),
  ];
}

/** Jobs that their drivers have left, as the shard's own node drives them on. */
export async function driveLeftJobs({ metadata: { shards, clock } }: FsckWorld): Promise<void> {
  clock.advance(LIMITS.jobStallTimeoutMs);
  await runUntilIdle(createJobDriver({ metadata: shards, shards: () => [0, 1, 2], clock: RESTLESS }));
}

export async function runJobs(world: FsckWorld): Promise<void> {
  for (const job of jobsOf(world)) await runUntilIdle(job);
}
