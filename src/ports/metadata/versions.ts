// Commands and queries about versions of objects: writes, compositions, appends, deletions, tags, reads and listings.
import type { Grant } from '../../types/acl.ts';
import type { Checksum, ChecksumAlgorithm } from '../../types/checksums.ts';
import type { DeleteBlocker } from '../../types/delete-blocker.ts';
import type { EventType } from '../../types/events.ts';
import type { AccountId, BlobId, BucketId, LinkId, ObjectKey, VersionId } from '../../types/names.ts';
import type { ConditionRefusal, WriteConditions } from '../../types/preconditions.ts';
import type { Retention } from '../../types/protection.ts';
import type { BucketRecord } from '../../types/records/rows.ts';
import type { Tag } from '../../types/tags.ts';
import type {
  ManifestBody,
  ManifestPage,
  VersionRecord,
  VersionSummary,
  WrappedKek,
} from '../../types/version.ts';
import type { DataGrant, GrantRefusal, NewBlob } from './blobs.ts';
import type { IdempotencyToken, OutcomeStoreFull, TokenAnswer } from './jobs.ts';
import type { QuotaRefusal } from './quotas.ts';

/** Of a version that is there. */
export type ProtectionChange =
  /** Object lock; null takes the retention away. */
  | { kind: 'retention'; retention: Retention | null; bypassesGovernance?: true }
  | { kind: 'legal-hold'; isOn: boolean }
  /** Compliance (extensions 2.6): what is absent stays as it is. A hold is released for good. */
  | { kind: 'compliance'; retainUntilMs?: number; legalHold?: boolean; releasesHold?: true }
  /** Hex, of the bytes of the version that was read: what was computed is kept. */
  | { kind: 'sha256'; sha256: string; of: ReadVersion };

/**
 * The version that was read: another one is there where any of the three differs. The link (dataLinkId of types/version.ts)
 * distinguishes it from a later one that got the same order after a deletion.
 */
export interface ReadVersion {
  versionId: VersionId;
  order: number;
  dataLinkId: LinkId | null;
}

/** A version to be, without what the commit gives it. */
export type NewVersion = Omit<VersionRecord, 'versionId' | 'order' | 'modifiedAtMs' | 'isDeleteMarker'>;

export interface CommittedVersion {
  kind: 'committed';
  versionId: VersionId;
  /** The bucket is or was versioned: the answer carries x-amz-version-id (only when enabled, or 'null' suspended). */
  versioning: BucketRecord['versioning'];
  modifiedAtMs: number;
}

/** No version that has data under this key or id. */
export type VersionAbsence =
  /** The current version, or the one asked for, is a delete marker. */
  | { kind: 'delete-marker'; versionId: VersionId; modifiedAtMs: number }
  | { kind: 'no-such-key' }
  | { kind: 'no-such-version' };

export interface DeleteItem {
  key: ObjectKey;
  /** Absent: the simple delete of the current version. */
  versionId?: VersionId;
  conditions?: WriteConditions;
  /** Whoever asks may bypass retention in GOVERNANCE mode, and asks to (x-amz-bypass-governance-retention). */
  bypassesGovernance?: true;
}

export type DeleteOutcome =
  | {
      kind: 'deleted';
      /** The version that was removed for good, or the marker that was written. Absent in unversioned buckets. */
      versionId?: VersionId;
      /** True when a marker was written, or the removed version was one. */
      isDeleteMarker: boolean;
      /** A marker was written by this delete. */
      madeMarker: boolean;
      /** Of the version that was removed for good; absent: none. */
      removedBytes?: number;
    }
  | ConditionRefusal
  | { kind: 'blocked'; blocker: DeleteBlocker };

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

/** The version that a composition or an append made. */
export type ComposedVersion = CommittedVersion &
  Pick<VersionRecord, 'etag' | 'sizeBytes'> & { checksum?: Checksum };

/**
 * `mayFold`: it has small pieces that are worth compacting (types/plan-compaction.ts). `growingId`: the growing blob at its
 * end, which the next append may extend.
 */
export type AppendedVersion = ComposedVersion & { mayFold: boolean; growingId?: BlobId };

