// A record of an extent file: a head of one block, and the body from the next block on. A head says whose bytes follow, so that
// rows can be made anew from extents alone. All integers are big-endian.
//
// Head: magic 8 | version 2 | bytes of key 2 | bytes of body 4 | sequence 8 | CRC32 of body 4 | CRC32 of the head's rest 4 | key
import { assert } from '../../base/assert.ts';
import { asBuffer, equalBytes } from '../../base/bytes/bytes.ts';
import { crc32 } from '../../base/crypto/crc32.ts';

/** What direct writes are made of: offsets, lengths and memory are multiples of it. */
export const BLOCK_BYTES = 4096;

const MAGIC = Buffer.from('HFEXTENT');
const VERSION = 1;
const KEY_AT = 32;
const CHECKSUM_AT = 28;
export const EXTENT_KEY_BYTES_MAX = BLOCK_BYTES - KEY_AT;

export interface RecordHead {
  key: Uint8Array;
  bodyBytes: number;
  /** Counts the records of a store: of two with one key the higher is the newer, and bytes of an earlier use of the file are lower. */
  sequence: number;
  bodyCrc32: number;
}

/** Where a record is, as its row has it. */
export interface RecordPlace {
  fileId: number;
  /** Of its head, bytes. */
  offset: number;
  bodyBytes: number;
  sequence: number;
  bodyCrc32: number;
}

export function roundUp(sizeBytes: number): number {
  return Math.ceil(sizeBytes / BLOCK_BYTES) * BLOCK_BYTES;
}

/** Bytes in the file. */
export function recordBytes(bodyBytes: number): number {
  return BLOCK_BYTES + roundUp(bodyBytes);
}

/** Writes a head into the block, zeros behind it. */
export function writeHead(block: Buffer, { key, bodyBytes, sequence, bodyCrc32 }: RecordHead): void {
  assert(key.length <= EXTENT_KEY_BYTES_MAX, 'a key fits into a head');
  block.fill(0);
  MAGIC.copy(block);
  block.writeUInt16BE(VERSION, 8);
  block.writeUInt16BE(key.length, 10);
  block.writeUInt32BE(bodyBytes, 12);
  block.writeBigUInt64BE(BigInt(sequence), 16);
  block.writeUInt32BE(bodyCrc32, 24);
  block.set(key, KEY_AT);
  block.writeUInt32BE(headChecksum(block, key.length), CHECKSUM_AT);
}

/** undefined: this is no head, or a damaged one. */
export function readHead(bytes: Uint8Array): RecordHead | undefined {
  if (bytes.length < BLOCK_BYTES) return undefined;
  const block = asBuffer(bytes).subarray(0, BLOCK_BYTES);
  if (!equalBytes(block.subarray(0, 8), MAGIC) || block.readUInt16BE(8) !== VERSION) return undefined;
  const keyBytes = block.readUInt16BE(10);
  if (keyBytes > EXTENT_KEY_BYTES_MAX) return undefined;
  if (block.readUInt32BE(CHECKSUM_AT) !== headChecksum(block, keyBytes)) return undefined;
  return {
    key: Uint8Array.from(block.subarray(KEY_AT, KEY_AT + keyBytes)),
    bodyBytes: block.readUInt32BE(12),
    sequence: Number(block.readBigUInt64BE(16)),
    bodyCrc32: block.readUInt32BE(24),
  };
}

function headChecksum(block: Buffer, keyBytes: number): number {
  return crc32(block.subarray(KEY_AT, KEY_AT + keyBytes), crc32(block.subarray(0, CHECKSUM_AT)));
}

const PLACE_BYTES = 29;
const PLACE_VERSION = 1;

/** A place as the value of a row: version 1 | file 4 | block of the file 4 | bytes of body 4 | sequence 8 | CRC32 4 | (4 spare). */
export function encodePlace({ fileId, offset, bodyBytes, sequence, bodyCrc32 }: RecordPlace): Uint8Array {
  const bytes = Buffer.alloc(PLACE_BYTES);
  bytes.writeUInt8(PLACE_VERSION, 0);
  bytes.writeUInt32BE(fileId, 1);
  bytes.writeUInt32BE(offset / BLOCK_BYTES, 5);
  bytes.writeUInt32BE(bodyBytes, 9);
  bytes.writeBigUInt64BE(BigInt(sequence), 13);
  bytes.writeUInt32BE(bodyCrc32, 21);
  return bytes;
}

export function decodePlace(value: Uint8Array): RecordPlace {
  const bytes = asBuffer(value);
  assert(bytes.length === PLACE_BYTES && bytes[0] === PLACE_VERSION, 'a row of a place is of a known form');
  return {
    fileId: bytes.readUInt32BE(1),
    offset: bytes.readUInt32BE(5) * BLOCK_BYTES,
    bodyBytes: bytes.readUInt32BE(9),
    sequence: Number(bytes.readBigUInt64BE(13)),
    bodyCrc32: bytes.readUInt32BE(21),
  };
}
