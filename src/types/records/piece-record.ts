// A piece of a blob that appends let grow (metadata/blobs/grow-blob.ts), field behind field: each small append writes one.
import { assert } from '../../base/assert.ts';
import { ByteReader, ByteWriter } from '../../base/bytes/byte-cursor.ts';
import type { BlobId } from '../names.ts';

/** Sealed as an inline body of its own blob id would be, by a data key of its own. */
export interface PieceRecord {
  /** The id that it was sealed under: of the blob, where it is the first. */
  pieceId: BlobId;
  /** Of plaintext. */
  sizeBytes: number;
  /**
   * Wrapped by the key that the use of its blob names (BlobUse.wrappedDataKey); empty: derived from that and its id
   * (ObjectKeys, objects/object-keys.ts).
   */
  wrappedDataKey: Uint8Array;
  sealed: Uint8Array;
}

const FORMAT = 1;
const ID_BYTES = 16;
/** format 1 | id 16 | size 4 | size of the data key 1 | data key | sealed bytes */
const HEAD_BYTES = 1 + ID_BYTES + 4 + 1;

export function encodePiece({ pieceId, sizeBytes, wrappedDataKey, sealed }: PieceRecord): Uint8Array {
  const buffer = Buffer.allocUnsafe(HEAD_BYTES + wrappedDataKey.length + sealed.length);
  const writer = new ByteWriter(buffer);
  writer.uint(FORMAT, 1);
  writer.hex(pieceId, ID_BYTES);
  writer.uint(sizeBytes, 4);
  writer.uint(wrappedDataKey.length, 1);
  writer.bytes(wrappedDataKey);
  writer.bytes(sealed);
  writer.end();
  return buffer;
}

export function decodePiece(bytes: Uint8Array): PieceRecord {
  const reader = new ByteReader(bytes);
  const format = reader.uint(1);
  assert(format === FORMAT, `piece record: unknown format ${format}`);
  const pieceId = reader.hex(ID_BYTES) as BlobId;
  const sizeBytes = reader.uint(4);
  const wrappedDataKey = reader.bytes(reader.uint(1));
  const sealed = reader.bytes(bytes.length - HEAD_BYTES - wrappedDataKey.length);
  return { pieceId, sizeBytes, wrappedDataKey, sealed };
}
