// The data objects that a version was made of, as compose counts them (service 4.2, compose rule 3): packed, one behind
// the other, as many as a composition may have. Appends add more than that to an object. No composition takes it then, and
// what is kept of them is what the next append goes on with: their number, the digest of their MD5s so far, and what is charged.
import { hash } from 'node:crypto';
import { assert } from '../base/assert.ts';
import { asBuffer, concatBytes, EMPTY_BYTES, toHex } from '../base/bytes/bytes.ts';
import { digestOfMd5, extendMd5, MD5_BEGUN, type Md5State } from '../base/crypto/resumable-md5.ts';
import type { ETag } from './etag.ts';
import { LIMITS } from './limits.ts';

/** One of them; `md5` is hex, of 16 bytes. */
export interface Original {
  sizeBytes: number;
  md5: string;
}

/** Of each: size 6 bytes | MD5 16 bytes. */
export type PackedOriginals = Uint8Array;

/** Of more than LIMITS.composeOriginalsMax. */
export interface ManyOriginals {
  count: number;
  /** Of their MD5s, one behind the other. */
  md5State: Md5State;
  /** `chargedBytesOf` them. */
  chargedBytes: number;
}

export type Originals = PackedOriginals | ManyOriginals;

const SIZE_BYTES = 6;
const MD5_BYTES = 16;
export const ORIGINAL_BYTES = SIZE_BYTES + MD5_BYTES;

/** Of delete markers. */
export const NO_ORIGINALS: Originals = EMPTY_BYTES;

export function packOriginals(...originals: readonly Original[]): PackedOriginals {
  const packed = Buffer.allocUnsafe(ORIGINAL_BYTES * originals.length);
  for (const [index, { sizeBytes, md5 }] of originals.entries()) {
    assert(md5.length === 2 * MD5_BYTES, 'an MD5 is 16 bytes of hex');
    const at = ORIGINAL_BYTES * index;
    packed.writeUIntBE(sizeBytes, at, SIZE_BYTES);
    packed.write(md5, at + SIZE_BYTES, MD5_BYTES, 'hex');
  }
  return packed;
}

/** Each of them; of many nobody knows that any more. */
export function unpackOriginals(originals: Originals): Original[] | undefined {
  if (!isPacked(originals)) return undefined;
  const bytes = asBuffer(originals);
  return Array.from({ length: countOriginals(originals) }, (_, index) => {
    const at = ORIGINAL_BYTES * index;
    const md5 = toHex(bytes.subarray(at + SIZE_BYTES, at + ORIGINAL_BYTES));
    return { sizeBytes: bytes.readUIntBE(at, SIZE_BYTES), md5 };
  });
}

export function isPacked(originals: Originals): originals is PackedOriginals {
  return originals instanceof Uint8Array;
}

/** Of what another process has sent. */
export function areSound(originals: Originals): boolean {
  if (isPacked(originals)) return originals.length % ORIGINAL_BYTES === 0;
  const { count, md5State } = originals;
  return md5State.length === MD5_BEGUN.length + restBytes(count);
}

export function countOriginals(originals: Originals): number {
  return isPacked(originals) ? originals.length / ORIGINAL_BYTES : originals.count;
}

/** Of a state that has digested so many MD5s: what does not fill a block of MD5 yet. */
export function restBytes(count: number): number {
  return (MD5_BYTES * count) % 64;
}

/** Behind the first, which may be many, those of the others, one behind the other. */
export function joinOriginals(first: Originals, ...others: readonly PackedOriginals[]): Originals {
  if (!isPacked(first)) return others.reduce<ManyOriginals>(goOn, first);
  const all = concatBytes(first, ...others);
  if (countOriginals(all) <= LIMITS.composeOriginalsMax) return all;
  return goOn({ count: 0, md5State: MD5_BEGUN, chargedBytes: 0 }, all);
}

/** The sum of their sizes, each of LIMITS.chargedBytesMin at least (extensions 6). */
export function chargedBytesOf(originals: Originals): number {
  if (!isPacked(originals)) return originals.chargedBytes;
  const bytes = asBuffer(originals);
  let sum = 0;
  for (let at = 0; at < bytes.length; at += ORIGINAL_BYTES)
    sum += Math.max(bytes.readUIntBE(at, SIZE_BYTES), LIMITS.chargedBytesMin);
  return sum;
}

function goOn({ count, md5State, chargedBytes }: ManyOriginals, more: PackedOriginals): ManyOriginals {
  return {
    count: count + countOriginals(more),
    md5State: extendMd5(md5State, md5sOf(more)),
    chargedBytes: chargedBytes + chargedBytesOf(more),
  };
}

/** The ETag of what they make: as that of an object of so many parts (etag.ts). */
export function composedETag(originals: Originals): ETag {
  if (isPacked(originals)) return `${hash('md5', md5sOf(originals))}-${countOriginals(originals)}`;
  const { count, md5State } = originals;
  return `${digestOfMd5(md5State, MD5_BYTES * count)}-${count}`;
}

/** One behind the other: digested at once, which takes a fraction of a call for each. */
function md5sOf(packed: PackedOriginals): Uint8Array {
  const count = countOriginals(packed);
  const md5s = Buffer.allocUnsafe(MD5_BYTES * count);
  for (let index = 0; index < count; index++) {
    const at = ORIGINAL_BYTES * index;
    md5s.set(packed.subarray(at + SIZE_BYTES, at + ORIGINAL_BYTES), MD5_BYTES * index);
  }
  return md5s;
}
