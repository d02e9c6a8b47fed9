// The three CRCs of S3 (AWS "Checking object integrity"): computing them in steps, and combining those of neighbours.
// Values are big-endian bytes, as S3 writes them in base64. Pure and synchronous: used inline and in codec workers.
import { assert, must } from '../assert.ts';
import { crc32, crc32c } from './crc32.ts';

export type CrcAlgorithm = 'CRC32' | 'CRC32C' | 'CRC64NVME';

/** A CRC in the making. */
export interface Crc {
  update(bytes: Uint8Array): void;
  /** The value over everything given so far; may be asked for at any point. */
  digest(): Uint8Array;
}

const MAKERS: Record<CrcAlgorithm, () => Crc> = {
  CRC32: () => makeCrc32(crc32),
  CRC32C: () => makeCrc32(crc32c),
  CRC64NVME: makeCrc64,
};

export function createCrc(algorithm: CrcAlgorithm): Crc {
  return MAKERS[algorithm]();
}

export function crcOf(algorithm: CrcAlgorithm, bytes: Uint8Array): Uint8Array {
  const crc = createCrc(algorithm);
  crc.update(bytes);
  return crc.digest();
}

function makeCrc32(advance: (bytes: Uint8Array, value: number) => number): Crc {
  let value = 0;
  return {
    update: (bytes) => {
      value = advance(bytes, value);
    },
    digest: () => bigEndian(value),
  };
}

function makeCrc64(): Crc {
  const register: Word64 = { high: -1, low: -1 };
  return {
    update: (bytes) => advance64(register, bytes),
    digest: () => bigEndian(~register.high, ~register.low),
  };
}

function bigEndian(...words: number[]): Uint8Array {
  const bytes = Buffer.alloc(4 * words.length);
  for (const [at, word] of words.entries()) bytes.writeInt32BE(word | 0, 4 * at);
  return bytes;
}

// ---- the register of CRC64NVME, eight bytes a step: table k holds the effect of a byte that k more bytes follow ----

assert(new Uint8Array(new Uint32Array([1]).buffer)[0] === 1, 'words are read as little-endian');

const NVME_HIGH = 0x9a6c9329;
const NVME_LOW = 0xac4bc9b5;

/** A 64-bit register as two signed words. */
interface Word64 {
  high: number;
  low: number;
}

const TABLES_64 = makeTables64();

function makeTables64(): { high: Int32Array; low: Int32Array } {
  const high = new Int32Array(8 * 256);
  const low = new Int32Array(8 * 256);
  for (let byte = 0; byte < 256; byte++) {
    const value: Word64 = { high: 0, low: byte };
    for (let bit = 0; bit < 8; bit++) timesX64(value);
    high[byte] = value.high;
    low[byte] = value.low;
  }
  for (let at = 256; at < high.length; at++) {
    const beforeHigh = at32(high, at - 256);
    const beforeLow = at32(low, at - 256);
    high[at] = (beforeHigh >>> 8) ^ at32(high, beforeLow & 255);
    low[at] = ((beforeLow >>> 8) | (beforeHigh << 24)) ^ at32(low, beforeLow & 255);
  }
  return { high, low };
}

function at32(table: Int32Array, index: number): number {
  return table[index] as number;
}

const NO_WORDS = new Int32Array(0);

const STEP_BYTES = 8;

/** The words of as many whole steps as `bytes` has from its first aligned position on. */
function alignedWords(bytes: Uint8Array): { words: Int32Array; headBytes: number } {
  const headBytes = Math.min(bytes.length, -bytes.byteOffset & 3);
  const stepCount = Math.floor((bytes.length - headBytes) / STEP_BYTES);
  // Too short to reach an aligned position: a view there would be refused.
  if (stepCount === 0) return { words: NO_WORDS, headBytes };
  const words = new Int32Array(bytes.buffer, bytes.byteOffset + headBytes, (stepCount * STEP_BYTES) / 4);
  return { words, headBytes };
}

function advance64(register: Word64, bytes: Uint8Array): void {
  const { high, low } = TABLES_64;
  const { words, headBytes } = alignedWords(bytes);
  for (let at = 0; at < headBytes; at++) advanceByte64(register, bytes[at] as number);
  let h = register.high;
  let l = register.low;
  for (let at = 0; at < words.length; at += 2) {
    const w0 = l ^ at32(words, at);
    const w1 = h ^ at32(words, at + 1);
    const i0 = 1792 + (w0 & 255);
    const i1 = 1536 + ((w0 >>> 8) & 255);
    const i2 = 1280 + ((w0 >>> 16) & 255);
    const i3 = 1024 + (w0 >>> 24);
    const i4 = 768 + (w1 & 255);
    const i5 = 512 + ((w1 >>> 8) & 255);
    const i6 = 256 + ((w1 >>> 16) & 255);
    const i7 = w1 >>> 24;
    l = at32(low, i0) ^ at32(low, i1) ^ at32(low, i2) ^ at32(low, i3);
    l ^= at32(low, i4) ^ at32(low, i5) ^ at32(low, i6) ^ at32(low, i7);
    h = at32(high, i0) ^ at32(high, i1) ^ at32(high, i2) ^ at32(high, i3);
    h ^= at32(high, i4) ^ at32(high, i5) ^ at32(high, i6) ^ at32(high, i7);
  }
  register.high = h;
  register.low = l;
  for (let at = headBytes + 4 * words.length; at < bytes.length; at++) {
    advanceByte64(register, bytes[at] as number);
  }
}

