// The background workers of metadata for scenarios, over storage that only says what it is told to drop.
import { createDeletionMarker } from '../../src/metadata/blobs/mark-blobs-worker.ts';
import { createBlobRelease } from '../../src/metadata/blobs/release-blobs.ts';
import { createClaimResolver } from '../../src/metadata/blobs/resolve-claims.ts';
import type { Shards } from '../../src/metadata/engine/shards.ts';
import { createOutboxDelivery } from '../../src/metadata/jobs/deliver-outbox.ts';
import { createJobDriver } from '../../src/metadata/jobs/drive-jobs.ts';
import { createUploadExpiry } from '../../src/metadata/uploads/expire-uploads-worker.ts';
import { createPartRelease } from '../../src/metadata/uploads/release-parts-worker.ts';
import {
  createCompletedUploadForgetter,
  createJobForgetter,
  createTokenForgetter,
} from '../../src/metadata/workers/forget-by-age.ts';
import type { ChunkPort } from '../../src/ports/chunks.ts';
import type { ClockPort } from '../../src/ports/clock.ts';
import type { Worker } from '../../src/ports/worker.ts';
import { shortBlob } from './short-ids.ts';

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

export function metadataWorkers(deps: {
  shards: Shards;
  clock: ClockPort;
  note(event: string): void;
}): Worker[] {
  const { shards: metadata, clock, note } = deps;
  const { timeJumps } = metadata;
  const shards = () => Array.from({ length: metadata.shardCount }, (_, shard) => shard);
  const nothing = () => {};
  const log = {
    debug: nothing,
    info: nothing,
    error: nothing,
    warn: (_: object, event: string) => note(event),
  };
  const unused = () => Promise.reject(new Error('scenarios have no chunks'));
  const chunks: ChunkPort = {
    put: unused,
    get: unused,
    have: unused,
    list: unused,
    usage: unused,
    recount: unused,
    async drop(ids) {
      for (const { blobId, index } of ids) note(`dropped ${shortBlob(blobId)} chunk ${index}`);
    },
  };
  const fenceOf = (shard: number) => ({ shard, incarnation: 1, epoch: 1 });
  return [
    createPartRelease({ metadata, shards }),
    createDeletionMarker({ metadata, shards }),
    createBlobRelease({ metadata, shards, chunks, fenceOf, readingGraceMs: 10 * MINUTE }),
    createClaimResolver({ metadata, shards, clock, log }),
    createOutboxDelivery({ metadata, shards, clock, log }),
    createUploadExpiry({ metadata, shards, timeJumps, uploadKeptMs: 31 * DAY }),
    createCompletedUploadForgetter({ metadata, shards, timeJumps }),
    createTokenForgetter({ metadata, shards, timeJumps }),
    createJobDriver({ metadata, shards, clock: { monotonicMs: () => 0, sleep: async () => {} } }),
    createJobForgetter({ metadata, shards, timeJumps }),
  ];
}
