// Bytes that a seed fixes, that never repeat, and of which any stretch can be had by itself: the keystream of AES-256-CTR.
import { createCipheriv, createHash } from 'node:crypto';

const BLOCK_BYTES = 16;
const ZEROS = Buffer.alloc(1024 * 1024);

export interface Stretch {
  offsetBytes: number;
  sizeBytes: number;
}

/** In pieces of 1 MiB, made as they are asked for. */
export function* seededPieces(seed: string, { offsetBytes, sizeBytes }: Stretch): Generator<Buffer> {
  const counter = Buffer.alloc(BLOCK_BYTES);
  counter.writeBigUInt64BE(BigInt(Math.floor(offsetBytes / BLOCK_BYTES)), 8);
  const cipher = createCipheriv('aes-256-ctr', createHash('sha256').update(seed).digest(), counter);
  cipher.update(ZEROS.subarray(0, offsetBytes % BLOCK_BYTES));
  for (let leftBytes = sizeBytes; leftBytes > 0; leftBytes -= ZEROS.length) {
    yield cipher.update(ZEROS.subarray(0, leftBytes));
  }
}

export function seededBytes(seed: string, stretch: Stretch): Buffer {
  return Buffer.concat([...seededPieces(seed, stretch)]);
}
