// One pass over the chunks of a body: digests of the plaintext, then the seal, while each part is in the cache.
// Synchronous; the codec pool decides on which thread it runs. One body's state lives in one of these.
import { createHash, type Hash } from 'node:crypto';
import { assert } from '../assert.ts';
import { type CrcAlgorithm, createCrc } from './crc.ts';
import { sealChunk } from './seal.ts';

export type HashAlgorithm = 'MD5' | 'SHA1' | 'SHA256';

export interface SealerOptions {
  blobId: string;
  /** 32 bytes, of this blob alone. */
  dataKey: Uint8Array;
  blockBytes: number;
  /** Over the whole body. */
  hashes: readonly HashAlgorithm[];
  /** Per chunk; those of the whole are combined from them. */
  crcs: readonly CrcAlgorithm[];
}

/** A chunk to be sealed in place. Chunks come in order, from 0. */
export interface PlainChunk {
  /** Plaintext laid out by `layPlaintext`: the whole of its ArrayBuffer, or a part of memory that threads share. */
  bytes: Uint8Array;
  /** Plaintext bytes. */
  sizeBytes: number;
  isLast: boolean;
}

/** Big-endian values of the plaintext of one chunk. */
export type ChunkCrcs = Partial<Record<CrcAlgorithm, Uint8Array>>;

/** Raw digests of the whole body. */
export type BodyHashes = Partial<Record<HashAlgorithm, Uint8Array>>;

export interface SyncBodySealer {
  /** `sealedCrc32`: of the bytes as they are afterwards. */
  seal(chunk: PlainChunk): { crcs: ChunkCrcs; sealedCrc32: number };
  finish(): BodyHashes;
}

export function createBodySealer(options: SealerOptions): SyncBodySealer {
  const { blobId, dataKey, blockBytes } = options;
  const hashes = options.hashes.map((algorithm): [HashAlgorithm, Hash] => [
    algorithm,
    createHash(algorithm.toLowerCase()),
  ]);
  let chunkIndex = 0;
  let isEnded = false;
  return {
    seal({ bytes, sizeBytes, isLast }) {
      assert(!isEnded, 'nothing follows the last chunk');
      isEnded = isLast;
      const crcs = options.crcs.map((algorithm) => ({ algorithm, crc: createCrc(algorithm) }));
      const sealedCrc32 = sealChunk({
        dataKey,
        position: { blobId, chunkIndex: chunkIndex++, isLastChunk: isLast, sizeBytes, blockBytes },
        chunk: bytes,
        onPlaintext(part) {
          for (const [, hash] of hashes) hash.update(part);
          for (const { crc } of crcs) crc.update(part);
        },
      });
      return {
        crcs: Object.fromEntries(crcs.map(({ algorithm, crc }) => [algorithm, crc.digest()])),
        sealedCrc32,
      };
    },
    finish: () => Object.fromEntries(hashes.map(([algorithm, hash]) => [algorithm, hash.digest()])),
  };
}
