// A pool of ArrayBuffers for chunks: on virtual machines the first touch of memory costs more than any work on it. A buffer
// travels with its chunk (to the codec's thread, to the store's) and returns when the chunk is written.
import { sealedBytes } from '../base/crypto/seal.ts';
import { LIMITS } from '../types/limits.ts';

export interface ChunkBuffers {
  readonly sizeBytes: number;
  take(): ArrayBuffer;
  /** Takes back an unused buffer; one of another size, or beyond the pool's bound, is freed. */
  give(buffer: ArrayBuffer): void;
}

/**
 * Buffers for whole sealed chunks. Up to `pooledBytesMax`, and at most LIMITS.chunkBuffersPooledBytesMax, stay in the pool, so
 * that a peak does not last.
 */
export function createChunkBuffers(options: {
  chunkSizeBytes: number;
  pooledBytesMax: number;
}): ChunkBuffers {
  const sizeBytes = sealedBytes({ sizeBytes: options.chunkSizeBytes, blockBytes: LIMITS.sealBlockBytes });
  const pooledBytesMax = Math.min(options.pooledBytesMax, LIMITS.chunkBuffersPooledBytesMax);
  const pooledMax = Math.floor(pooledBytesMax / sizeBytes);
  const pool: ArrayBuffer[] = [];
  return {
    sizeBytes,
    take: () => pool.pop() ?? Buffer.allocUnsafeSlow(sizeBytes).buffer,
    give(buffer) {
      if (buffer.byteLength === sizeBytes && pool.length < pooledMax) pool.push(buffer);
    },
  };
}
