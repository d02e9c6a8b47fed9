// Two uses of one blob of pieces, which saw it at different times: one of them is a beginning of the other, unless its home
// goes on with a history that has forgotten pieces (R23). Then others have come into their place.
import { AppError } from '../model/errors.ts';
import { homeShardOf } from '../model/names.ts';
import { type BlobUse, isLaidWithin } from '../model/version.ts';
import type { MetadataCalls } from './object-store.ts';

/**
 * That one use may stand for both, the one that sees more. Throws AppError InternalError where one of them names another last
 * piece than there is, as a read of it does.
 */
export async function requireBeginning(calls: MetadataCalls, one: BlobUse, other: BlobUse): Promise<void> {
  if (one.grown === undefined || other.grown === undefined) return;
  const { blobId } = one;
  const ends = [one.grown, other.grown];
  if (isLaidWithin(one, other) && isLaidWithin(other, one)) return;
  const pieces = ends.map(({ pieceCount }) => ({ blobId, index: pieceCount - 1 }));
  const { value } = await calls.query({ shard: homeShardOf(blobId) }, 'get-piece-ids', { pieces });
  if (ends.every(({ lastPieceId }, at) => value.pieceIds[at] === lastPieceId)) return;
  throw new AppError('InternalError', { cause: new Error(`pieces of ${blobId} are others`) });
}
