// An object version: metadata and a manifest. PUT, multipart, copy, compose, append and MOVE all end as one of these
// (design "Data model"). Pure types and arithmetic; the stored form is in records/version-record.ts.
import { assert } from '../base/assert.ts';
import { equalBytes } from '../base/bytes/bytes.ts';
import type { Grant } from './acl.ts';
import type { Checksum } from './checksums.ts';
import type { ETag } from './etag.ts';
import type { AccountId, BlobId, LinkId, VersionId } from './names.ts';
import type { Originals } from './originals.ts';
import type { VersionProtection } from './protection.ts';
import type { Tag } from './tags.ts';

/**
 * An object's key-encryption key, wrapped. It wraps the data keys of the object's blobs and seals its headers.
 * Copies keep the same key, wrapped anew where the wrapping key differs, so a copy's cost does not depend on size.
 */
export interface WrappedKek {
  by: 'master' | 'customer';
  /** Id of the master key; for `customer` a salt and the salted fingerprint of the customer's key, hex. */
  keyId: string;
  /** AES-256-GCM: nonce | ciphertext | tag. */
  wrapped: Uint8Array;
}

/**
 * Whether both are one key, wrapped once. The same key wrapped anew is another one here: a reader that met the old one has
 * to look again.
 */
export function isSameKek(one: WrappedKek | undefined, other: WrappedKek | undefined): boolean {
  if (one === undefined || other === undefined) return false;
  return one.by === other.by && one.keyId === other.keyId && equalBytes(one.wrapped, other.wrapped);
}

/** How the bytes of a blob are laid out; immutable, but that one of pieces grows. */
export interface BlobLayout {
  /** Bytes of plaintext. */
  sizeBytes: number;
  /**
   * `inline`: sealed bytes in the bodies column under the blob id; `chunks`: values on storage nodes; `pieces`: what small
   * appends have put one behind the other, each sealed by itself, in the bodies column, too.
   */
  storage: 'inline' | 'chunks' | 'pieces';
  /** Plaintext bytes per chunk; the last one may be shorter. For the other two the whole is one chunk. */
  chunkSizeBytes: number;
  /** Present exactly for `pieces`. */
  grown?: GrownPieces;
}

/**
 * How far a blob of pieces goes, or had gone when a version came to use it: pieces that came later are not that version's.
 * The last one distinguishes its bytes from those of a history in which another piece came to that place (R23).
 */
export interface GrownPieces {
  pieceCount: number;
  /** The id under which it was sealed. */
  lastPieceId: BlobId;
}

/** A version's (or part's) use of one blob: one link, however many segments (R26). */
export interface BlobUse extends BlobLayout {
  blobId: BlobId;
  linkId: LinkId;
  /**
   * The blob's data key under the object's key-encryption key: nonce | ciphertext | tag. Of `pieces`, each of which has a
   * data key of its own, it is the key that these are wrapped by; empty: the object's itself.
   */
  wrappedDataKey: Uint8Array;
}

/** A run of bytes of one blob. */
export interface Segment {
  /** Index into `uses`. */
  use: number;
  offsetBytes: number;
  sizeBytes: number;
}

/** A part of a multipart object as GET with partNumber sees it. */
export interface PartBoundary {
  partNumber: number;
  sizeBytes: number;
  /** base64, of the upload's algorithm, when it has one. */
  checksum?: string;
}

/** Where the bytes of a version (or part) are, in order. */
export interface ManifestBody {
  uses: BlobUse[];
  segments: Segment[];
}

/** What was appended to an object whose manifest is paged: the bytes behind its pages, with links of their own. */
export interface ManifestTail extends ManifestBody {
  /** Where its first byte lies in the object: behind the last of the pages. */
  startBytes: number;
}

/**
 * `direct` for up to LIMITS.manifestSegmentsInlineMax segments and what was appended since, else a paged, link-counted
 * record of its own; its pages are never written again.
 */
export type Manifest =
  | ({ kind: 'direct'; parts: PartBoundary[] } & ManifestBody)
  | {
      kind: 'paged';
      manifestId: BlobId;
      linkId: LinkId;
      /** 0: its bytes are in no parts, as those of a composition; pages that were parts stay as they are. */
      partCount: number;
      /** Of the pages. */
      segmentCount: number;
      /** First byte and first part index of each page, in order. */
      pages: { startBytes: number; partStart: number }[];
      tail?: ManifestTail;
    };

/** One page of a paged manifest: whole parts, or no part at all. */
export interface ManifestPage extends ManifestBody {
  parts: PartBoundary[];
}

export interface VersionRecord {
  versionId: VersionId;
  /** Per-key sequence given at commit; order of versions is by it alone, never by ids or clocks. */
  order: number;
  isDeleteMarker: boolean;
  sizeBytes: number;
  /** Shard time, ms since epoch. */
  modifiedAtMs: number;
  /** '' for delete markers. */
  etag: ETag;
  owner: AccountId;
  checksum?: Checksum;
  /** Absent where nothing keeps it from being removed; never of a delete marker. */
  protection?: VersionProtection;
  /** Absent for delete markers. */
  kek?: WrappedKek;
  /** Content headers and user metadata (ObjectHeaders as a record), sealed with the kek. */
  sealedHeaders?: Uint8Array;
  /** Absent where there are none. In the clear: rules of buckets look at them. */
  tags?: Tag[];
  /** Its access control list; absent: what `private` means (acl.ts). In the clear: gateways judge by it. */
  acl?: Grant[];
  originals: Originals;
  /** Present where a composition made it, or an append: how many appends went into it (LIMITS.appendCountMax). */
  appendCount?: number;
  /**
   * Of one that was appended to: what it is charged for, each piece of LIMITS.chargedBytesMin at least; also what it was before,
   * where it took its place. Absent: by its originals; of a composition, and of a copy of either, nothing (extensions 6).
   */
  chargedBytes?: number;
  manifest: Manifest;
}

