// Entries as bytes: what lies in a replica's log, and what travels to others (protocol 1.2). One format for both, so a
// primary encodes an entry once. It knows rows as the store does, with their prefix.
import { assert, BrokenInvariant } from '../../base/assert.ts';
import { asBuffer } from '../../base/bytes/bytes.ts';
import { crc32 } from '../../base/crypto/crc32.ts';
import type { KvPut } from '../../ports/kv.ts';
import type { Applied } from './entry-rows.ts';

/** One change of a shard's state: absolute puts and deletes, numbered without gaps. */
export interface Entry extends Applied {
  readonly rows: readonly KvPut[];
}

// version 1 | seq 6 | epoch 6 | time 6 | row count 4 | rows | crc32 of all before it 4
const FORMAT = 1;
const HEAD_BYTES = 23;
const CRC_BYTES = 4;
// column 1 | key length 2 | value length 4, all ones: a delete | key | value
const ROW_HEAD_BYTES = 7;
const DELETED = 0xffffffff;
const COLUMNS = ['rows', 'bodies'] as const;

export function encodeEntry({ seq, epoch, timeMs, rows }: Entry): Uint8Array {
  let sizeBytes = HEAD_BYTES + CRC_BYTES;
  for (const { key, value } of rows) sizeBytes += ROW_HEAD_BYTES + key.length + (value?.length ?? 0);
  const bytes = Buffer.allocUnsafeSlow(sizeBytes);
  bytes[0] = FORMAT;
  bytes.writeUIntBE(seq, 1, 6);
  bytes.writeUIntBE(epoch, 7, 6);
  bytes.writeUIntBE(timeMs, 13, 6);
  bytes.writeUInt32BE(rows.length, 19);
  let at = HEAD_BYTES;
  for (const { column, key, value } of rows) {
    bytes[at] = COLUMNS.indexOf(column as (typeof COLUMNS)[number]);
    bytes.writeUInt16BE(key.length, at + 1);
    bytes.writeUInt32BE(value === null ? DELETED : value.length, at + 3);
    bytes.set(key, at + ROW_HEAD_BYTES);
    at += ROW_HEAD_BYTES + key.length;
    if (value === null) continue;
    bytes.set(value, at);
    at += value.length;
  }
  bytes.writeUInt32BE(crc32(bytes.subarray(0, at)), at);
  return bytes;
}

/** Where an entry stands, without looking at its rows or its checksum. */
export function readEntryHead(bytes: Uint8Array): Applied {
  const buffer = asBuffer(bytes);
  if (buffer[0] !== FORMAT || buffer.length < HEAD_BYTES + CRC_BYTES)
    throw new BrokenInvariant('entry: an unknown format');
  return { seq: buffer.readUIntBE(1, 6), epoch: buffer.readUIntBE(7, 6), timeMs: buffer.readUIntBE(13, 6) };
}

export function isEntrySound(bytes: Uint8Array): boolean {
  if (bytes.length < HEAD_BYTES + CRC_BYTES || bytes[0] !== FORMAT) return false;
  const end = bytes.length - CRC_BYTES;
  return crc32(bytes.subarray(0, end)) === asBuffer(bytes).readUInt32BE(end);
}

/** Of sound bytes; rows are views of them. */
export function decodeEntry(bytes: Uint8Array): Entry {
  const buffer = asBuffer(bytes);
  const head = readEntryHead(bytes);
  const count = buffer.readUInt32BE(19);
  const rows: KvPut[] = [];
  let at = HEAD_BYTES;
  for (let i = 0; i < count; i++) {
    const column = COLUMNS[buffer[at] ?? 0xff];
    assert(column !== undefined, 'entry: a known column');
    const keyBytes = buffer.readUInt16BE(at + 1);
    const valueBytes = buffer.readUInt32BE(at + 3);
    at += ROW_HEAD_BYTES;
    const key = buffer.subarray(at, at + keyBytes);
    at += keyBytes;
    if (valueBytes === DELETED) rows.push({ column, key, value: null });
    else {
      rows.push({ column, key, value: buffer.subarray(at, at + valueBytes) });
      at += valueBytes;
    }
  }
  assert(at === bytes.length - CRC_BYTES, 'entry: all of it is rows');
  return { ...head, rows };
}