function advanceByte64(register: Word64, byte: number): void {
  const index = (register.low ^ byte) & 255;
  register.low = ((register.low >>> 8) | (register.high << 24)) ^ at32(TABLES_64.low, index);
  register.high = (register.high >>> 8) ^ at32(TABLES_64.high, index);
}

// ---- combining: the register of `a` moved on by the size of `b` is a product in GF(2)[x] modulo the polynomial ----
// Bits are reflected: the highest bit is x^0, and a shift to the right multiplies by x.

const REVERSED_32 = { CRC32: 0xedb88320, CRC32C: 0x82f63b78 } as const;
/** x^(8 * 2^k) for sizes up to 2^53 bytes, per algorithm, made when first needed. */
const POWERS_32 = new Map<CrcAlgorithm, number[]>();
const POWERS_64: Word64[] = [];
const POWER_COUNT = 53;

/**
 * The CRC of the bytes of `a` followed by those of `b`, from their CRCs and the size of `b`.
 * Takes and gives big-endian bytes, 4 or 8 of them.
 */
export function crcCombine(
  algorithm: CrcAlgorithm,
  a: Uint8Array,
  b: Uint8Array,
  sizeBytesOfB: number,
): Uint8Array {
  const widthBytes = algorithm === 'CRC64NVME' ? 8 : 4;
  assert(a.length === widthBytes && b.length === widthBytes, `${algorithm} has ${widthBytes} bytes`);
  assert(Number.isSafeInteger(sizeBytesOfB) && sizeBytesOfB >= 0, 'a size is a whole number');
  const moved = algorithm === 'CRC64NVME' ? move64(a, sizeBytesOfB) : move32(algorithm, a, sizeBytesOfB);
  for (let at = 0; at < widthBytes; at++) moved[at] = (moved[at] as number) ^ (b[at] as number);
  return moved;
}

function move32(algorithm: 'CRC32' | 'CRC32C', a: Uint8Array, sizeBytes: number): Uint8Array {
  const polynomial = REVERSED_32[algorithm];
  let powers = POWERS_32.get(algorithm);
  if (powers === undefined) {
    powers = [0x00800000];
    for (let k = 1; k < POWER_COUNT; k++) {
      const root = must(powers[k - 1], 'powers grow one by one');
      powers.push(multiply32(root, root, polynomial));
    }
    POWERS_32.set(algorithm, powers);
  }
  let value = word32(a, 0);
  for (const k of setBits(sizeBytes)) value = multiply32(value, must(powers[k], 'size'), polynomial);
  return bigEndian(value);
}

function multiply32(left: number, right: number, polynomial: number): number {
  let product = 0;
  let factor = right;
  for (let bit = 31; bit >= 0; bit--) {
    if ((left >>> bit) & 1) product ^= factor;
    factor = factor & 1 ? (factor >>> 1) ^ polynomial : factor >>> 1;
  }
  return product;
}

function move64(a: Uint8Array, sizeBytes: number): Uint8Array {
  if (POWERS_64.length === 0) {
    POWERS_64.push({ high: 0x00800000, low: 0 });
    for (let k = 1; k < POWER_COUNT; k++) {
      const root = must(POWERS_64[k - 1], 'powers grow one by one');
      POWERS_64.push(multiply64(root, root));
    }
  }
  let value: Word64 = { high: word32(a, 0), low: word32(a, 4) };
  for (const k of setBits(sizeBytes)) value = multiply64(value, must(POWERS_64[k], 'size'));
  return bigEndian(value.high, value.low);
}

function multiply64(left: Word64, right: Word64): Word64 {
  const product: Word64 = { high: 0, low: 0 };
  const factor: Word64 = { high: right.high, low: right.low };
  for (let bit = 63; bit >= 0; bit--) {
    const word = bit >= 32 ? left.high : left.low;
    if ((word >>> (bit & 31)) & 1) {
      product.high ^= factor.high;
      product.low ^= factor.low;
    }
    timesX64(factor);
  }
  return product;
}

function timesX64(value: Word64): void {
  const carry = value.low & 1;
  value.low = (value.low >>> 1) | (value.high << 31);
  value.high >>>= 1;
  if (carry) {
    value.high ^= NVME_HIGH;
    value.low ^= NVME_LOW;
  }
}

function word32(bytes: Uint8Array, at: number): number {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getInt32(at);
}

/** Positions of the 1 bits of a whole number up to 2^53. */
function* setBits(value: number): Generator<number> {
  let rest = value;
  for (let k = 0; rest > 0; k++) {
    if (rest % 2 === 1) yield k;
    rest = Math.floor(rest / 2);
  }
}
