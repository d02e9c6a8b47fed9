// Digests, sealing and opening of bodies, on whatever thread is best. Contract, held by tests/contract/codec-pool.test.ts:
// - `seal` takes over the chunk's ArrayBuffer and gives back the same bytes sealed, over an ArrayBuffer of the same
//   size. A chunk in memory that threads share is sealed where it is, and given back: nobody works in it any more then, also
//   after `abandon`; where `seal` rejects a thread may. Calls may overlap; chunks are worked on, and resolve, in the order of
//   the calls.
// - `openBlocks` takes over the chunk's ArrayBuffer, too. What it gives is memory of its own, piece by piece.
// - A sealer ends by `finish` or `abandon`; after an error only `abandon` is left. Neither holds up other bodies.
import type { BodyHashes, ChunkDigests, PlainChunk, SealerOptions } from '../base/crypto/body-sealer.ts';
import type { BlocksToOpen } from '../base/crypto/seal.ts';

export interface SealedChunk extends ChunkDigests {
  bytes: Uint8Array;
}

export interface BodySealer {
  seal(chunk: PlainChunk): Promise<SealedChunk>;
  /** After the last chunk has been sealed. */
  finish(): Promise<BodyHashes>;
  /** Lets go of the state; seals that are under way resolve, later ones reject. Safe to repeat, and after `finish`. */
  abandon(): void;
}

export interface CodecPoolPort {
  /** `sizeBytes`: of the whole body, by which the pool chooses where it is worked on. */
  open(options: SealerOptions & { sizeBytes: number }): BodySealer;
  /**
   * The plaintext of some pieces of one sealed chunk, in order, as base/crypto/seal.ts gives it. Fewer pieces than asked for:
   * the next one does not verify.
   */
  openBlocks(blocks: BlocksToOpen): Promise<Uint8Array<ArrayBuffer>[]>;
  /** For shutdown: ends the threads; what is under way rejects. */
  close(): Promise<void>;
}
