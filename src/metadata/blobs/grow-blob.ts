// Where the bytes of an append go (service 4.2). What is small goes into the blob of pieces that the object ends with:
// one row for the piece, and the blob's own; no blob, link and body for each of a thousand, which would all have to be freed.
// A piece that is there is never written again: who uses a blob of pieces uses its beginning, whatever comes behind it.
import { assert, must } from '../../base/assert.ts';
import { EMPTY_BYTES } from '../../base/bytes/bytes.ts';
import type { GrantRefusal, NewBlob } from '../../ports/metadata/blobs.ts';
import type { DecideContext, RowPut, View } from '../../ports/state-machine.ts';
import { LIMITS } from '../../types/limits.ts';
import { paddedTo } from '../../types/metered.ts';
import { type BlobId, type BucketId, homeShardOf } from '../../types/names.ts';
import { encodePiece } from '../../types/records/piece-record.ts';
import { type BlobRecord, blobCodec, chargedOf, isLiveBlob } from '../../types/records/rows.ts';
import {
  type BlobUse,
  growingUse,
  isLaidWithin,
  layoutOf,
  type Manifest,
  type ManifestBody,
} from '../../types/version.ts';
import { blobRow, put } from '../schema/keyspace.ts';
import { appendPiece, replaceLast } from '../versions/grow-manifest.ts';
import { pieceRow } from '../versions/piece-rows.ts';
import { admitGrant, existsAlready, findBlob, isLateBlob, lookAtGrant, ownLinkPut } from './links.ts';
import type { RowChange } from './repair-entries.ts';

export interface PieceToLay {
  births: readonly NewBlob[];
  sizeBytes: number;
}

export interface LayingOptions {
  /** What the piece comes behind, by the links of the version to be. */
  carried: Manifest;
  /** Of what is there already. */
  sizeBytes: number;
  piece: PieceToLay;
  /** The blob that may grow: the command has its lock, and has looked at its row. */
  growingId: BlobId | undefined;
  /** Also where the object ends with another blob that might grow. */
  beginsAnew: boolean;
  bucketId: BucketId;
  view: View;
  context: DecideContext;
}

export type LaidPiece = { kind: 'laid'; manifest: Manifest } & RowChange;

/**
 * What is looked at for a piece beside the object: the blob that may grow, and the place of one that the piece may begin, unless
 * it goes into the other. Most do, and their objects are in memory: these are appended to without a read of the store.
 */
export function lookAtPiece(
  options: Pick<LayingOptions, 'piece' | 'growingId' | 'beginsAnew'>,
  view: View,
): void {
  const { piece, growingId, beginsAnew } = options;
  const [newBlob] = piece.births;
  if (growingId !== undefined) view.row(blobRow(growingId));
  if (newBlob === undefined || growingId === undefined || beginsAnew || !isSmall(newBlob))
    lookAtGrant({ births: [...piece.births], links: [] }, view);
  else if (view.has(blobRow(growingId)) && !mayTake(findBlob(view, growingId), newBlob))
    lookAtGrant({ births: [newBlob], links: [] }, view);
}

/**
 * R24, for data with chunks: checked before any other refusal (links.ts). A small piece has no chunks, and a row by its id
 * only if it began a blob.
 */
export function isLaidAlready({ births }: PieceToLay, view: View): boolean {
  return (
    births.some((newBlob) => !isSmall(newBlob)) && existsAlready({ births: [...births], links: [] }, view)
  );
}

/**
 * The manifest with the piece behind it, and the rows of the piece. `ends-with-other`: another blob than the one that was named
 * may grow, or that one may not, and what is needed instead has not been looked at: look at the object again. Else who appends
 * by turns would begin a blob each time.
 */
export function layPiece(options: LayingOptions): LaidPiece | GrantRefusal | { kind: 'ends-with-other' } {
  const { carried, sizeBytes, piece, bucketId, view, context } = options;
  const [newBlob] = piece.births;
  if (newBlob === undefined || !isSmall(newBlob)) {
    const haveKeys = piece.births.every(({ use }) => use.wrappedDataKey.length > 0);
    assert(haveKeys, 'only the key of a piece is derived');
    const grant = { births: [...piece.births], links: [] };
    const body = bodyOf(grant.births.map(({ use }) => use));
    const holder = { composedIn: bucketId, isCharged: true as const };
    const admitted = admitGrant({ grant, names: body.uses, ...holder, view, context });
    if (admitted.kind !== 'admitted') return admitted;
    return { ...admitted, kind: 'laid', manifest: appendPiece(carried, body, sizeBytes) };
  }
  // R25, as for every new blob, though it has no chunks.
  if (isLateBlob(newBlob, context)) return { kind: 'late' };
  const last = growingUse(carried);
  // R24, as far as it shows here: a piece has no row by its id. Behind another piece the request's id alone tells (R18).
  if (last?.grown?.lastPieceId === newBlob.use.blobId || hasBegunBlob(newBlob, view))
    return { kind: 'exists' };
  if (last === undefined || !hasRoom(last, newBlob)) return beginBlob(newBlob, options);
  if (last.blobId === options.growingId)
    return growLast(last, newBlob, options) ?? beginBlob(newBlob, options);
  const isHere = homeShardOf(last.blobId) === context.shard;
  return isHere && !options.beginsAnew ? { kind: 'ends-with-other' } : beginBlob(newBlob, options);
}

