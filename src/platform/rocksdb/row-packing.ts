// Rows of a store in one piece of memory, which goes from one thread to another without being copied.
import { must } from '../../base/assert.ts';
import type { KvRow } from '../../ports/kv.ts';

export interface PackedRows {
  /** Keys and values in turn. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Of each key and each value. */
  readonly sizes: Uint32Array<ArrayBuffer>;
  readonly moved: ArrayBuffer[];
}

export function packRows(rows: readonly KvRow[]): PackedRows {
  const sizes = new Uint32Array(2 * rows.length);
  let sizeBytes = 0;
  for (const [at, { key, value }] of rows.entries()) {
    sizes[2 * at] = key.length;
    sizes[2 * at + 1] = value.length;
    sizeBytes += key.length + value.length;
  }
  const bytes = new Uint8Array(sizeBytes);
  let offset = 0;
  for (const { key, value } of rows) {
    bytes.set(key, offset);
    bytes.set(value, offset + key.length);
    offset += key.length + value.length;
  }
  return { bytes, sizes, moved: [bytes.buffer, sizes.buffer] };
}

export function unpackRows({ bytes, sizes }: Pick<PackedRows, 'bytes' | 'sizes'>): KvRow[] {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const rows: KvRow[] = [];
  let offset = 0;
  for (let at = 0; at + 1 < sizes.length; at += 2) {
    const behindKey = offset + must(sizes[at], 'a size');
    const behindValue = behindKey + must(sizes[at + 1], 'a size');
    rows.push({ key: buffer.subarray(offset, behindKey), value: buffer.subarray(behindKey, behindValue) });
    offset = behindValue;
  }
  return rows;
}
