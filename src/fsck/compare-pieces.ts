// Checks blobs of pieces against their pieces, which lie in a column of their own: as many as the blob's row names, without
// a gap and none behind them. Both are read in the order of blob ids, at different moments, and grow meanwhile: what does
// not agree is read again. Pieces are never rewritten, so a piece that a row names must be there whenever it is read.
import { sealedBytes } from '../base/crypto/seal.ts';
import type { BlobFact, PiecePlace, PieceUse } from '../ports/metadata/checks.ts';
import { LIMITS } from '../types/limits.ts';
import { type BlobId, homeShardOf } from '../types/names.ts';
import { decodePiece, type PieceRecord } from '../types/records/piece-record.ts';
import type { BlobRecord } from '../types/records/rows.ts';
import { createBatch, type FsckRun } from './run.ts';

const PAGE_KEYS = 500;
/** Each is a row of some KiB. */
const USES_BATCH = 50;

/** The pieces of one blob. */
interface PiecesSeen {
  blobId: BlobId;
  pieceCount: number;
  lastIndex: number;
}

/** What a shard's blobs of pieces are given to, in order, and then the end. */
export interface PieceComparison {
  add(fact: BlobFact): Promise<void>;
  end(): Promise<void>;
}

export function comparePieces(run: FsckRun, shard: number): PieceComparison {
  const seen = readPieces(run, shard);
  const orphans = createBatch<PiecesSeen>((some) => inspectOrphans(run, shard, some));
  const suspects = createBatch<BlobId>((some) => lookAgain(run, shard, some));
  const take = async (): Promise<PiecesSeen | undefined> => (await seen.next()).value ?? undefined;
  let next: Promise<PiecesSeen | undefined> | undefined;
  const passTo = async (blobId: BlobId | undefined): Promise<PiecesSeen | undefined> => {
    for (;;) {
      next ??= take();
      const pieces = await next;
      if (pieces === undefined || (blobId !== undefined && pieces.blobId > blobId)) return undefined;
      next = undefined;
      if (pieces.blobId === blobId) return pieces;
      await orphans.add(pieces);
    }
  };
  return {
    async add({ blobId, blob }) {
      const pieces = await passTo(blobId);
      const isWhole =
        pieces !== undefined &&
        pieces.pieceCount === blob.grown?.pieceCount &&
        pieces.lastIndex === pieces.pieceCount - 1;
      if (pieces !== undefined && pieces.lastIndex >= (blob.grown?.pieceCount ?? 0))
        await orphans.add(pieces);
      if (!isWhole || run.options.readData) await suspects.add(blobId);
    },
    async end() {
      await passTo(undefined);
      for (const batch of [orphans, suspects]) await batch.end();
    },
  };
}

async function* readPieces(run: FsckRun, shard: number): AsyncGenerator<PiecesSeen> {
  let pieces: PiecesSeen | undefined;
  for (let from: PiecePlace | undefined; ; ) {
    const page = (await run.ask(shard, 'list-pieces', { ...(from && { from }), limit: PAGE_KEYS })).pieces;
    run.progress.bodyCount += page.length;
    for (const { blobId, index } of page) {
      if (pieces !== undefined && pieces.blobId !== blobId) {
        yield pieces;
        pieces = undefined;
      }
      pieces = { blobId, pieceCount: (pieces?.pieceCount ?? 0) + 1, lastIndex: index };
    }
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE_KEYS) break;
    from = { blobId: last.blobId, index: last.index + 1 };
  }
  if (pieces !== undefined) yield pieces;
}

async function lookAgain(run: FsckRun, shard: number, blobIds: BlobId[]): Promise<void> {
  const { blobs } = await run.ask(shard, 'get-blobs', { blobIds });
  for (const [at, blobId] of blobIds.entries()) {
    const blob = blobs[at] ?? null;
    if (blob?.grown === undefined) continue;
    const { pieceCount } = blob.grown;
    const { pieces } = await run.ask(shard, 'get-pieces', { blobId, pieceCount });
    if (pieces !== null) comparePieceRows(run, { shard, blobId, blob }, pieces);
    else if (await isStillThere(run, shard, blobId)) run.found('body-missing', { shard, blob: blobId });
  }
}

function comparePieceRows(
  run: FsckRun,
  { shard, blobId, blob }: { shard: number; blobId: BlobId; blob: BlobRecord },
  rows: readonly Uint8Array[],
): void {
  const pieces = decodeAll(rows);
  if (pieces === undefined) {
    run.found('broken-row', { shard, blob: blobId, table: 'pieces' });
    return;
  }
  const isSound = pieces.every(
    ({ sizeBytes, sealed }) =>
      sealed.length === sealedBytes({ sizeBytes, blockBytes: LIMITS.sealBlockBytes }),
  );
  const sizeBytes = pieces.reduce((sum, piece) => sum + piece.sizeBytes, 0);
  const isLast = pieces.at(-1)?.pieceId === blob.grown?.lastPieceId;
  if (isSound && isLast && sizeBytes === blob.sizeBytes) return;
  const note = `pieces of ${blob.sizeBytes} bytes, is ${sizeBytes}${isSound && isLast ? '' : ', not these'}`;
  run.found('body-size', { shard, blob: blobId, note });
}

function decodeAll(rows: readonly Uint8Array[]): PieceRecord[] | undefined {
  try {
    return rows.map(decodePiece);
  } catch {
    return undefined;
  }
}

/**
 * Who sees but the beginning of a blob sees the piece that it names as the last one: pieces are never written anew. One that is
 * not there is found with its blob, or has gone with it.
 */
export async function comparePieceUses(run: FsckRun, uses: readonly PieceUse[]): Promise<void> {
  for (const [home, ofHome] of Map.groupBy(uses, ({ blobId }) => homeShardOf(blobId))) {
    for (let from = 0; from < ofHome.length; from += USES_BATCH) {
      const some = ofHome.slice(from, from + USES_BATCH);
      const pieces = some.map(({ blobId, pieceCount }) => ({ blobId, index: pieceCount - 1 }));
      const { pieceIds } = await run.ask(home, 'get-piece-ids', { pieces });
      for (const [at, { pieceCount, lastPieceId, place }] of some.entries()) {
        const pieceId = pieceIds[at] ?? null;
        if (pieceId === null || pieceId === lastPieceId) continue;
        const note = `piece ${pieceCount} is ${lastPieceId}, is ${pieceId}`;
        run.found(pieceId === 'broken' ? 'broken-row' : 'layout-differs', { ...place, note });
      }
    }
  }
}

/** Pieces without a blob. A piece is written in one entry with its blob's row, and erased like that. */
async function inspectOrphans(run: FsckRun, shard: number, some: PiecesSeen[]): Promise<void> {
  const { blobs } = await run.ask(shard, 'get-blobs', { blobIds: some.map(({ blobId }) => blobId) });
  for (const [at, { blobId, lastIndex }] of some.entries()) {
    if (lastIndex < (blobs[at]?.grown?.pieceCount ?? 0)) continue;
    const from = { blobId, index: lastIndex };
    const [piece] = (await run.ask(shard, 'list-pieces', { from, limit: 1 })).pieces;
    if (piece?.blobId === blobId && piece.index === lastIndex)
      run.found('body-orphaned', { shard, blob: blobId });
  }
}

async function isStillThere(run: FsckRun, shard: number, blobId: BlobId): Promise<boolean> {
  const { blobs } = await run.ask(shard, 'get-blobs', { blobIds: [blobId] });
  return (blobs[0] ?? null) !== null;
}
