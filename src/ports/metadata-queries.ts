// The queries of the metadata shards and their results, as plain data: they read committed state and change nothing.
// How they are asked is in metadata.ts. Those of a full comparison are in metadata-checks.ts.

import type { ConfigsOfBucket } from '../types/bucket-config.ts';
import type {
  AccountId,
  BlobId,
  BucketId,
  BucketName,
  LinkId,
  ObjectKey,
  OutboxId,
  UploadId,
  VersionId,
} from '../types/names.ts';
import type {
  AccessKeyRecord,
  AccountRecord,
  BlobRecord,
  BucketRecord,
  HistoryRecord,
  NameRecord,
  OutboxRecord,
  PartRecord,
  UploadRecord,
} from '../types/records/rows.ts';
import type {
  ManifestBody,
  ManifestPage,
  VersionRecord,
  VersionSummary,
  WrappedKek,
} from '../types/version.ts';
import type { PendingClaim } from './claim-calls.ts';
import type { DebtQueries } from './debt-calls.ts';
import type { EventQueries } from './event-calls.ts';
import type { ExtensionQueries } from './extension-calls.ts';
import type { IdentityChange, IdentityPosition } from './identity-feed.ts';
import type { CheckQueries } from './metadata-checks.ts';
import type { EndedLink, HeldClaim } from './metadata-commands.ts';
import type { ScanQueries } from './scan-calls.ts';

export type GetVersionResult =
  | FoundVersion
  /** The current version, or the one asked for, is a delete marker. */
  | { kind: 'delete-marker'; versionId: VersionId; modifiedAtMs: number; isLatest: boolean }
  | { kind: 'no-such-key' }
  | { kind: 'no-such-version' };

export interface ListObjectsQuery {
  bucketId: BucketId;
  prefix: string;
  delimiter?: string;
  /** Exclusive: keys (and whole common prefixes) at or before it are skipped. */
  after?: string;
  /** Up to LIMITS.listPageMax; 0 gives an empty, untruncated page. */
  max: number;
}

export interface ListedObject {
  key: ObjectKey;
  summary: VersionSummary;
}

export interface ListObjectsPage {
  objects: ListedObject[];
  commonPrefixes: string[];
  isTruncated: boolean;
  /** The last key or common prefix of the page: `after` of the next. Present when truncated. */
  nextAfter?: string;
}

export interface ListVersionsQuery {
  bucketId: BucketId;
  prefix: string;
  delimiter?: string;
  /** Exclusive: a key with all its versions (or a whole common prefix), unless `versionIdMarker` is there. */
  keyMarker?: string;
  /** Exclusive: a version of `keyMarker`. One that is gone since begins that key anew. */
  versionIdMarker?: string;
  /** Up to LIMITS.listPageMax; 0 gives an empty, untruncated page. */
  max: number;
}

export interface ListedVersion {
  key: ObjectKey;
  versionId: VersionId;
  isLatest: boolean;
  summary: VersionSummary;
}

/** Versions and delete markers by key, newest first within a key. */
export interface ListVersionsPage {
  versions: ListedVersion[];
  commonPrefixes: string[];
  isTruncated: boolean;
  /** Markers of the next page, when truncated; the second is absent behind a common prefix. */
  nextKeyMarker?: string;
  nextVersionIdMarker?: string;
}

/** A version with what a reader needs to begin: one round trip for a GET. */
export interface FoundVersion {
  kind: 'found';
  version: VersionRecord;
  isLatest: boolean;
  /** Sealed bytes of an object whose only segment is one whole inline blob. */
  inlineBody?: Uint8Array;
}

/** A part without where its bytes are. */
export type ListedPart = Omit<PartRecord, keyof ManifestBody>;

/** Where a blob stands in the queue of those that are condemned. */
export interface CondemnedPlace {
  condemnedAtMs: number;
  blobId: BlobId;
}

