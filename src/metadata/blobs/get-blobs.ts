// What readers need of blobs whose home this is: pages of manifests, bodies, rows. null for what is not there.
import { equalBytes } from '../../base/bytes/bytes.ts';
import type { QueryOf, ResultOf } from '../../ports/metadata/port.ts';
import type { QuerySpec } from '../../ports/state-machine.ts';
import { type BlobRecord, blobCodec, manifestPageCodec } from '../../types/records/rows.ts';
import { blobRow, bodyRow, HISTORY_ROW, manifestPageRow } from '../schema/keyspace.ts';
import { pieceRange, pieceRow } from '../versions/piece-rows.ts';
import { isUnconfirmedRow } from './history.ts';

/** Pages `from` to `to`, both included. */
export const getManifestPages: QuerySpec<QueryOf<'get-manifest-pages'>, ResultOf<'get-manifest-pages'>> = {
  async run({ manifestId, from, to }, state) {
    const addresses = [];
    for (let page = from; page <= to; page++) addresses.push(manifestPageRow(manifestId, page));
    const rows = await state.rows(addresses);
    return { pages: rows.map((row) => (row === undefined ? null : manifestPageCodec.decode(row))) };
  },
};

export const getBodies: QuerySpec<QueryOf<'get-bodies'>, ResultOf<'get-bodies'>> = {
  async run({ blobIds }, state) {
    const rows = await state.rows(blobIds.map(bodyRow));
    return { bodies: rows.map((row) => row ?? null) };
  },
};

export const getPieces: QuerySpec<QueryOf<'get-pieces'>, ResultOf<'get-pieces'>> = {
  async run({ blobId, pieceCount }, state) {
    const rows = await state.range(pieceRange(blobId, pieceCount));
    // Without a gap: the last one stands where it would without.
    const last = rows.at(-1);
    const areAll = last !== undefined && equalBytes(last.key, pieceRow(blobId, pieceCount - 1).key);
    return { pieces: areAll && rows.length === pieceCount ? rows.map(({ value }) => value) : null };
  },
};

export const getBlobs: QuerySpec<QueryOf<'get-blobs'>, ResultOf<'get-blobs'>> = {
  async run({ blobIds }, state) {
    const [history, ...rows] = await state.rows([HISTORY_ROW, ...blobIds.map(blobRow)]);
    const doubt = isUnconfirmedRow(history) ? { isUnconfirmed: true as const } : {};
    return { ...doubt, blobs: rows.map((row) => (row === undefined ? null : withoutRanges(row))) };
  },
};

/** The list of sources of a compacted blob may take some KiB, and only counting needs it. */
function withoutRanges(row: Uint8Array): Omit<BlobRecord, 'foldedFrom'> {
  const { foldedFrom: _ranges, ...blob } = blobCodec.decode(row);
  return blob;
}
