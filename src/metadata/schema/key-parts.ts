// How numbers and texts lie in keys, so that keys order as they do: what keyspace.ts is built from.
import { assert } from '../../base/assert.ts';
import { asBuffer, concatBytes, fromHex, utf8 } from '../../base/bytes/bytes.ts';
import { LIMITS } from '../../types/limits.ts';
import type { ObjectKey } from '../../types/names.ts';

/** Text that clients choose, as a key. What is too long to be stored becomes a key that nothing has (no UTF-8). */
export function textKey(text: string): Uint8Array {
  const bytes = utf8(text);
  return bytes.length <= LIMITS.keyBytesMax ? bytes : Uint8Array.of(0xff);
}

/** Numbers of parts and pages. */
export function u16(value: number): Uint8Array {
  const bytes = Buffer.allocUnsafe(2);
  bytes.writeUInt16BE(value);
  return bytes;
}

export function readU16(bytes: Uint8Array, at: number): number {
  return asBuffer(bytes).readUInt16BE(at);
}

/** Times, orders and account ids: whole numbers below 2^48. */
export function u48(value: number): Uint8Array {
  const bytes = Buffer.allocUnsafe(6);
  bytes.writeUIntBE(value, 0, 6);
  return bytes;
}

export function readU48(bytes: Uint8Array, at = 0): number {
  return asBuffer(bytes).readUIntBE(at, 6);
}

export const ORDER_MAX = 2 ** 48 - 1;

/** Later than every time: shard time needs 41 bits until the year 2039, and 48 for ever. */
export const END_OF_TIME_MS = ORDER_MAX;

/** Newest first. */
export function invertedOrder(order: number): Uint8Array {
  return u48(ORDER_MAX - order);
}

/** The bucket of the last key that was made: what looks at many keys looks at those of one. */
let lastBucket: { id: string; bytes: Uint8Array } = { id: '', bytes: new Uint8Array(0) };

/** region | bucket | key, in one go: it is made for every key that is looked at. */
export function plainKey(region: number, bucketId: string, key: string): Uint8Array {
  if (lastBucket.id !== bucketId) lastBucket = { id: bucketId, bytes: fromHex(bucketId) };
  const bytes = Buffer.allocUnsafe(9 + Buffer.byteLength(key));
  bytes[0] = region;
  bytes.set(lastBucket.bytes, 1);
  bytes.write(key, 9);
  return bytes;
}

/** A key's or prefix's bytes with 0x00 escaped, without the end mark. */
export function escapeBytes(bytes: Uint8Array): Uint8Array {
  let zeroCount = 0;
  for (const byte of bytes) if (byte === 0) zeroCount++;
  if (zeroCount === 0) return bytes;
  const escaped = new Uint8Array(bytes.length + zeroCount);
  let at = 0;
  for (const byte of bytes) {
    escaped[at++] = byte;
    if (byte === 0) escaped[at++] = 0xff;
  }
  return escaped;
}

/** Ends an escaped key. */
export const END_MARK = Uint8Array.of(0, 1);

export function escapedKey(key: string): Uint8Array {
  return concatBytes(escapeBytes(utf8(key)), END_MARK);
}

/** The key that begins at `from`, escaped, and where what follows it begins. */
export function unescapeKey(bytes: Uint8Array, from: number): { key: ObjectKey; end: number } {
  const unescaped = Buffer.allocUnsafe(bytes.length - from);
  let size = 0;
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0;
    if (byte === 0) {
      if (bytes[at + 1] === 1) return { key: unescaped.toString('utf8', 0, size) as ObjectKey, end: at + 2 };
      at++;
    }
    unescaped[size++] = byte;
  }
  assert(false, 'an escaped key ends with its mark');
}