export interface QueryTable extends CheckQueries, DebtQueries, EventQueries, ExtensionQueries, ScanQueries {
  'get-access-key': {
    query: { accessKey: string };
    result: { kind: 'found'; accessKey: AccessKeyRecord; account: AccountRecord } | { kind: 'unknown' };
  };
  /** The keys of an account by name, in order. */
  'list-access-keys': { query: { accountId: AccountId }; result: { accessKeys: AccessKeyRecord[] } };
  'get-account': { query: { accountId: AccountId }; result: { account: AccountRecord | null } };
  /**
   * R46: what has changed since. `gateway` names who asks, one process for its life: revocations wait for it. `reset`:
   * what lies between is not kept, or was never so.
   */
  'identity-changes': {
    query: { gateway: string; since?: IdentityPosition };
    result:
      | { kind: 'changes'; upTo: IdentityPosition; changes: IdentityChange[] }
      | { kind: 'reset'; upTo: IdentityPosition };
  };
  'find-account': {
    query: { name?: string; email?: string; canonicalId?: string };
    result: { account: AccountRecord | null };
  };
  'list-accounts': {
    query: { after?: AccountId; limit: number };
    result: { accounts: AccountRecord[]; accessKeys: string[][] };
  };
  'find-name': { query: { name: BucketName }; result: { record: NameRecord | null } };
  'list-names': {
    query: { owner: AccountId; prefix?: string; after?: string; max: number };
    result: { names: { name: BucketName; record: NameRecord }[]; isTruncated: boolean };
  };
  'get-bucket': {
    query: { bucketId: BucketId };
    result: { bucket: BucketRecord | null; configs: ConfigsOfBucket };
  };
  'get-version': {
    query: { bucketId: BucketId; key: ObjectKey; versionId?: VersionId; includeBody: boolean };
    result: GetVersionResult;
  };
  /** Several at once, without bodies, in order: of the first ones where all together would be too large for one answer. */
  'get-versions': {
    query: { bucketId: BucketId; wanted: { key: ObjectKey; versionId?: VersionId }[] };
    result: { found: GetVersionResult[] };
  };
  'list-objects': { query: ListObjectsQuery; result: ListObjectsPage };
  'list-versions': { query: ListVersionsQuery; result: ListVersionsPage };
  'get-upload': {
    query: { bucketId: BucketId; key: ObjectKey; uploadId: UploadId };
    /** `wasCompleted`: it is gone, and what Complete answered is kept. */
    result: { upload: UploadRecord | null; wasCompleted: boolean };
  };
  'list-uploads': {
    query: {
      bucketId: BucketId;
      prefix: string;
      delimiter?: string;
      keyMarker?: string;
      uploadIdMarker?: string;
      max: number;
    };
    result: {
      uploads: UploadRecord[];
      commonPrefixes: string[];
      isTruncated: boolean;
      nextKeyMarker?: string;
      nextUploadIdMarker?: string;
      /** The upload of the marker is open, and another key's: nothing is listed. */
      isMarkerOfOtherKey?: true;
    };
  };
  'list-parts': {
    query: { bucketId: BucketId; key: ObjectKey; uploadId: UploadId; after: number; max: number };
    result:
      | { kind: 'parts'; upload: UploadRecord; parts: ListedPart[]; isTruncated: boolean }
      | { kind: 'no-such-upload' };
  };
  'get-manifest-pages': {
    query: { manifestId: BlobId; from: number; to: number };
    result: { pages: (ManifestPage | null)[] };
  };
  /** The first ones of a blob of pieces, as PieceRecords; null where one of them is missing. */
  'get-pieces': { query: { blobId: BlobId; pieceCount: number }; result: { pieces: Uint8Array[] | null } };
  'get-bodies': { query: { blobIds: BlobId[] }; result: { bodies: (Uint8Array | null)[] } };
  /** `isUnconfirmed`: those that are not there may have been lost (R23). */
  'get-blobs': {
    query: { blobIds: BlobId[] };
    result: { blobs: (Omit<BlobRecord, 'foldedFrom'> | null)[]; isUnconfirmed?: true };
  };
  /** R23; null: the shard began with nothing, and nothing of it was given up. */
  'get-history': { query: Record<never, never>; result: { history: HistoryRecord | null } };
  /** What the shard holds of other homes, by blob id; `homeShard`: of that one alone. `next` is absent at the end. */
  'list-claims': {
    query: { homeShard?: number; after?: BlobId; limit: number };
    result: { claims: HeldClaim[]; next?: BlobId };
  };

