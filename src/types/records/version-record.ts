// The stored form of a version: a fixed head with what listings show, then the rest (version-tail.ts). Listings decode the
// head only, which is what makes a page of 1000 keys cheap.
import { assert } from '../../base/assert.ts';
import { asBuffer } from '../../base/bytes/bytes.ts';
import { CHECKSUM_ALGORITHMS } from '../checksums.ts';
import type { AccountId, VersionId } from '../names.ts';
import { areSound } from '../originals.ts';
import { protectionBytes, readProtection, type VersionProtection, writeProtection } from '../protection.ts';
import type { VersionRecord, VersionSummary } from '../version.ts';
import { decodeFirstTail, firstTailVersionId } from './first-version-tail.ts';
import { decodeTail, encodeTail, isPlainTail, tailVersionId, type VersionTail } from './version-tail.ts';

/** What protects the version stands between head and tail (protection.ts): only what is protected is of this form. */
const PROTECTED_FORMAT = 4;
/** Blobs of pieces, more originals than a composition may have, an access control list: only what has these is of it. */
const FORMAT = 3;
const PLAIN_FORMAT = 2;
/** The same head, and all behind it MessagePack. */
const FIRST_FORMAT = 1;
const FORMATS: readonly (number | undefined)[] = [PROTECTED_FORMAT, FORMAT, PLAIN_FORMAT, FIRST_FORMAT];
// Head: format 1 | flags 1 | checksum 1 | etag parts 2 | owner 6 | order 6 | size 6 | modified 6 | md5 16
const HEAD_BYTES = 45;
const ORDER_AT = 11;
const FLAG_DELETE_MARKER = 1;
const FLAG_COMPOSITE = 2;

export function encodeVersion(record: VersionRecord): Uint8Array {
  const { versionId, originals, kek, sealedHeaders, tags, acl, appendCount, checksum, manifest } = record;
  const { protection, chargedBytes } = record;
  assert(areSound(originals), 'originals are packed, or many');
  const tail: VersionTail = { versionId, originals, manifest };
  if (kek !== undefined) tail.kek = kek;
  if (sealedHeaders !== undefined) tail.sealedHeaders = sealedHeaders;
  if (tags !== undefined) tail.tags = tags;
  if (acl !== undefined) tail.acl = acl;
  if (appendCount !== undefined) tail.appendCount = appendCount;
  if (chargedBytes !== undefined) tail.chargedBytes = chargedBytes;
  if (checksum !== undefined) tail.checksumValue = checksum.value;
  const bytes = encodeTail(tail, tailAt(protection));
  const composite = checksum?.type === 'COMPOSITE' ? FLAG_COMPOSITE : 0;
  bytes[0] = protection !== undefined ? PROTECTED_FORMAT : isPlainTail(tail) ? PLAIN_FORMAT : FORMAT;
  bytes[1] = (record.isDeleteMarker ? FLAG_DELETE_MARKER : 0) | composite;
  bytes[2] = checksum === undefined ? 0 : 1 + CHECKSUM_ALGORITHMS.indexOf(checksum.algorithm);
  const [md5 = '', parts = '0'] = record.etag.split('-');
  assert(record.isDeleteMarker || md5.length === 32, 'an ETag holds 16 bytes of hex');
  bytes.writeUInt16BE(Number(parts), 3);
  bytes.writeUIntBE(Number(record.owner), 5, 6);
  bytes.writeUIntBE(record.order, ORDER_AT, 6);
  bytes.writeUIntBE(record.sizeBytes, 17, 6);
  bytes.writeUIntBE(record.modifiedAtMs, 23, 6);
  bytes.write(md5.padEnd(32, '0'), 29, 16, 'hex');
  if (protection !== undefined) writeProtection(bytes, HEAD_BYTES, protection);
  return bytes;
}

function requireKnownForm(bytes: Uint8Array): void {
  const format = bytes[0];
  assert(FORMATS.includes(format), `version record: unknown format ${format}`);
}

function protectionOf(bytes: Uint8Array): VersionProtection | undefined {
  return bytes[0] === PROTECTED_FORMAT ? readProtection(bytes, HEAD_BYTES) : undefined;
}

/** Where the tail begins. */
function tailAt(protection: VersionProtection | undefined): number {
  return HEAD_BYTES + (protection === undefined ? 0 : protectionBytes(protection));
}

/** Decodes the head: the fields of a listing, and what protects the version. */
export function decodeVersionSummary(bytes: Uint8Array): VersionSummary {
  const buffer = asBuffer(bytes);
  requireKnownForm(buffer);
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
  const protection = protectionOf(bytes);
  if (protection !== undefined) summary.protection = protection;
  return summary;
}

/** What of the head says how old a version is, and how large: for whoever looks at millions of them. */
export type StoredHead = Pick<VersionSummary, 'isDeleteMarker' | 'order' | 'sizeBytes' | 'modifiedAtMs'>;

export function storedHead(bytes: Uint8Array): StoredHead {
  const buffer = asBuffer(bytes);
  requireKnownForm(buffer);
  return {
    isDeleteMarker: ((buffer[1] ?? 0) & FLAG_DELETE_MARKER) !== 0,
    order: buffer.readUIntBE(ORDER_AT, 6),
    sizeBytes: buffer.readUIntBE(17, 6),
    modifiedAtMs: buffer.readUIntBE(23, 6),
  };
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

/** The version's id alone. */
export function storedVersionId(bytes: Uint8Array): VersionId {
  requireKnownForm(bytes);
  return bytes[0] === FIRST_FORMAT
    ? firstTailVersionId(bytes, HEAD_BYTES)
    : tailVersionId(bytes, tailAt(protectionOf(bytes)));
}

/** Whether it has an access control list: of most versions their form says so, and nothing is decoded. */
export function storedHasAcl(bytes: Uint8Array): boolean {
  return bytes[0] !== PLAIN_FORMAT && decodeVersion(bytes).acl !== undefined;
}

export function decodeVersion(bytes: Uint8Array): VersionRecord {
  const { checksum, ...summary } = decodeVersionSummary(bytes);
  const decode = bytes[0] === FIRST_FORMAT ? decodeFirstTail : decodeTail;
  const { checksumValue, ...tail } = decode(bytes, tailAt(summary.protection));
  const record: VersionRecord = { ...summary, ...tail };
  if (checksum !== undefined) record.checksum = { ...checksum, value: checksumValue ?? '' };
  return record;
}
