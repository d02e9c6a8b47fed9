// Memory of chunks, used again: on virtual machines the first touch of memory costs more than any work on it. Where the disk takes
// large chunks out of memory of its own, a chunk is laid out, sealed and written there, and nothing is copied between. Else it has
// a buffer of a pool, which travels with it (to the codec's thread, to the store's) and returns when the chunk is written.
import { sealedBytes } from '../base/crypto/seal.ts';
import { LIMITS } from '../types/limits.ts';

/** Memory for one sealed chunk. */
export interface ChunkMemory {
  readonly bytes: Uint8Array;
  /** Called once, when no thread works in it and no put has it any more. */
  release(): void;
}

/** Shared by threads. What is taken lies where the disk takes it from (platform/extents/record-memory.ts). */
export interface ChunkRecords {
  /** Smaller chunks are not written out of it. */
  readonly fromBytes: number;
  /** undefined: there is no room now. */
  take(sizeBytes: number): ChunkMemory | undefined;
}

export interface ChunkBuffers {
  /** Of a whole sealed chunk of the usual size. */
  readonly sizeBytes: number;
  /** For a sealed chunk of `sizeBytes`. Memory of the pool comes back by `give`, whatever `release` does. */
  lease(sizeBytes: number): ChunkMemory;
  /** Takes back an unused buffer; one of another size, or beyond the pool's bound, is freed. */
  give(buffer: ArrayBuffer): void;
}

/**
 * Buffers for whole sealed chunks. Up to `pooledBytesMax`, and at most LIMITS.chunkBuffersPooledBytesMax, stay in the pool, so
 * that a peak does not last.
 */
export function createChunkBuffers(options: {
  chunkSizeBytes: number;
  /** Of large bodies; default as of all others. */
  largeChunkSizeBytes?: number;
  pooledBytesMax: number;
  records?: ChunkRecords;
}): ChunkBuffers {
  const { records, chunkSizeBytes, largeChunkSizeBytes = chunkSizeBytes } = options;
  const sealed = (size: number) => sealedBytes({ sizeBytes: size, blockBytes: LIMITS.sealBlockBytes });
  const pooledBytesMax = Math.min(options.pooledBytesMax, LIMITS.chunkBuffersPooledBytesMax);
  // What is smaller would hold more than it is counted as.
  const pools = new Map<number, ArrayBuffer[]>([
    [sealed(chunkSizeBytes), []],
    [sealed(largeChunkSizeBytes), []],
  ]);
  let pooledBytes = 0;
  function take(sizeBytes: number): ArrayBuffer | undefined {
    const buffer = pools.get(sizeBytes)?.pop();
    if (buffer !== undefined) pooledBytes -= sizeBytes;
    return buffer;
  }
  return {
    sizeBytes: sealed(chunkSizeBytes),
    lease(wantedBytes) {
      const record = records && wantedBytes >= records.fromBytes ? records.take(wantedBytes) : undefined;
      if (record !== undefined) return record;
      const pooled = take(wantedBytes);
      return { bytes: new Uint8Array(pooled ?? Buffer.allocUnsafeSlow(wantedBytes).buffer), release() {} };
    },
    give(buffer) {
      const { byteLength } = buffer;
      const pool = pools.get(byteLength);
      if (pool === undefined || pooledBytes + byteLength > pooledBytesMax) return;
      pool.push(buffer);
      pooledBytes += byteLength;
    },
  };
}
