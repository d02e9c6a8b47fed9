// What a stored version holds behind its head (version-record.ts), field behind field: an object that is appended to has
// hundreds of uses, and is read and written anew by each append. What few versions have is MessagePack at the end.
import { assert } from '../../base/assert.ts';
import { ByteReader, ByteWriter } from '../../base/bytes/byte-cursor.ts';
import { packPlain, unpackPlain } from '../../base/record-codec.ts';
import { grantsBytes, readGrants, writeGrants } from '../acl.ts';
import type { BlobId, LinkId, VersionId } from '../names.ts';
import { countOriginals, isPacked, ORIGINAL_BYTES, type Originals, restBytes } from '../originals.ts';
import {
  type BlobUse,
  type Manifest,
  type ManifestBody,
  ownBody,
  type VersionRecord,
  type WrappedKek,
} from '../version.ts';

export type VersionTail = Pick<
  VersionRecord,
  | 'versionId'
  | 'originals'
  | 'kek'
  | 'sealedHeaders'
  | 'tags'
  | 'acl'
  | 'appendCount'
  | 'chargedBytes'
  | 'manifest'
> & { checksumValue?: string };

/** Of these each is there or not. */
const HAS = {
  kek: 1,
  sealedHeaders: 2,
  checksumValue: 4,
  appendCount: 8,
  rest: 16,
  many: 32,
  acl: 64,
} as const;

interface Rest {
  tags?: VersionRecord['tags'];
  chargedBytes?: number;
  /** Of a `direct` manifest. */
  parts?: Extract<Manifest, { kind: 'direct' }>['parts'];
  paged?: Extract<Manifest, { kind: 'paged' }>;
}

const WRAPPERS: readonly WrappedKek['by'][] = ['master', 'customer'];
const STORAGES: readonly BlobUse['storage'][] = ['inline', 'chunks', 'pieces'];
const ID_BYTES = 16;
/** blob 16 | link 16 | size 6 | storage 1 | chunk size 4 | size of the data key 1 */
const USE_BYTES = 2 * ID_BYTES + 12;
/** Behind a use of pieces: their number 2 | the last one 16 */
const GROWN_BYTES = 2 + ID_BYTES;
/** Of many originals: charged bytes 6 | the words of the MD5; what does not fill a block of it lies behind. */
const MANY_BYTES = 6 + ID_BYTES;
/** use 2 | offset 6 | size 6 */
const SEGMENT_BYTES = 14;
const NO_BODY: ManifestBody = { uses: [], segments: [] };

/**
 * Whether every program that reads this form at all reads this one: no blob of pieces, no more originals than it knew, no
 * access control list.
 */
export function isPlainTail({ originals, acl, manifest }: VersionTail): boolean {
  if (acl !== undefined) return false;
  return isPacked(originals) && !(ownBody(manifest)?.uses ?? []).some(({ grown }) => grown !== undefined);
}

/** `headBytes` are left free in front. */
export function encodeTail(tail: VersionTail, headBytes: number): Buffer {
  const { versionId, originals, kek, sealedHeaders, checksumValue, appendCount, acl, manifest } = tail;
  const body = manifest.kind === 'direct' ? manifest : NO_BODY;
  const rest = restOf(tail);
  let has = 0;
  let sizeBytes = 1 + versionId.length + 1 + 2 + originalsBytes(originals) + bodyBytes(body);
  const count = (field: keyof typeof HAS, fieldBytes: number) => {
    has |= HAS[field];
    sizeBytes += fieldBytes;
  };
  if (!isPacked(originals)) count('many', 0);
  if (kek !== undefined) count('kek', 4 + kek.keyId.length + kek.wrapped.length);
  if (sealedHeaders !== undefined) count('sealedHeaders', 4 + sealedHeaders.length);
  if (checksumValue !== undefined) count('checksumValue', 1 + checksumValue.length);
  if (appendCount !== undefined) count('appendCount', 2);
  if (acl !== undefined) count('acl', grantsBytes(acl));
  if (rest !== undefined) count('rest', 4 + rest.length);
  const buffer = Buffer.allocUnsafe(headBytes + sizeBytes);
  const writer = new ByteWriter(buffer, headBytes);
  writeAscii(writer, versionId);
  writer.uint(has, 1);
  writeOriginals(writer, originals);
  writeBody(writer, body);
  if (kek !== undefined) writeKek(writer, kek);
  if (sealedHeaders !== undefined) writeLong(writer, sealedHeaders);
  if (checksumValue !== undefined) writeAscii(writer, checksumValue);
  if (appendCount !== undefined) writer.uint(appendCount, 2);
  if (acl !== undefined) writeGrants(writer, acl);
  if (rest !== undefined) writeLong(writer, rest);
  writer.end();
  return buffer;
}

/** Of the bytes from `at` on. */
export function decodeTail(bytes: Uint8Array, at: number): VersionTail {
  const reader = new ByteReader(bytes, at);
  const versionId = readAscii(reader) as VersionId;
  const has = reader.uint(1);
  const originals = readOriginals(reader, (has & HAS.many) !== 0);
  const body = readBody(reader);
  const tail: VersionTail = { versionId, originals, manifest: { kind: 'direct', ...body, parts: [] } };
  if (has & HAS.kek) tail.kek = readKek(reader);
  if (has & HAS.sealedHeaders) tail.sealedHeaders = readLong(reader);
  if (has & HAS.checksumValue) tail.checksumValue = readAscii(reader);
  if (has & HAS.appendCount) tail.appendCount = reader.uint(2);
  if (has & HAS.acl) tail.acl = readGrants(reader);
  if (has & HAS.rest) {
    const { tags, chargedBytes, parts, paged } = unpackPlain(readLong(reader)) as Rest;
    if (tags !== undefined) tail.tags = tags;
    if (chargedBytes !== undefined) tail.chargedBytes = chargedBytes;
    if (parts !== undefined) tail.manifest = { kind: 'direct', ...body, parts };
    if (paged !== undefined) tail.manifest = paged;
  }
  reader.end();
  return tail;
}

