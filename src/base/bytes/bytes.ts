// Byte helpers shared by key building and codecs. No I/O, no record formats (those are in model/records).

const utf8Encoder = new TextEncoder();
// `ignoreBOM` keeps a byte order mark: it may be the first character of a key.
const utf8Decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export const EMPTY_BYTES = new Uint8Array(0);

export function utf8(text: string): Uint8Array {
  return utf8Encoder.encode(text);
}

/** Decodes UTF-8 strictly: throws a TypeError on malformed input. */
export function fromUtf8(bytes: Uint8Array): string {
  return utf8Decoder.decode(bytes);
}

export function concatBytes(...parts: readonly Uint8Array[]): Uint8Array {
  let sizeBytes = 0;
  for (const part of parts) sizeBytes += part.length;
  const whole = new Uint8Array(sizeBytes);
  let offset = 0;
  for (const part of parts) {
    whole.set(part, offset);
    offset += part.length;
  }
  return whole;
}

/**
 * Copies `bytes` to `offset` of `into`, as `set` does. Into memory that threads share `set` goes word by word, or byte by byte where the
 * two do not lie alike: 0.28 ms a MiB in place of 0.03. Node's `fill` copies such memory as any other. The two must not overlap.
 */
export function copyBytes(into: Uint8Array, bytes: Uint8Array, offset = 0): void {
  const isShared = !(into.buffer instanceof ArrayBuffer);
  if (!isShared || bytes.length === 0) into.set(bytes, offset);
  else Buffer.prototype.fill.call(into, bytes, offset, offset + bytes.length);
}

/** Lexicographic order of unsigned bytes: the order of RocksDB and of S3 keys. */
export function compareBytes(a: Uint8Array, b: Uint8Array): number {
  return Buffer.compare(a, b);
}

export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}

/** The same bytes for keeping, in memory of their own: what they are cut out of, an answer with others beside it, may be much larger. */
export function ownBytes(bytes: Uint8Array): Uint8Array {
  return bytes.length === bytes.buffer.byteLength ? bytes : Uint8Array.from(bytes);
}

export function startsWithBytes(bytes: Uint8Array, prefix: Uint8Array): boolean {
  return bytes.length >= prefix.length && Buffer.compare(bytes.subarray(0, prefix.length), prefix) === 0;
}

/**
 * The smallest byte string greater than every string that begins with `prefix`; undefined when there is none
 * (the prefix is empty or all 0xff).
 */
export function afterPrefix(prefix: Uint8Array): Uint8Array | undefined {
  let end = prefix.length;
  while (end > 0 && prefix[end - 1] === 0xff) end--;
  if (end === 0) return undefined;
  // A copy: `slice` of a Buffer would share its memory.
  const bound = Uint8Array.from(prefix.subarray(0, end));
  bound[end - 1] = (bound[end - 1] ?? 0) + 1;
  return bound;
}

export function toHex(bytes: Uint8Array): string {
  return asBuffer(bytes).toString('hex');
}

export function fromHex(hex: string): Uint8Array {
  return Buffer.from(hex, 'hex');
}

export function toBase64(bytes: Uint8Array): string {
  return asBuffer(bytes).toString('base64');
}

export function fromBase64(text: string): Uint8Array {
  return Buffer.from(text, 'base64');
}

/** A Buffer over the same memory: no copy. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Bytes as a string of code units 0-255: a cheap, exact key for maps. */
export function latin1Key(bytes: Uint8Array): string {
  return asBuffer(bytes).toString('latin1');
}
