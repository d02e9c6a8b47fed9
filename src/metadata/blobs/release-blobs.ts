// Erases blobs that are marked for deletion once no reader can need them (R31, R33): the links of a manifest, page by page;
// the chunks, by orders to the nodes that have them; then the rows.

import type { ChunkId, ChunkPort, Fence } from '../../ports/chunks.ts';
import type { MarkedBlobPlace } from '../../ports/metadata/blobs.ts';
import type { MetadataPort } from '../../ports/metadata/port.ts';
import type { Worker } from '../../ports/worker.ts';
import type { BlobId } from '../../types/names.ts';
import type { BlobRecord } from '../../types/records/rows.ts';
import { chunkCount } from '../../types/version.ts';
import { createQueueWalks, createShardWorker, doneValue, SHARDS_AT_ONCE } from '../workers/shard-worker.ts';

const BLOB_BATCH = 100;
const CHUNK_BATCH = 1000;
const IDLE_MS = 5000;

export interface BlobReleaseDeps {
  metadata: MetadataPort;
  chunks: ChunkPort;
  shards(): readonly number[];
  /** Who orders drops for a shard (R21). */
  fenceOf(shard: number): Fence;
  /** How long readers of a version that is gone may still need its data: LIMITS.readingGraceMs but in tests. */
  readingGraceMs: number;
}

export function createBlobRelease(deps: BlobReleaseDeps): Worker {
  const { metadata, chunks, shards, fenceOf, readingGraceMs } = deps;
  const walks = createQueueWalks<MarkedBlobPlace>();

  async function releasePages(shard: number, manifestId: BlobId, signal: AbortSignal): Promise<void> {
    for (let page = 0, isLast = false; !isLast; page++) {
      signal.throwIfAborted();
      const command = { manifestId, page };
      const reply = await metadata.execute({ shard }, 'release-manifest-page', command);
      isLast = doneValue(reply).isLast;
    }
  }

  return createShardWorker({
    name: 'release-blobs',
    shards,
    idleMs: IDLE_MS,
    atOnce: SHARDS_AT_ONCE,
    async unit(shard, signal) {
      const query = { ...walks.from(shard), olderThanMs: readingGraceMs, limit: BLOB_BATCH };
      const { blobs, next } = doneValue(await metadata.query({ shard }, 'list-condemned', query));
      const failures = new Map<BlobId, unknown>();
      for (const { blobId, blob } of blobs) {
        if (blob.kind !== 'manifest') continue;
        // A manifest that must wait must not delay the blobs behind it.
        await releasePages(shard, blobId, signal).catch((error: unknown) => failures.set(blobId, error));
      }
      const free = blobs.filter(({ blobId }) => !failures.has(blobId));
      for (const ids of chunkBatches(free)) {
        signal.throwIfAborted();
        await chunks.drop(ids, fenceOf(shard));
      }
      // Rows last: as long as they are there, what could not be dropped is tried again.
      const blobIds = free.map(({ blobId }) => blobId);
      if (blobIds.length > 0) {
        const { kind } = doneValue(await metadata.execute({ shard }, 'erase-blobs', { blobIds }));
        if (kind === 'unconfirmed') return false;
      }
      const firstLeft = blobs.find(({ blobId }) => failures.has(blobId));
      const [lastMs, leftFromMs] = [blobs.at(-1), firstLeft].map((one) => one?.blob.condemnedAtMs);
      walks.passed(shard, { next, lastMs, leftFromMs });
      for (const failure of failures.values()) throw failure;
      return next !== undefined;
    },
  });
}

function* chunkBatches(blobs: readonly { blobId: BlobId; blob: BlobRecord }[]): Generator<ChunkId[]> {
  let batch: ChunkId[] = [];
  for (const { blobId, blob } of blobs) {
    if (blob.kind === 'manifest' || blob.storage !== 'chunks') continue;
    for (let index = 0; index < chunkCount(blob); index++) {
      batch.push({ blobId, index });
      if (batch.length < CHUNK_BATCH) continue;
      yield batch;
      batch = [];
    }
  }
  if (batch.length > 0) yield batch;
}
