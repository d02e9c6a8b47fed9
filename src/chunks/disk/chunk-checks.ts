// What a chunk store refuses, in the words of its port.

import type { ChunkId } from '../../ports/chunks.ts';
import { ChunkUnread, OtherBytes } from '../../types/chunk-refusals.ts';
import { AppError } from '../../types/errors.ts';
import { chunkName } from '../../types/names.ts';

/** Of a chunk's sealed bytes. */
export interface Checksum {
  sizeBytes: number;
  crc32: number;
}

/** Throws AppError ServiceUnavailable for a fetch that a drop has overtaken. */
export function refuseDropped({ isDropped }: { isDropped: boolean }): void {
  if (isDropped) throw unavailable(new Error('the chunk was dropped while it was fetched'));
}

/** What cannot be said of one chunk's bytes holds up none of the others. */
export function passUnread(error: unknown): undefined {
  if (!(error instanceof ChunkUnread)) throw error;
}

/** Any failure of the disk as ServiceUnavailable; refusals stay what they are. */
export function unavailable(error: unknown): Error {
  return error instanceof AppError ? error : new AppError('ServiceUnavailable', { cause: error });
}

/** Throws OtherBytes: an id stands for the same bytes for ever. */
export function assertSame(id: ChunkId, stored: Checksum, given: Checksum): void {
  const isSame = stored.sizeBytes === given.sizeBytes && stored.crc32 === given.crc32;
  if (!isSame) throw new OtherBytes(chunkName(id));
}
