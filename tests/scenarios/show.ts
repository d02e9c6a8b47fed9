// Values as scenarios write and print them: JSON, with bytes as {"hex": ...} or {"utf8": ...}.
import { createHash } from 'node:crypto';
import { asBuffer } from '../../src/base/bytes/bytes.ts';
import { unpackPlain } from '../../src/base/record-codec.ts';

const LINE_WIDTH = 110;
const SHOWN_BYTES_MAX = 64;

/** JSON in which an object with the single field `hex` or `utf8` stands for bytes. */
export function parseValue(json: string): unknown {
  return JSON.parse(json, (_key, value) => {
    if (value === null || typeof value !== 'object' || Object.keys(value).length !== 1) return value;
    if (typeof value.hex === 'string') return Uint8Array.from(Buffer.from(value.hex, 'hex'));
    if (typeof value.utf8 === 'string') return Uint8Array.from(Buffer.from(value.utf8));
    return value;
  });
}

/** One line when it fits, else indented. */
export function showValue(value: unknown): string {
  const plain = toShown(value);
  const line = JSON.stringify(plain) ?? 'undefined';
  return line.length <= LINE_WIDTH ? line : JSON.stringify(plain, null, 2);
}

function toShown(value: unknown): unknown {
  if (value instanceof Uint8Array) return showBytes(value);
  if (Array.isArray(value)) return value.map(toShown);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, toShown(field)]));
}

function showBytes(bytes: Uint8Array): object {
  const buffer = asBuffer(bytes);
  if (bytes.length > SHOWN_BYTES_MAX) {
    const digest = createHash('sha256').update(bytes).digest('hex');
    return { sizeBytes: bytes.length, sha256: digest.slice(0, 16) };
  }
  const isText = bytes.length > 0 && bytes.every((byte) => byte >= 0x20 && byte < 0x7f);
  return isText ? { utf8: buffer.toString('latin1') } : { hex: buffer.toString('hex') };
}

/** Keys: printable ASCII as it is, other bytes as \xNN. */
export function showKey(key: Uint8Array): string {
  let text = '';
  for (const byte of key) {
    const isPlain = byte > 0x20 && byte < 0x7f && byte !== 0x5c;
    text += isPlain ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, '0')}`;
  }
  return text;
}

/** A stored row: a record of version 1 (base/record-codec.ts) if it is one, else its bytes. */
export function showStored(value: Uint8Array): unknown {
  if (value.length > 1 && value[0] === 1) {
    try {
      const record = unpackPlain(value.subarray(1));
      if (record !== null && typeof record === 'object') return record;
    } catch {
      // Not a record: shown as bytes.
    }
  }
  return value;
}
