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
  /**
   * Of a body that comes in pieces, each with a digest of its own: where pieces end in this chunk, in plaintext bytes from its
   * beginning, ascending. Given with every chunk of such a body.
   */
  pieceEnds?: readonly number[];
}

/** What sealing has found of a chunk. */
export interface ChunkDigests {
  crcs: ChunkCrcs;
  /** Of the bytes as they are afterwards. */
  sealedCrc32: number;
  /** SHA-256 of the pieces that end in this chunk, one behind the other; they may have begun before it. */
  pieceSha256s?: Uint8Array;
}

/** Big-endian values of the plaintext of one chunk. */
export type ChunkCrcs = Partial<Record<CrcAlgorithm, Uint8Array>>;

/** Raw digests of the whole body. */
export type BodyHashes = Partial<Record<HashAlgorithm, Uint8Array>>;

export interface SyncBodySealer {
  seal(chunk: PlainChunk): ChunkDigests;
  finish(): BodyHashes;
}

export function createBodySealer(options: SealerOptions): SyncBodySealer {
  const { blobId, dataKey, blockBytes } = options;
  const hashes = options.hashes.map((algorithm): [HashAlgorithm, Hash] => [
    algorithm,
    createHash(algorithm.toLowerCase()),
  ]);
  let pieces: PieceHashes | undefined;
  let chunkIndex = 0;
  let isEnded = false;
  return {
    seal({ bytes, sizeBytes, isLast, pieceEnds }) {
      assert(!isEnded, 'nothing follows the last chunk');
      isEnded = isLast;
      const crcs = options.crcs.map((algorithm) => ({ algorithm, crc: createCrc(algorithm) }));
      if (pieceEnds !== undefined) {
        pieces ??= new PieceHashes();
        pieces.beginChunk(pieceEnds);
      }
      const sealedCrc32 = sealChunk({
        dataKey,
        position: { blobId, chunkIndex: chunkIndex++, isLastChunk: isLast, sizeBytes, blockBytes },
        chunk: bytes,
        onPlaintext(part) {
          for (const [, hash] of hashes) hash.update(part);
          for (const { crc } of crcs) crc.update(part);
          pieces?.update(part);
        },
      });
      return {
        crcs: Object.fromEntries(crcs.map(({ algorithm, crc }) => [algorithm, crc.digest()])),
        sealedCrc32,
        ...(pieces && { pieceSha256s: pieces.endChunk() }),
      };
    },
    finish: () => Object.fromEntries(hashes.map(([algorithm, hash]) => [algorithm, hash.digest()])),
  };
}

/** SHA-256 of the pieces of a body, which follow one another over the bounds of chunks. */
class PieceHashes {
  #hash = createHash('sha256');
  #digests: Uint8Array[] = [];
  #ends: readonly number[] = [];
  #next = 0;
  /** In the chunk. */
  #at = 0;

  beginChunk(ends: readonly number[]): void {
    this.#ends = ends;
    this.#next = 0;
    this.#at = 0;
    this.#digests = [];
  }

  update(part: Uint8Array): void {
    let from = 0;
    for (let end = this.#ends[this.#next]; end !== undefined; end = this.#ends[++this.#next]) {
      const to = end - this.#at;
      if (to > part.length) break;
      this.#hash.update(part.subarray(from, to));
      this.#digests.push(this.#hash.digest());
      this.#hash = createHash('sha256');
      from = to;
    }
    this.#hash.update(part.subarray(from));
    this.#at += part.length;
  }

  endChunk(): Uint8Array {
    assert(this.#digests.length === this.#ends.length, 'pieces end within the chunk');
    return Buffer.concat(this.#digests);
  }
}