/** Bytes to append: one new blob, or none where there are no bytes. */
export interface AppendedPiece {
  sizeBytes: number;
  /** hex */
  md5: string;
  births: NewBlob[];
  /** base64, by algorithm: as many as were computed. */
  crcs: Partial<Record<ChecksumAlgorithm, string>>;
}

/** A piece of a version that is to be compacted: by its data, whatever link a version has to it. */
export interface CompactedSegment {
  blobId: BlobId;
  offsetBytes: number;
  sizeBytes: number;
  /** For a growing blob: the last piece that the version sees, which distinguishes it from pieces of a lost history (R23). */
  lastPieceId?: BlobId;
}

export interface VersionCommands {
  'commit-version': {
    command: {
      bucketId: BucketId;
      key: ObjectKey;
      version: NewVersion;
      data: DataGrant;
      conditions?: WriteConditions;
      /** How the version came to be; absent: by a PUT. Nobody gives `Post` so far (EVENT_TYPES). */
      event?: Extract<EventType, 's3:ObjectCreated:Copy' | 's3:ObjectCreated:Post'>;
    };
    outcome:
      | CommittedVersion
      | GrantRefusal
      | ConditionRefusal
      | { kind: 'blocked'; blocker: DeleteBlocker }
      | QuotaRefusal;
  };
  /** Replaces headers (and kek wrapping) of the current version by a new version with the same data: copy onto itself. */
  'recommit-version': {
    command: {
      bucketId: BucketId;
      key: ObjectKey;
      /** Another current one means `changed`, and the gateway reads again: the new kek fits the data of this one only. */
      expected: ReadVersion;
      version: Pick<NewVersion, 'owner' | 'acl' | 'kek' | 'sealedHeaders' | 'checksum' | 'protection'>;
      /** Absent: those that the version has in the moment of the commit. */
      tags?: Tag[];
      /** Link ids for the new version where the old one stays (versioned bucket), by blob id; one per use. */
      linkId: LinkId;
    };
    outcome:
      | CommittedVersion
      | GrantRefusal
      | { kind: 'changed' }
      | { kind: 'blocked'; blocker: DeleteBlocker }
      | QuotaRefusal;
  };
  /** One entry for the items, in order, or for the first ones (LIMITS.deleteItemsMin at least): ask for the rest. */
  'delete-versions': {
    command: {
      bucketId: BucketId;
      owner: AccountId;
      items: DeleteItem[];
      /** The bucket keeps versions or has kept some: an item without a version makes a delete marker. For refuse-growth.ts alone. */
      mayMark?: boolean;
    };
    outcome: { kind: 'deleted-versions'; items: DeleteOutcome[] };
  };
  /** Gives a version these tags instead of those it has; null takes them away. It stays the version that it was in all else. */
  'set-tags': {
    command: {
      bucketId: BucketId;
      key: ObjectKey;
      versionId?: VersionId;
      tags: Tag[] | null;
      /** Of the version that the caller was judged by, where that was looked at; null: none was there. */
      before?: { owner: AccountId; tags: readonly Tag[] } | null;
    };
    outcome:
      | { kind: 'tagged'; versionId: VersionId; versioning: BucketRecord['versioning'] }
      /** Another version than that one is there now: judge by it. */
      | { kind: 'other-version' }
      | VersionAbsence;
  };
  /** Gives a version this access control list; null: what `private` means. It stays the version that it was in all else. */
  'set-acl': {
    command: {
      bucketId: BucketId;
      key: ObjectKey;
      versionId?: VersionId;
      /** Of the version that was read: the list is made for it. */
      owner: AccountId;
      /** The list that it had; null: that of `private`. Absent: whatever it is. */
      before?: readonly Grant[] | null;
      /** The tags that policies were judged by. Absent: no policy looks at them. */
      tagsBefore?: readonly Tag[];
      grants: Grant[] | null;
    };
    outcome:
      | { kind: 'set'; versionId: VersionId; versioning: BucketRecord['versioning'] }
      /** A version of another account, or with another list or other tags, is there now: judge by it, and make the list anew. */
      | { kind: 'other-owner' }
      | VersionAbsence;
  };
  /** Changes what protects a version, and nothing else of it. In the commit it is decided whether that may be. */
  'set-protection': {
    command: {
      bucketId: BucketId;
      key: ObjectKey;
      versionId?: VersionId;
      change: ProtectionChange;
    };
    outcome:
      | { kind: 'set'; versionId: VersionId; versioning: BucketRecord['versioning'] }
      /** It would protect less than the version's own protection, or its bucket's, allows. */
      | { kind: 'blocked' }
      /** Its end is not to come, by the time that retention goes by. */
      | { kind: 'retention-passed' }
      /** Object lock or compliance, whichever the change is about, is not on in the bucket. */
      | { kind: 'not-enabled' }
      /** Another version is there now than that whose digest it is. */
      | { kind: 'other-version' }
      | VersionAbsence;
  };
  /** A version of the data of others (service 4.2): `body` is in order, its links are granted by `data`. */
  'compose-version': {
    command: {
      bucketId: BucketId;
      key: ObjectKey;
      version: Omit<NewVersion, 'manifest' | 'appendCount'>;
      body: ManifestBody;
      data: DataGrant;
      conditions?: WriteConditions;
      token?: IdempotencyToken;
    };
    outcome:
      | ComposedVersion
      | GrantRefusal
      | ConditionRefusal
      | { kind: 'blocked'; blocker: DeleteBlocker }
      | OutcomeStoreFull
      | QuotaRefusal
      | TokenAnswer<ComposedVersion>;
  };
  /** Extends what is the current version when it is evaluated, so that appends do not get into each other's way. */
  'append-version': {
    command: {
      bucketId: BucketId;
      key: ObjectKey;
      piece: AppendedPiece;
      /** The object's key as it was read: it wraps the data key of the piece. `renewed`: what the new version has of it. */
      kek: { found: WrappedKek; renewed: WrappedKek };
      /** Of the new version on each blob that the old one keeps. */
      linkId: LinkId;
      /** The blob of pieces that the object ended with when it was read: a small piece goes into it where it still does. */
      growingId?: BlobId;
      /** A small piece begins a blob where the object ends with another one than `growingId`: it has changed again and again. */
      beginsAnew?: true;
      /** Where the piece is to begin. */
      offsetBytes?: number;
      conditions?: WriteConditions;
      token?: IdempotencyToken;
    };
    outcome:
      | AppendedVersion
      /** No object, or a delete marker. */
      | { kind: 'no-such-key' }
      /**
       * The current version has another key, or has it wrapped anew, or the piece lacks the CRC that goes on, or the object ends
       * with another blob that may grow: read it, wrap the data key by it, ask again.
       */
      | { kind: 'other-key' }
      | { kind: 'wrong-offset'; sizeBytes: number }
      | { kind: 'too-many-appends' }
      | { kind: 'too-large' }
      | GrantRefusal
      | ConditionRefusal
      | { kind: 'blocked'; blocker: DeleteBlocker }
      | OutcomeStoreFull
      | QuotaRefusal
      | TokenAnswer<AppendedVersion>;
  };
  /**
   * Replaces a run of pieces by one blob of the same bytes, in the version that is current at the evaluation: appends may
   * have made newer ones of the same pieces. Nothing else of the version changes.
   */
  'fold-version': {
    command: {
      bucketId: BucketId;
      key: ObjectKey;
      /** The object's key as it was read: it wraps the data key of the new blob. */
      kek: WrappedKek;
      run: CompactedSegment[];
      /** Its link is that of the first piece that it replaces. */
      birth: NewBlob;
    };
    outcome:
      | { kind: 'folded' }
      /** The pieces do not stand in the current version, or it has another key, or has it wrapped anew. */
      | { kind: 'changed' }
      | GrantRefusal;
  };
}

export interface VersionQueries {
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
  'get-manifest-pages': {
    query: { manifestId: BlobId; from: number; to: number };
    result: { pages: (ManifestPage | null)[] };
  };
  /** The first ones of a blob of pieces, as PieceRecords; null where one of them is missing. */
  'get-pieces': { query: { blobId: BlobId; pieceCount: number }; result: { pieces: Uint8Array[] | null } };
  'get-bodies': { query: { blobIds: BlobId[] }; result: { bodies: (Uint8Array | null)[] } };
}