  // -- background and operations --
  // Queues are in time order. `fromMs` is where the last look ended (its last item's time): without it a scan crawls
  // over what earlier ones have finished. `after` (exclusive) is for the pages of one look whose items may stay.
  'list-outbox': {
    query: { fromMs?: number; after?: OutboxId; limit: number };
    result: { items: { id: OutboxId; createdAtMs: number; record: OutboxRecord }[] };
  };
  'list-ended-links': { query: { fromMs?: number; limit: number }; result: { ended: EndedLink[] } };
  /** Uploads that were aborted or have expired, with parts to release. */
  'list-ended-uploads': {
    query: { fromMs?: number; after?: { endedAtMs: number; uploadId: UploadId }; limit: number };
    result: { ended: { endedAtMs: number; uploadId: UploadId }[] };
  };
  'list-condemned': {
    query: { fromMs?: number; after?: CondemnedPlace; olderThanMs: number; limit: number };
    /**
     * Condemned for longer than `olderThanMs`; `totalCount` of all, also of those that are not listed. A page may have fewer
     * than `limit` and yet not be the last: `next` is absent at the end.
     */
    result: { blobs: { blobId: BlobId; blob: BlobRecord }[]; totalCount: number; next?: CondemnedPlace };
  };
  /**
   * Claims whose link ids are older than `olderThanMs`. A page may have fewer than `limit` and yet not be the last: `next` is
   * absent at the end.
   */
  'list-pending-claims': {
    query: {
      fromMs?: number;
      after?: { blobId: BlobId; linkId: LinkId };
      olderThanMs: number;
      limit: number;
    };
    result: {
      claims: PendingClaim[];
      next?: { blobId: BlobId; linkId: LinkId };
    };
  };
  /** R30, asked of the claiming shard. `timeMs` of the reply is committed time. */
  'resolve-claims': {
    query: { claims: { blobId: BlobId; linkId: LinkId }[] };
    result: { held: boolean[] };
  };
  /** Uploads above this age, and any of deleted buckets. */
  'list-stale-uploads': {
    query: { fromMs?: number; olderThanMs: number; limit: number };
    result: {
      uploads: { bucketId: BucketId; key: ObjectKey; uploadId: UploadId }[];
      /** Deleted buckets without uploads: expire-uploads forgets them. */
      emptiedBucketIds: BucketId[];
    };
  };
  'list-completed-uploads': {
    query: { fromMs?: number; olderThanMs: number; limit: number };
    /** `completedAtMs` of the last one is where the next look begins. */
    result: { completed: { uploadId: UploadId; completedAtMs: number }[] };
  };
  'list-wrapped-keys': {
    query: { notKeyId: string; after?: Uint8Array; limit: number };
    /**
     * `next` is absent at the end of the scan. `moveCounts`: the shard's MOVEs of keys, before and after this page: one
     * between them may have carried a key from ahead of the scan to behind it.
     */
    result: {
      items: { row: Uint8Array; wrapped: WrappedKek }[];
      next?: Uint8Array;
      scannedCount: number;
      moveCounts: readonly [before: number, after: number];
    };
  };
  'count-usage': {
    query: { bucketId?: BucketId };
    result: { objectCount: number; sizeBytes: number; bucketCount: number };
  };
}
