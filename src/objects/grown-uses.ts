// Uses of one growing blob that were taken at different times. Each is a beginning of the longest one, unless the blob's
// home continues in a history that has lost pieces (R23): then other pieces have taken their places, and no use covers all.
import { AppError } from '../types/errors.ts';
import { homeShardOf } from '../types/names.ts';
import type { BlobUse } from '../types/version.ts';
import type { MetadataCalls } from './object-store.ts';

/** Each is a row of a few KiB. */
const PIECES_BATCH = 50;

/** The last piece of a use. */
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
 * Called before uses of one blob are merged into the longest one (relink). `gone`: pieces do not exist any more; read the
 * versions again. Throws AppError InternalError if a use names another piece than the stored one, as a read does.
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

/** Last pieces of blobs that occur with more than one. */
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
