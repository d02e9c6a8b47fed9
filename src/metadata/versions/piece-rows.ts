// The rows of pieces, of which a blob consists that appends let grow (grow-blob.ts).
import { concatBytes, fromHex, toHex } from '../../base/bytes/bytes.ts';
import type { RangeAddress, RowAddress } from '../../ports/state-machine.ts';
import type { BlobId } from '../../types/names.ts';
import { readU16, u16 } from '../schema/key-parts.ts';
import { prefixRange, TABLES } from '../schema/keyspace.ts';

const BLOB_ID_BYTES = 16;

export function pieceRow(blobId: BlobId, index: number): RowAddress {
  return { table: TABLES.pieces, key: concatBytes(fromHex(blobId), u16(index)) };
}

export function readPieceKey(key: Uint8Array): { blobId: BlobId; index: number } {
  return { blobId: toHex(key.subarray(0, BLOB_ID_BYTES)) as BlobId, index: readU16(key, BLOB_ID_BYTES) };
}

/** The first ones. */
export function pieceRange(blobId: BlobId, limit: number): RangeAddress {
  return prefixRange({ table: TABLES.pieces, prefix: fromHex(blobId), limit });
}
