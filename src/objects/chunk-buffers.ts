// The ArrayBuffers of chunks, used again and again: on virtual machines the first touch of memory costs more than
// anything that is done with it. A buffer travels with its chunk (to the codec's thread, to the store's) and comes home
// when the chunk is written.
import { sealedBytes } from '../base/crypto/seal.ts';
import { LIMITS } from '../types/limits.ts';

export interface ChunkBuffers {
  readonly sizeBytes: number;
  take(): ArrayBuffer;
  /** Takes back a buffer that no one uses any more; what is of another size, or one too many, is let go. */
  give(buffer: ArrayBuffer): void;
}

/**
 * Buffers for whole sealed chunks. Up to `keptBytesMax` of them are kept, and LIMITS.chunkBuffersKeptBytesMax in any
 * case, so that a peak does not stay for ever.
 */
export function createChunkBuffers(options: { chunkSizeBytes: number; keptBytesMax: number }): ChunkBuffers {
  const sizeBytes = sealedBytes({ sizeBytes: options.chunkSizeBytes, pieceBytes: LIMITS.sealPieceBytes });
  const keptBytesMax = Math.min(options.keptBytesMax, LIMITS.chunkBuffersKeptBytesMax);
  const keptMax = Math.floor(keptBytesMax / sizeBytes);
  const kept: ArrayBuffer[] = [];
  return {
    sizeBytes,
    take: () => kept.pop() ?? Buffer.allocUnsafeSlow(sizeBytes).buffer,
    give(buffer) {
      if (buffer.byteLength === sizeBytes && kept.length < keptMax) kept.push(buffer);
    },
  };
}