/** As far as has been looked at: where it is to begin one now, it has been. */
function hasBegunBlob({ use }: NewBlob, view: View): boolean {
  return view.has(blobRow(use.blobId)) && view.row(blobRow(use.blobId)) !== undefined;
}

/** As far as its row shows: whether the object ends where it ends is known by the object alone. */
function mayTake(blob: Readonly<BlobRecord> | undefined, newBlob: NewBlob): boolean {
  return blob !== undefined && isLiveBlob(blob) && !blob.isClosed && hasRoom(blob, newBlob);
}

function hasRoom({ sizeBytes, grown }: Pick<BlobUse, 'sizeBytes' | 'grown'>, { use }: NewBlob): boolean {
  const { pieceCount } = must(grown, 'pieces tell how many they are');
  return pieceCount < LIMITS.grownPiecesMax && sizeBytes + use.sizeBytes <= LIMITS.grownBlobBytesMax;
}

function isSmall({ use }: NewBlob): boolean {
  return use.storage === 'inline' && use.sizeBytes <= LIMITS.grownPieceBytesMax;
}

function bodyOf(uses: BlobUse[]): ManifestBody {
  return { uses, segments: uses.map(({ sizeBytes }, use) => ({ use, offsetBytes: 0, sizeBytes })) };
}

/** The blob's id is that of its first piece. */
function beginBlob(
  newBlob: NewBlob,
  { carried, sizeBytes, bucketId, view, context }: LayingOptions,
): LaidPiece | { kind: 'ends-with-other' } {
  const { use } = newBlob;
  const { blobId } = use;
  if (!view.has(blobRow(blobId))) return { kind: 'ends-with-other' };
  const grown = { pieceCount: 1, lastPieceId: blobId };
  const chargedBytes = paddedTo(use.sizeBytes);
  const layout = {
    sizeBytes: use.sizeBytes,
    chunkSizeBytes: use.sizeBytes,
    storage: 'pieces' as const,
    grown,
  };
  const begun: BlobUse = { blobId, linkId: use.linkId, ...layout, wrappedDataKey: EMPTY_BYTES };
  const puts = [
    // As if it had been shared: the note that it is would be made without the lock under which it grows (take-over-links.ts).
    put(blobRow(blobId), blobCodec.encode({ kind: 'data', ...layout, chargedBytes, isShared: true })),
    ownLinkPut(use, context.shard, { composedIn: bucketId, isCharged: true }),
    piecePut({ blobId, index: 0 }, newBlob),
  ];
  return {
    kind: 'laid',
    manifest: appendPiece(carried, bodyOf([begun]), sizeBytes),
    puts,
    counters: [],
  };
}

/** Undefined: it has grown by others already, or must not grow any more. */
function growLast(last: BlobUse, newBlob: NewBlob, { carried, view }: LayingOptions): LaidPiece | undefined {
  const blob = findBlob(view, last.blobId);
  if (blob === undefined || !isLiveBlob(blob) || blob.isClosed || !endsWith(last, blob)) return undefined;
  const { pieceCount } = must(last.grown, 'pieces tell how many they are');
  const sizeBytes = last.sizeBytes + newBlob.use.sizeBytes;
  const grown = { pieceCount: pieceCount + 1, lastPieceId: newBlob.use.blobId };
  const layout = { sizeBytes, chunkSizeBytes: sizeBytes, storage: 'pieces' as const, grown };
  const { blobId } = last;
  const chargedBytes = chargedOf(blob) + paddedTo(newBlob.use.sizeBytes);
  return {
    kind: 'laid',
    manifest: replaceLast(carried, { ...last, ...layout }, newBlob.use.sizeBytes),
    puts: [
      put(blobRow(blobId), blobCodec.encode({ ...blob, ...layout, chargedBytes })),
      piecePut({ blobId, index: pieceCount }, newBlob),
    ],
    counters: [],
  };
}

/**
 * Another one that used its beginning, a copy, may have let it grow. What lies behind the end that a version knows is no
 * piece of it: not in a history either that has forgotten some (R23).
 */
function endsWith(use: BlobUse, blob: BlobRecord): boolean {
  return isLaidWithin(layoutOf(use), blob) && use.grown?.pieceCount === blob.grown?.pieceCount;
}

function piecePut(at: { blobId: BlobId; index: number }, { use, body }: NewBlob): RowPut {
  const { blobId: pieceId, sizeBytes, wrappedDataKey } = use;
  const sealed = must(body, 'an inline blob brings its body');
  return put(pieceRow(at.blobId, at.index), encodePiece({ pieceId, sizeBytes, wrappedDataKey, sealed }));
}