/** The id alone: it comes first. */
export function tailVersionId(bytes: Uint8Array, at: number): VersionId {
  return readAscii(new ByteReader(bytes, at)) as VersionId;
}

function restOf({ tags, chargedBytes, manifest }: VersionTail): Uint8Array | undefined {
  const parts = manifest.kind === 'direct' && manifest.parts.length > 0 ? manifest.parts : undefined;
  const paged = manifest.kind === 'paged' ? manifest : undefined;
  const isEmpty = [tags, chargedBytes, parts, paged].every((field) => field === undefined);
  if (isEmpty) return undefined;
  const rest: Rest = {
    ...(tags && { tags }),
    ...(chargedBytes !== undefined && { chargedBytes }),
    ...(parts && { parts }),
    ...(paged && { paged }),
  };
  return packPlain(rest);
}

// ---- the body of a manifest ----

function bodyBytes({ uses, segments }: ManifestBody): number {
  let sizeBytes = 4 + segments.length * SEGMENT_BYTES + uses.length * USE_BYTES;
  for (const { wrappedDataKey, grown } of uses)
    sizeBytes += wrappedDataKey.length + (grown === undefined ? 0 : GROWN_BYTES);
  return sizeBytes;
}

function writeBody(writer: ByteWriter, { uses, segments }: ManifestBody): void {
  writer.uint(uses.length, 2);
  for (const { blobId, linkId, sizeBytes, storage, chunkSizeBytes, wrappedDataKey, grown } of uses) {
    assert((grown !== undefined) === (storage === 'pieces'), 'only pieces grow');
    writer.hex(blobId, ID_BYTES);
    writer.hex(linkId, ID_BYTES);
    writer.uint(sizeBytes, 6);
    writer.uint(STORAGES.indexOf(storage), 1);
    writer.uint(chunkSizeBytes, 4);
    writer.uint(wrappedDataKey.length, 1);
    writer.bytes(wrappedDataKey);
    if (grown === undefined) continue;
    writer.uint(grown.pieceCount, 2);
    writer.hex(grown.lastPieceId, ID_BYTES);
  }
  writer.uint(segments.length, 2);
  for (const { use, offsetBytes, sizeBytes } of segments) {
    writer.uint(use, 2);
    writer.uint(offsetBytes, 6);
    writer.uint(sizeBytes, 6);
  }
}

function readBody(reader: ByteReader): ManifestBody {
  const body: ManifestBody = { uses: [], segments: [] };
  for (let left = reader.uint(2); left > 0; left--) {
    const use: BlobUse = {
      blobId: reader.hex(ID_BYTES) as BlobId,
      linkId: reader.hex(ID_BYTES) as LinkId,
      sizeBytes: reader.uint(6),
      storage: oneOf(STORAGES, reader.uint(1)),
      chunkSizeBytes: reader.uint(4),
      wrappedDataKey: reader.bytes(reader.uint(1)),
    };
    if (use.storage === 'pieces')
      use.grown = { pieceCount: reader.uint(2), lastPieceId: reader.hex(ID_BYTES) as BlobId };
    body.uses.push(use);
  }
  for (let left = reader.uint(2); left > 0; left--)
    body.segments.push({ use: reader.uint(2), offsetBytes: reader.uint(6), sizeBytes: reader.uint(6) });
  return body;
}

// ---- other fields ----

function originalsBytes(originals: Originals): number {
  return isPacked(originals) ? originals.length : MANY_BYTES + restBytes(originals.count);
}

function writeOriginals(writer: ByteWriter, originals: Originals): void {
  writer.uint(countOriginals(originals), 2);
  if (isPacked(originals)) {
    writer.bytes(originals);
    return;
  }
  writer.uint(originals.chargedBytes, 6);
  writer.bytes(originals.md5State);
}

function readOriginals(reader: ByteReader, areMany: boolean): Originals {
  const count = reader.uint(2);
  if (!areMany) return reader.bytes(count * ORIGINAL_BYTES);
  const chargedBytes = reader.uint(6);
  return { count, chargedBytes, md5State: reader.bytes(MANY_BYTES - 6 + restBytes(count)) };
}

function writeKek(writer: ByteWriter, { by, keyId, wrapped }: WrappedKek): void {
  writer.uint(WRAPPERS.indexOf(by), 1);
  writeAscii(writer, keyId);
  writer.uint(wrapped.length, 2);
  writer.bytes(wrapped);
}

function readKek(reader: ByteReader): WrappedKek {
  const by = oneOf(WRAPPERS, reader.uint(1));
  const keyId = readAscii(reader);
  return { by, keyId, wrapped: reader.bytes(reader.uint(2)) };
}

/** Of up to 255 characters. */
function writeAscii(writer: ByteWriter, text: string): void {
  writer.uint(text.length, 1);
  writer.ascii(text);
}

function readAscii(reader: ByteReader): string {
  return reader.ascii(reader.uint(1));
}

function writeLong(writer: ByteWriter, bytes: Uint8Array): void {
  writer.uint(bytes.length, 4);
  writer.bytes(bytes);
}

function readLong(reader: ByteReader): Buffer {
  return reader.bytes(reader.uint(4));
}

function oneOf<T>(values: readonly T[], index: number): T {
  const value = values[index];
  assert(value !== undefined, 'a stored choice is one of those that are known');
  return value;
}
