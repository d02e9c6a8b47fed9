// The data objects that a version was made of, as compose counts them (service.txt 4.2, compose rule 3). Packed, one behind
// the other: an object that is appended to has up to a thousand, and most who hold them only pass them on.
import { hash } from 'node:crypto';
import { assert } from '../lib/assert.ts';
import { asBuffer, concatBytes, EMPTY_BYTES, equalBytes, toHex } from '../lib/bytes.ts';
import type { ETag } from './etag.ts';

/** One of them; `md5` is hex, of 16 bytes. */
export interface Original {
  sizeBytes: number;
  md5: string;
}

/** Of each: size 6 bytes | MD5 16 bytes. */
export type Originals = Uint8Array;

const SIZE_BYTES = 6;
const MD5_BYTES = 16;
export const ORIGINAL_BYTES = SIZE_BYTES + MD5_BYTES;

/** Of delete markers. */
export const NO_ORIGINALS: Originals = EMPTY_BYTES;

export function packOriginals(...originals: readonly Original[]): Originals {
  const packed = Buffer.allocUnsafe(ORIGINAL_BYTES * originals.length);
  for (const [index, { sizeBytes, md5 }] of originals.entries()) {
    assert(md5.length === 2 * MD5_BYTES, 'an MD5 is 16 bytes of hex');
    const at = ORIGINAL_BYTES * index;
    packed.writeUIntBE(sizeBytes, at, SIZE_BYTES);
    packed.write(md5, at + SIZE_BYTES, MD5_BYTES, 'hex');
  }
  return packed;
}

export function unpackOriginals(packed: Originals): Original[] {
  const bytes = asBuffer(packed);
  return Array.from({ length: countOriginals(packed) }, (_, index) => {
    const at = ORIGINAL_BYTES * index;
    const md5 = toHex(bytes.subarray(at + SIZE_BYTES, at + ORIGINAL_BYTES));
    return { sizeBytes: bytes.readUIntBE(at, SIZE_BYTES), md5 };
  });
}

/** Of what another process has sent. */
export function arePacked(originals: Originals): boolean {
  return originals instanceof Uint8Array && originals.length % ORIGINAL_BYTES === 0;
}

export function countOriginals(packed: Originals): number {
  return packed.length / ORIGINAL_BYTES;
}

export function joinOriginals(...of: readonly Originals[]): Originals {
  return concatBytes(...of);
}

/** Whether the others begin with these. */
export function areFirstOf(first: Originals, all: Originals): boolean {
  return equalBytes(first, all.subarray(0, first.length));
}

/** The ETag of what they make: as that of an object of so many parts (etag.ts). */
export function composedETag(packed: Originals): ETag {
  const count = countOriginals(packed);
  // Digested at once: a call for each of a thousand takes several times as long as the digest.
  const md5s = Buffer.allocUnsafe(MD5_BYTES * count);
  for (let index = 0; index < count; index++) {
    const at = ORIGINAL_BYTES * index;
    md5s.set(packed.subarray(at + SIZE_BYTES, at + ORIGINAL_BYTES), MD5_BYTES * index);
  }
  return `${hash('md5', md5s)}-${count}`;
}
