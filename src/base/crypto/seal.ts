// Sealing the chunks of a blob: AES-256-GCM in pieces, so that a range is read without the rest of its chunk. A sealed
// chunk is its pieces in order, each followed by its tag; plaintext to be sealed already lies with these gaps, so that
// sealing happens in place and needs no second buffer.
// Nonces are counted, not random: a data key belongs to one blob and seals each position once (R24).
import { createCipheriv, createDecipheriv, createSecretKey } from 'node:crypto';
import { assert } from '../assert.ts';
import { copyBytes } from '../bytes/bytes.ts';
import { freeMemory } from '../free-memory.ts';
import { TAG_BYTES } from './aead.ts';
import { crc32 } from './crc32.ts';

/** What every piece of a chunk is bound to, besides its index. */
export interface ChunkPosition {
  /** 32 hex digits. */
  blobId: string;
  chunkIndex: number;
  /** The last chunk of the blob: its last piece says so, and a blob cannot be cut short unnoticed. */
  isLastChunk: boolean;
  /** Plaintext bytes of the chunk. */
  sizeBytes: number;
  /** Plaintext bytes per piece; the last one may be shorter. */
  blockBytes: number;
}

/** Ciphers work in steps that stay in the processor's cache, together with whatever else reads the plaintext. */
const STEP_BYTES = 64 * 1024;

export function blockCount(position: Pick<ChunkPosition, 'sizeBytes' | 'blockBytes'>): number {
  return Math.ceil(position.sizeBytes / position.blockBytes);
}

/** Bytes of a chunk once sealed. */
export function sealedBytes(position: Pick<ChunkPosition, 'sizeBytes' | 'blockBytes'>): number {
  return position.sizeBytes + blockCount(position) * TAG_BYTES;
}

/** Pieces of a chunk: from one up to before another. */
export interface BlockRange {
  readonly fromBlock: number;
  readonly toBlock: number;
}

/** Where these pieces lie in the sealed chunk, with their tags. */
export function sealedPart(
  position: Pick<ChunkPosition, 'sizeBytes' | 'blockBytes'>,
  { fromBlock, toBlock }: BlockRange,
): { offsetBytes: number; sizeBytes: number } {
  const stepBytes = position.blockBytes + TAG_BYTES;
  const offsetBytes = fromBlock * stepBytes;
  return { offsetBytes, sizeBytes: Math.min(toBlock * stepBytes, sealedBytes(position)) - offsetBytes };
}

/** Where a piece begins in the sealed chunk, and its plaintext size. */
function blockSpan(position: ChunkPosition, block: number): { offsetBytes: number; sizeBytes: number } {
  const { blockBytes } = position;
  assert(block >= 0 && block < blockCount(position), 'a piece of the chunk');
  return {
    offsetBytes: block * (blockBytes + TAG_BYTES),
    sizeBytes: Math.min(blockBytes, position.sizeBytes - block * blockBytes),
  };
}

/** Copies plaintext to where it belongs in a chunk that is to be sealed; `offsetBytes` is of the plaintext. */
export function layPlaintext(
  chunk: Uint8Array,
  plaintext: Uint8Array,
  at: { offsetBytes: number; blockBytes: number },
): void {
  let { offsetBytes } = at;
  let copiedBytes = 0;
  while (copiedBytes < plaintext.length) {
    const block = Math.floor(offsetBytes / at.blockBytes);
    const roomBytes = (block + 1) * at.blockBytes - offsetBytes;
    const part = plaintext.subarray(copiedBytes, copiedBytes + roomBytes);
    copyBytes(chunk, part, offsetBytes + block * TAG_BYTES);
    copiedBytes += part.length;
    offsetBytes += part.length;
  }
}

/**
 * Seals in place; `onPlaintext` sees each part of the plaintext, in order, before it is gone. Gives the CRC32 of the
 * sealed chunk, taken while its parts are in the cache.
 */