/** What listings show of a version, and what protects it; decoded without touching the rest of the record. */
export type VersionSummary = Pick<
  VersionRecord,
  'order' | 'isDeleteMarker' | 'sizeBytes' | 'modifiedAtMs' | 'etag' | 'owner' | 'protection'
> & {
  checksum?: Pick<Checksum, 'algorithm' | 'type'>;
};

/** The headers that a version keeps: lower-case names of RFC 9110 content headers, and user metadata. */
export interface ObjectHeaders {
  contentType?: string;
  contentEncoding?: string;
  contentDisposition?: string;
  contentLanguage?: string;
  cacheControl?: string;
  expires?: string;
  /** Names without "x-amz-meta-", lower case; clients choose them, so it has no prototype. */
  userMetadata: Record<string, string>;
}

export const EMPTY_MANIFEST: Manifest = { kind: 'direct', uses: [], segments: [], parts: [] };

/** A version's claims on data: one link per use, or the one on its paged manifest and those of what lies behind it (R26). */
export function linksOf(manifest: Manifest): { blobId: BlobId; linkId: LinkId }[] {
  if (manifest.kind === 'direct') return manifest.uses;
  return [{ blobId: manifest.manifestId, linkId: manifest.linkId }, ...(manifest.tail?.uses ?? [])];
}

/** The part of a manifest that its version's own row has: all of it, or what lies behind the pages. */
export function ownBody(manifest: Manifest): ManifestBody | undefined {
  return manifest.kind === 'direct' ? manifest : manifest.tail;
}

/**
 * The blob of pieces that a manifest ends with, where another piece of the object's may come behind its last byte: its
 * pieces are under the object's own key.
 */
export function growingUse(manifest: Manifest): BlobUse | undefined {
  const body = ownBody(manifest);
  const segment = body?.segments.at(-1);
  const use = segment && body?.uses[segment.use];
  if (use === undefined || segment === undefined || use.storage !== 'pieces') return undefined;
  const isEnd = segment.offsetBytes + segment.sizeBytes === use.sizeBytes;
  return isEnd && use.wrappedDataKey.length === 0 ? use : undefined;
}

/** Whether it was made of other objects' data (service 4.2, compose rule 6), or is a copy of what was. */
export function isComposed({ appendCount }: Pick<VersionRecord, 'appendCount'>): boolean {
  return appendCount !== undefined;
}

/**
 * Whether its small pieces may be folded: they came by appends. A composition's are other objects' data, which it was made
 * not to copy: who composes and reads a byte would have the store write all of it again.
 */
export function mayBeCompacted({ appendCount = 0 }: Pick<VersionRecord, 'appendCount'>): boolean {
  return appendCount > 0;
}

/**
 * A link that no other version ever has, so it identifies the data that a version stands for; null when it has none.
 * Appends in its place carry it over, and so does compacting, whatever blob it leads to then (compact-version.ts): a reader
 * of the version's first bytes knows it by this link, however it has grown.
 */
export function dataLinkId(manifest: Manifest): LinkId | null {
  return linksOf(manifest)[0]?.linkId ?? null;
}

/** The layout alone, of what has one. */
export function layoutOf({ sizeBytes, storage, chunkSizeBytes, grown }: BlobLayout): BlobLayout {
  return { sizeBytes, storage, chunkSizeBytes, ...(grown && { grown }) };
}

/** Whether a use sees what is stored, or the beginning of what has grown since. */
export function isLaidWithin(seen: BlobLayout, stored: BlobLayout): boolean {
  if (seen.storage !== stored.storage) return false;
  if (seen.grown === undefined || stored.grown === undefined)
    return seen.sizeBytes === stored.sizeBytes && seen.chunkSizeBytes === stored.chunkSizeBytes;
  return seen.grown.pieceCount === stored.grown.pieceCount
    ? seen.sizeBytes === stored.sizeBytes && seen.grown.lastPieceId === stored.grown.lastPieceId
    : seen.sizeBytes < stored.sizeBytes && seen.grown.pieceCount < stored.grown.pieceCount;
}

/** Of two uses of one blob the one that sees more of it. */
export function widerUse<Use extends BlobLayout>(one: Use, other: Use): Use {
  return other.sizeBytes > one.sizeBytes ? other : one;
}

/** Number of chunks of a blob; an empty blob has none. */
export function chunkCount(layout: BlobLayout): number {
  return Math.ceil(layout.sizeBytes / layout.chunkSizeBytes);
}

/** The segments of a manifest body that cover [offset, offset + size), cut to it. */
export function sliceSegments(
  segments: readonly Segment[],
  range: { offsetBytes: number; sizeBytes: number },
): Segment[] {
  const slices: Segment[] = [];
  const endBytes = range.offsetBytes + range.sizeBytes;
  let positionBytes = 0;
  for (const segment of segments) {
    const from = Math.max(positionBytes, range.offsetBytes);
    const to = Math.min(positionBytes + segment.sizeBytes, endBytes);
    if (from < to) {
      slices.push({
        use: segment.use,
        offsetBytes: segment.offsetBytes + (from - positionBytes),
        sizeBytes: to - from,
      });
    }
    positionBytes += segment.sizeBytes;
  }
  assert(endBytes <= positionBytes, 'slice lies within the segments');
  return slices;
}
