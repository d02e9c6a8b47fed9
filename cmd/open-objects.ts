// The data path of the embedded form: codec threads, memory of chunks, object store. Wiring only.

import type { ProcessContext } from '../src/admin/process-context.ts';
import type { LostChunks } from '../src/chunks/disk/lost-chunks.ts';
import type { Config } from '../src/config/schema.ts';
import { type ChunkBuffers, createChunkBuffers } from '../src/objects/chunk-buffers.ts';
import { createObjectStore } from '../src/objects/create-object-store.ts';
import type { ObjectStore } from '../src/objects/object-store.ts';
import type { ShardTimes } from '../src/objects/shard-times.ts';
import { createCodecPool } from '../src/platform/codec/piscina-codec-pool.ts';
import type { RecordMemory } from '../src/platform/extents/record-memory.ts';
import type { KeyringPort } from '../src/ports/keyring.ts';
import { LIMITS } from '../src/types/limits.ts';
import { shareOfThread } from '../src/types/thread-share.ts';
import type { Stores } from './open-stores.ts';

/** `threads`: how many data paths of this process share its bounds. `received`: out of which the chunk store writes. */
export function createBuffers(
  { storage, memory }: Config,
  {
    threads = 1,
    received,
    largeChunkSizeBytes,
  }: { threads?: number; received?: RecordMemory; largeChunkSizeBytes?: number } = {},
): ChunkBuffers {
  const { separateFromBytes: fromBytes } = storage;
  const pooledMax = shareOfThread(LIMITS.chunkBuffersPooledBytesMax, { threads });
  return createChunkBuffers({
    chunkSizeBytes: storage.chunkSizeBytes,
    ...(largeChunkSizeBytes !== undefined && { largeChunkSizeBytes }),
    pooledBytesMax: Math.min(memory.bodyBufferBytes, pooledMax),
    ...(received &&
      fromBytes > 0 && { records: { fromBytes, take: (sizeBytes) => received.take(sizeBytes) } }),
  });
}

/** In a cluster most of what a chunk costs its storage nodes is the same for any size: a request, a row, a sync. */
export function largeChunksOf({ storage }: Config): number {
  return Math.min(storage.chunkSizeBytes * LIMITS.largeChunkFactor, LIMITS.chunkBytesMax);
}

export function openObjects(
  { config, log, telemetry, clock, random, closing }: ProcessContext,
  {
    chunks,
    keyring,
    fenceOf,
    lost,
  }: Pick<Stores, 'chunks' | 'fenceOf'> & { keyring: KeyringPort; lost?: Pick<LostChunks, 'note'> },
  {
    buffers,
    times,
    threads,
    largeChunkSizeBytes,
  }: { buffers: ChunkBuffers; times: ShardTimes; threads?: number; largeChunkSizeBytes?: number },
): ObjectStore {
  const codecs = createCodecPool({ workers: config.codec.workers });
  closing.defer(() => codecs.close());
  const objects = createObjectStore({
    chunks,
    codecs,
    keyring,
    clock,
    random,
    log,
    telemetry,
    buffers,
    times,
    fenceOf,
    ...(lost && { noteLost: (id, kind) => lost.note(id, kind) }),
    settings: {
      inlineBodyBytesMax: config.storage.inlineBodyMaxBytes,
      chunkSizeBytes: config.storage.chunkSizeBytes,
      ...(largeChunkSizeBytes !== undefined && { largeChunkSizeBytes }),
    },
    bodyBufferBytes: config.memory.bodyBufferBytes,
    ...(threads !== undefined && { threads }),
  });
  closing.defer(() => objects.stopCompaction());
  return objects;
}
