// Errors with which a chunk store refuses, as the port defines them.

import type { ChunkId } from '../../ports/chunks.ts';
import { ChunkUnread, OtherBytes } from '../../types/chunk-refusals.ts';
import { AppError } from '../../types/errors.ts';
import { chunkName } from '../../types/names.ts';

/** Size and checksum of the sealed bytes of a chunk. */
export interface Checksum {
  sizeBytes: number;
  crc32: number;
}

/** Throws AppError ServiceUnavailable for a fetch that a drop has overtaken. */
export function refuseDropped({ isDropped }: { isDropped: boolean }): void {
  if (isDropped) throw unavailable(new Error('the chunk was dropped while it was fetched'));
}

/** A read failure of one chunk must not fail the whole batch. */
export function passUnread(error: unknown): undefined {
  if (!(error instanceof ChunkUnread)) throw error;
}

/** Turns any failure of the disk into ServiceUnavailable; refusals stay as they are. */
export function unavailable(error: unknown): Error {
  return error instanceof AppError ? error : new AppError('ServiceUnavailable', { cause: error });
}

/** Throws OtherBytes: an id stands for the same bytes for ever. */
export function assertSame(id: ChunkId, stored: Checksum, given: Checksum): void {
  const isSame = stored.sizeBytes === given.sizeBytes && stored.crc32 === given.crc32;
  if (!isSame) throw new OtherBytes(chunkName(id));
}
