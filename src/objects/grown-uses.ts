// Uses of one blob of pieces, which saw it at different times: each is a beginning of the longest one, unless its home goes on
// with a history that has forgotten pieces (R23). Then others have come into their place, and no use stands for all of them.
import { AppError } from '../types/errors.ts';
import { homeShardOf } from '../types/names.ts';
import type { BlobUse } from '../types/version.ts';
import type { MetadataCalls } from './object-store.ts';

/** Each is a row of some KiB. */
const PIECES_BATCH = 50;

/** Where a use ends. */
interface End {
  blobId: BlobUse['blobId'];
  pieceCount: number;
  lastPieceId: BlobUse['blobId'];
}

/** Whether both see the same bytes of one blob. */
export function isSameUse(one: BlobUse | undefined, other: BlobUse): boolean {
  return one?.blobId === other.blobId && one.grown?.lastPieceId === other.grown?.lastPieceId;
}

/**
 * Asked before uses of one blob become one, the one that sees most (relink). `gone`: pieces are not there any more; read the
 * versions again. Throws AppError InternalError where one names another piece than there is, as a read of it does.
 */
export async function requireBeginnings(
  calls: MetadataCalls,
  uses: readonly BlobUse[],
): Promise<'sound' | 'gone'> {
  const byHome = Map.groupBy(differingEnds(uses), ({ blobId }) => homeShardOf(blobId));
  for (const [shard, ends] of byHome) {
    for (let from = 0; from < ends.length; from += PIECES_BATCH) {
      const some = ends.slice(from, from + PIECES_BATCH);
      const pieces = some.map(({ blobId, pieceCount }) => ({ blobId, index: pieceCount - 1 }));
      const { value } = await calls.query({ shard }, 'get-piece-ids', { pieces });
      for (const [at, { blobId, lastPieceId }] of some.entries()) {
        const pieceId = value.pieceIds[at] ?? null;
        if (pieceId === null) return 'gone';
        if (pieceId !== lastPieceId)
          throw new AppError('InternalError', { cause: new Error(`pieces of ${blobId} are others`) });
      }
    }
  }
  return 'sound';
}

/** Of blobs that are seen at more than one. */
function differingEnds(uses: readonly BlobUse[]): End[] {
  const byBlob = new Map<BlobUse['blobId'], Map<string, End>>();
  for (const { blobId, grown } of uses) {
    if (grown === undefined) continue;
    const ends = byBlob.get(blobId) ?? new Map<string, End>();
    ends.set(`${grown.pieceCount} ${grown.lastPieceId}`, { blobId, ...grown });
    byBlob.set(blobId, ends);
  }
  return [...byBlob.values()].flatMap((ends) => (ends.size > 1 ? [...ends.values()] : []));
}
