// The stored form of a version: a fixed head with what listings show, then the rest as MessagePack. Listings decode
// the head only, which is what makes a page of 1000 keys cheap.
import { assert } from '../../lib/assert.ts';
import { asBuffer } from '../../lib/bytes.ts';
import { packPlain, unpackPlain } from '../../lib/record-codec.ts';
import { CHECKSUM_ALGORITHMS } from '../checksums.ts';
import type { AccountId, VersionId } from '../names.ts';
import { arePacked, type Original, packOriginals } from '../originals.ts';
import type { VersionRecord, VersionSummary } from '../version.ts';

const FORMAT = 1;
// Head: format 1 | flags 1 | checksum 1 | etag parts 2 | owner 6 | order 6 | size 6 | modified 6 | md5 16
const HEAD_BYTES = 45;
const ORDER_AT = 11;
const FLAG_DELETE_MARKER = 1;
const FLAG_COMPOSITE = 2;

// MessagePack, as the tail begins: a map, and the name of its first field.
const MAP_16 = 0xde;
const ID_NAME = Buffer.from('\xa9versionId', 'latin1');
const STRING_MIN = 0xa0;
const STRING_MAX = 0xbf;
const STRING_8 = 0xd9;

type Tail = Pick<
  VersionRecord,
  'versionId' | 'kek' | 'sealedHeaders' | 'tags' | 'appendCount' | 'manifest'
> & {
  checksumValue?: string;
  packedOriginals?: Uint8Array;
  /** Of records written before, where there is one: instead of `packedOriginals`. */
  originals?: Original[];
};

export function encodeVersion(record: VersionRecord): Uint8Array {
  const { versionId, originals, manifest } = record;
  assert(arePacked(originals), 'originals are packed');
  const tail: Tail = { versionId, packedOriginals: originals, manifest };
  if (record.appendCount !== undefined) tail.appendCount = record.appendCount;
  if (record.kek !== undefined) tail.kek = record.kek;
  if (record.sealedHeaders !== undefined) tail.sealedHeaders = record.sealedHeaders;
  if (record.tags !== undefined) tail.tags = record.tags;
  if (record.checksum !== undefined) tail.checksumValue = record.checksum.value;
  const packed = packPlain(tail);
  const bytes = Buffer.allocUnsafe(HEAD_BYTES + packed.length);
  const composite = record.checksum?.type === 'COMPOSITE' ? FLAG_COMPOSITE : 0;
  bytes[0] = FORMAT;
  bytes[1] = (record.isDeleteMarker ? FLAG_DELETE_MARKER : 0) | composite;
  bytes[2] = record.checksum === undefined ? 0 : 1 + CHECKSUM_ALGORITHMS.indexOf(record.checksum.algorithm);
  const [md5 = '', parts = '0'] = record.etag.split('-');
  assert(record.isDeleteMarker || md5.length === 32, 'an ETag holds 16 bytes of hex');
  bytes.writeUInt16BE(Number(parts), 3);
  bytes.writeUIntBE(Number(record.owner), 5, 6);
  bytes.writeUIntBE(record.order, ORDER_AT, 6);
  bytes.writeUIntBE(record.sizeBytes, 17, 6);
  bytes.writeUIntBE(record.modifiedAtMs, 23, 6);
  bytes.write(md5.padEnd(32, '0'), 29, 16, 'hex');
  bytes.set(packed, HEAD_BYTES);
  return bytes;
}

/** Decodes the head: the fields of a listing. */
export function decodeVersionSummary(bytes: Uint8Array): VersionSummary {
  const buffer = asBuffer(bytes);
  assert(buffer[0] === FORMAT, `version record: unknown format ${buffer[0]}`);
  const flags = buffer[1] ?? 0;
  const isDeleteMarker = (flags & FLAG_DELETE_MARKER) !== 0;
  const etagParts = buffer.readUInt16BE(3);
  const md5 = buffer.toString('hex', 29, 45);
  const summary: VersionSummary = {
    isDeleteMarker,
    owner: String(buffer.readUIntBE(5, 6)).padStart(12, '0') as AccountId,
    order: versionOrder(buffer),
    sizeBytes: buffer.readUIntBE(17, 6),
    modifiedAtMs: buffer.readUIntBE(23, 6),
    etag: isDeleteMarker ? '' : etagParts === 0 ? md5 : `${md5}-${etagParts}`,
  };
  const algorithm = CHECKSUM_ALGORITHMS[(buffer[2] ?? 0) - 1];
  if (algorithm !== undefined) {
    summary.checksum = { algorithm, type: (flags & FLAG_COMPOSITE) !== 0 ? 'COMPOSITE' : 'FULL_OBJECT' };
  }
  return summary;
}

/** The order alone. */
export function versionOrder(bytes: Uint8Array): number {
  return asBuffer(bytes).readUIntBE(ORDER_AT, 6);
}

/** The same version at another place of its key's, or of another key's: nothing else is decoded. */
export function withOrder(bytes: Uint8Array, order: number): Uint8Array {
  const moved = Buffer.from(bytes);
  moved.writeUIntBE(order, ORDER_AT, 6);
  return moved;
}

/** The version's id alone: it is the first of the tail. */
export function storedVersionId(bytes: Uint8Array): VersionId {
  const buffer = asBuffer(bytes);
  const mapBytes = buffer[HEAD_BYTES] === MAP_16 ? 3 : 1;
  const at = HEAD_BYTES + mapBytes + ID_NAME.length;
  const sizeByte = buffer[at] ?? 0;
  const isFirst = ID_NAME.equals(buffer.subarray(HEAD_BYTES + mapBytes, at));
  if (!isFirst) return decodeVersion(bytes).versionId;
  if (sizeByte >= STRING_MIN && sizeByte <= STRING_MAX) return textAt(at + 1, sizeByte - STRING_MIN);
  return sizeByte === STRING_8 ? textAt(at + 2, buffer[at + 1] ?? 0) : decodeVersion(bytes).versionId;

  function textAt(from: number, sizeBytes: number): VersionId {
    return buffer.toString('latin1', from, from + sizeBytes) as VersionId;
  }
}

export function decodeVersion(bytes: Uint8Array): VersionRecord {
  const { checksum, ...summary } = decodeVersionSummary(bytes);
  const { checksumValue, packedOriginals, originals, ...tail } = unpackPlain(
    bytes.subarray(HEAD_BYTES),
  ) as Tail;
  const packed = packedOriginals ?? packOriginals(...(originals ?? []));
  const record: VersionRecord = { ...summary, ...tail, originals: packed };
  if (checksum !== undefined) record.checksum = { ...checksum, value: checksumValue ?? '' };
  return record;
}