export function sealChunk(options: {
  dataKey: Uint8Array;
  position: ChunkPosition;
  chunk: Uint8Array;
  onPlaintext(part: Uint8Array): void;
}): number {
  const { dataKey, position, chunk, onPlaintext } = options;
  assert(chunk.length === sealedBytes(position), 'a chunk has room for its tags');
  const key = createSecretKey(dataKey);
  let checksum = 0;
  for (let block = 0; block < blockCount(position); block++) {
    const { offsetBytes, sizeBytes } = blockSpan(position, block);
    const cipher = createCipheriv('aes-256-gcm', key, nonceOf(position, block));
    cipher.setAAD(associatedData(position, block));
    const endBytes = offsetBytes + sizeBytes;
    for (let at = offsetBytes; at < endBytes; at += STEP_BYTES) {
      const part = chunk.subarray(at, Math.min(at + STEP_BYTES, endBytes));
      onPlaintext(part);
      const sealed = cipher.update(part);
      copyBytes(chunk, sealed, at);
      checksum = crc32(sealed, checksum);
      freeMemory(sealed);
    }
    cipher.final();
    const tag = cipher.getAuthTag();
    copyBytes(chunk, tag, endBytes);
    checksum = crc32(tag, checksum);
  }
  return checksum;
}

/** The plaintext of one piece, in fresh memory; undefined when key, position or bytes are not those of the sealing. */
export function openBlock(options: {
  dataKey: Uint8Array;
  position: ChunkPosition;
  chunk: Uint8Array;
  block: number;
  /** What `chunk` has of the sealed chunk; absent: all of it. */
  held?: BlockRange | undefined;
}): Buffer<ArrayBuffer> | undefined {
  const { dataKey, position, chunk, block, held = { fromBlock: 0, toBlock: blockCount(position) } } = options;
  const part = sealedPart(position, held);
  if (chunk.length !== part.sizeBytes || block < held.fromBlock || block >= held.toBlock) return undefined;
  const span = blockSpan(position, block);
  const { sizeBytes } = span;
  const offsetBytes = span.offsetBytes - part.offsetBytes;
  const endBytes = offsetBytes + sizeBytes;
  const key = createSecretKey(dataKey);
  const decipher = createDecipheriv('aes-256-gcm', key, nonceOf(position, block), {
    authTagLength: TAG_BYTES,
  });
  decipher.setAAD(associatedData(position, block));
  decipher.setAuthTag(chunk.subarray(endBytes, endBytes + TAG_BYTES));
  const plaintext = decipher.update(chunk.subarray(offsetBytes, endBytes));
  try {
    decipher.final();
  } catch {
    return undefined;
  }
  // Node's crypto gives memory that is not shared.
  return plaintext as Buffer<ArrayBuffer>;
}

/** Pieces of a sealed chunk that are to be opened one after the other: from `fromBlock` up to before `toBlock`. */
export interface BlocksToOpen extends BlockRange {
  /** 32 bytes. */
  dataKey: Uint8Array;
  position: ChunkPosition;
  /** All of the sealed chunk, or what is `held` of it; its memory is given back. */
  chunk: Uint8Array<ArrayBuffer>;
  held?: BlockRange | undefined;
}

/** The plaintext of the pieces in order, each in fresh memory. Ends before the first one that does not verify. */
export function openBlocks({ fromBlock, toBlock, ...options }: BlocksToOpen): Buffer<ArrayBuffer>[] {
  const opened: Buffer<ArrayBuffer>[] = [];
  for (let block = fromBlock; block < toBlock; block++) {
    const plaintext = openBlock({ ...options, block });
    if (plaintext === undefined) break;
    opened.push(plaintext);
  }
  freeMemory(options.chunk);
  return opened;
}

function nonceOf(position: ChunkPosition, block: number): Uint8Array {
  const nonce = Buffer.alloc(12);
  nonce.writeUInt32BE(position.chunkIndex, 0);
  nonce.writeUInt32BE(block, 4);
  return nonce;
}

/** blob id 16 | chunk 4 | piece 4 | last 1 */
function associatedData(position: ChunkPosition, block: number): Uint8Array {
  const bytes = Buffer.alloc(25);
  bytes.write(position.blobId, 'hex');
  bytes.writeUInt32BE(position.chunkIndex, 16);
  bytes.writeUInt32BE(block, 20);
  bytes[24] = position.isLastChunk && block === blockCount(position) - 1 ? 1 : 0;
  return bytes;
}
