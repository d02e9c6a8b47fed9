// Commands and queries of the metadata shards, as plain data: this is also what travels between processes.
// Embedded: the shards themselves; in a cluster: a client that finds the primary. Every command is evaluated once and
// atomically in its shard; its outcome is a union on `kind`. Contract: tests/contract/metadata.test.ts.
import type { Checksum, ChecksumAlgorithm } from '../model/checksums.ts';
import type { DeleteBlocker } from '../model/delete-blocker.ts';
import type { ETag } from '../model/etag.ts';
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
} from '../model/names.ts';
import type { ConditionRefusal, WriteConditions } from '../model/preconditions.ts';
import type {
  AccessKeyRecord,
  AccountRecord,
  BlobRecord,
  BucketRecord,
  ForeignRecord,
  NameRecord,
  OutboxRecord,
  PartRecord,
  UploadRecord,
} from '../model/records/rows.ts';
import type { BlobUse, ManifestPage, VersionRecord, VersionSummary, WrappedKek } from '../model/version.ts';

export type { DeleteBlocker } from '../model/delete-blocker.ts';
export type { ConditionRefusal, WriteConditions } from '../model/preconditions.ts';

/** The shard of names, accounts and access keys (R41). */
export const SYSTEM_SHARD = 0;

/** What a gateway believes of a bucket (R45): the shard refuses when it is out of date. */
export interface BucketClaim {
  bucketId: BucketId;
  name: BucketName;
  cfgVersion: number;
}

export interface Envelope {
  shard: number;
  /** Set where an answer can be lost on the way (R18): the outcome is kept under it for retries. */
  requestId?: string;
  /** Set for everything that a client does to a bucket. */
  bucket?: BucketClaim;
}

/** `timeMs` is shard time, from which gateways mint ids (R24). */
export type Reply<T> =
  | { kind: 'done'; value: T; timeMs: number }
  /** Name, state or cfgVersion differ: authorise anew with this row (null: never was here) and retry (R45). */
  | { kind: 'stale-bucket'; bucket: BucketRecord | null; timeMs: number }
  /** Queues are full: 503 SlowDown. Nothing was evaluated. */
  | { kind: 'busy' }
  /** The shard cannot say what became of it: 503 (R13). */
  | { kind: 'unknown' };

export interface MetadataPort {
  execute<N extends CommandName>(
    envelope: Envelope,
    name: N,
    command: CommandOf<N>,
  ): Promise<Reply<OutcomeOf<N>>>;
  query<N extends QueryName>(envelope: Envelope, name: N, query: QueryOf<N>): Promise<Reply<ResultOf<N>>>;
  readonly shardCount: number;
}

export type CommandName = keyof CommandTable;
export type CommandOf<N extends CommandName> = CommandTable[N]['command'];
export type OutcomeOf<N extends CommandName> = CommandTable[N]['outcome'];
export type QueryName = keyof QueryTable;
export type QueryOf<N extends QueryName> = QueryTable[N]['query'];
export type ResultOf<N extends QueryName> = QueryTable[N]['result'];

// ---- data that enters with a version or part ----

/** A new blob of this shard, with its own link, born in the entry that commits its version or part (R25). */
export interface BlobBirth {
  use: BlobUse;
  chunkCrc32?: Uint8Array;
  chunkCrcs?: { algorithm: ChecksumAlgorithm; values: Uint8Array };
  /** Sealed bytes; present exactly when the layout says `inline`. */
  body?: Uint8Array;
}

/** A link to existing data: `local` when this shard is the blob's home, else a claim made there (R26-R28). */
export interface LinkGrant {
  blobId: BlobId;
  linkId: LinkId;
  /** Absent for `local`. */
  claim?: ForeignRecord;
}

/** How the data of a new version or part is accounted for. Every use of the manifest is in exactly one list. */
export interface DataGrant {
  births: BlobBirth[];
  links: LinkGrant[];
}

export type GrantRefusal =
  /** These blobs are condemned or unknown: re-read the source (R26, R27). */
  | { kind: 'gone'; blobIds: BlobId[] }
  /** An id is too old or too new for this shard's time (R25, R28): begin again. */
  | { kind: 'late' };

/** A version to be, without what the commit gives it. */
export type NewVersion = Omit<VersionRecord, 'versionId' | 'order' | 'modifiedAtMs' | 'isDeleteMarker'>;

export interface CommittedVersion {
  kind: 'committed';
  versionId: VersionId;
  /** The bucket is or was versioned: the answer carries x-amz-version-id (only when enabled, or 'null' suspended). */
  versioning: BucketRecord['versioning'];
  modifiedAtMs: number;
}

export interface DeleteItem {
  key: ObjectKey;
  /** Absent: the simple delete of the current version. */
  versionId?: VersionId;
  conditions?: WriteConditions;
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
    }
  | ConditionRefusal
  | { kind: 'blocked'; blocker: DeleteBlocker };

export interface CompletePart {
  partNumber: number;
  /** Unquoted. */
  etag: ETag;
  /** base64, when the request gave one. */
  checksum?: { algorithm: ChecksumAlgorithm; value: string };
}

/** A link that an entry ended; its blob may be without links now. */
export interface EndedLink {
  endedAtMs: number;
  blobId: BlobId;
  linkId: LinkId;
}

export type CompleteRefusal =
  | { kind: 'no-such-upload' }
  | { kind: 'invalid-part'; partNumber: number }
  | { kind: 'invalid-part-order' }
  | { kind: 'part-too-small'; partNumber: number; sizeBytes: number; etag: ETag }
  | { kind: 'too-large' }
  | { kind: 'size-mismatch' }
  | { kind: 'bad-checksum'; algorithm: ChecksumAlgorithm }
  | { kind: 'checksum-missing'; partNumber: number };

interface CommandTable {
  // -- system shard --
  'create-account': {
    command: {
      account: Omit<AccountRecord, 'createdAtMs' | 'bucketCount'>;
      accessKey: Omit<AccessKeyRecord, 'createdAtMs' | 'accountId'>;
    };
    outcome:
      | { kind: 'created'; account: AccountRecord }
      | { kind: 'conflict'; field: 'accountId' | 'name' | 'email' | 'canonicalId' | 'accessKey' };
  };
  'set-account': {
    command: { accountId: AccountId; changes: Partial<Pick<AccountRecord, 'state' | 'bucketsMax'>> };
    outcome: { kind: 'changed'; account: AccountRecord } | { kind: 'no-such-account' };
  };
  'delete-account': {
    command: { accountId: AccountId };
    outcome:
      | { kind: 'deleted' }
      | { kind: 'no-such-account' }
      | { kind: 'owns-buckets' }
      | { kind: 'is-root' };
  };
  /** R41 first step: checks name and limit, writes the name as `creating`, and the outbox. */
  'reserve-name': {
    command: { name: BucketName; owner: AccountId };
    outcome:
      | { kind: 'reserved'; bucketId: BucketId; homeShard: number }
      | { kind: 'owned-already'; record: NameRecord }
      | { kind: 'taken' }
      | { kind: 'in-progress' }
      | { kind: 'too-many-buckets' };
  };
  'activate-name': {
    command: { name: BucketName; bucketId: BucketId };
    outcome: { kind: 'active' } | { kind: 'gone' };
  };
  /** R42 last step: removes all name and list rows of this bucket id. Idempotent. */
  'forget-name': {
    command: { name: BucketName; bucketId: BucketId; owner: AccountId };
    outcome: { kind: 'forgotten' };
  };

  // -- a bucket's home shard --
  'create-bucket': {
    command: { bucketId: BucketId; name: BucketName; owner: AccountId };
    outcome: { kind: 'created'; bucket: BucketRecord } | { kind: 'deleted-already' };
  };
  /** Holds the bucket exclusively, so that no PUT slips in behind the emptiness check (R7, A15). */
  'delete-bucket': {
    command: { bucketId: BucketId };
    outcome: { kind: 'deleted'; bucket: BucketRecord } | { kind: 'not-empty' } | { kind: 'no-such-bucket' };
  };
  'set-versioning': {
    command: { bucketId: BucketId; versioning: 'enabled' | 'suspended' };
    outcome: { kind: 'changed'; bucket: BucketRecord } | { kind: 'no-such-bucket' };
  };
  'commit-version': {
    command: {
      bucketId: BucketId;
      key: ObjectKey;
      version: NewVersion;
      data: DataGrant;
      conditions?: WriteConditions;
    };
    outcome: CommittedVersion | GrantRefusal | ConditionRefusal | { kind: 'blocked'; blocker: DeleteBlocker };
  };
  /** Replaces headers (and kek wrapping) of the current version by a new version with the same data: copy onto itself. */
  'recommit-version': {
    command: {
      bucketId: BucketId;
      key: ObjectKey;
      /**
       * The version that was read: another current one means `changed`, and the gateway reads again. The link
       * (dataLinkId of model/version.ts) tells it from a later one that got the same order after a deletion: the new
       * kek fits the data of this one only.
       */
      expected: { versionId: VersionId; order: number; dataLinkId: LinkId | null };
      version: Pick<NewVersion, 'owner' | 'kek' | 'sealedHeaders' | 'checksum'>;
      /** Link ids for the new version where the old one stays (versioned bucket), by blob id; one per use. */
      linkId: LinkId;
    };
    outcome:
      | CommittedVersion
      | GrantRefusal
      | { kind: 'changed' }
      | { kind: 'blocked'; blocker: DeleteBlocker };
  };
  /** One entry for all items, in order (DeleteObjects is one commit per shard). */
  'delete-versions': {
    command: { bucketId: BucketId; owner: AccountId; items: DeleteItem[] };
    outcome: { kind: 'deleted-versions'; items: DeleteOutcome[] };
  };
  'create-upload': {
    command: { bucketId: BucketId; upload: Omit<UploadRecord, 'uploadId' | 'initiatedAtMs' | 'bucketId'> };
    outcome: { kind: 'created'; upload: UploadRecord };
  };
  'commit-part': {
    command: {
      bucketId: BucketId;
      key: ObjectKey;
      uploadId: UploadId;
      part: Omit<PartRecord, 'modifiedAtMs'>;
      data: DataGrant;
    };
    outcome: { kind: 'committed'; modifiedAtMs: number } | GrantRefusal | { kind: 'no-such-upload' };
  };
  'complete-upload': {
    command: {
      bucketId: BucketId;
      key: ObjectKey;
      uploadId: UploadId;
      parts: CompletePart[];
      /** x-amz-checksum-* of the whole, and x-amz-mp-object-size. */
      expected?: { checksum?: Checksum; sizeBytes?: number };
      conditions?: WriteConditions;
    };
    outcome:
      | (CommittedVersion & { etag: ETag; checksum?: Checksum; repeated: boolean })
      | CompleteRefusal
      | ConditionRefusal
      | { kind: 'blocked'; blocker: DeleteBlocker };
  };
  'abort-upload': {
    command: { bucketId: BucketId; key: ObjectKey; uploadId: UploadId };
    outcome: { kind: 'aborted' } | { kind: 'no-such-upload' };
  };

  // -- blobs and links (R24-R33) --
  /** R27, in the blobs' home: a pending link for `shard` on each, or `gone` and none at all (also for a link id too old). */
  'claim-links': {
    command: { shard: number; linkId: LinkId; blobIds: BlobId[] };
    outcome: { kind: 'claimed'; layouts: ForeignRecord[] } | { kind: 'gone'; blobIds: BlobId[] };
  };
  /** R29: absent ones are done. */
  'release-links': {
    command: { links: { blobId: BlobId; linkId: LinkId }[] };
    outcome: { kind: 'released' };
  };
  /** R30: what the claiming shard said of pending links. */
  'settle-claims': {
    command: { claims: { blobId: BlobId; linkId: LinkId; verdict: 'confirmed' | 'dropped' }[] };
    outcome: { kind: 'settled' };
  };
  /** Ends the links that a condemned paged manifest holds, a page at a time. */
  'release-manifest-page': {
    command: { manifestId: BlobId; page: number };
    outcome: { kind: 'released'; isLast: boolean };
  };
  /**
   * R26, some moments after the entries that ended these links: a blob of this home without any link is condemned; a
   * foreign row without any local link goes, and its claim is released (R29). A step of its own, because only here is
   * the blob known before anything is read, so that it can be locked against new links.
   */
  'condemn-blobs': {
    command: { ended: EndedLink[] };
    outcome: { kind: 'settled'; condemnedCount: number };
  };
  /** R31, after the drops were answered: deletes the rows of condemned blobs. */
  'erase-blobs': { command: { blobIds: BlobId[] }; outcome: { kind: 'erased' } };
  'finish-outbox': { command: { ids: OutboxId[] }; outcome: { kind: 'finished' } };
  /** Ends uploads whose bucket is deleted or whose age is above `olderThanMs`, as abort does. */
  'expire-uploads': {
    command: {
      uploads: { bucketId: BucketId; key: ObjectKey; uploadId: UploadId }[];
      olderThanMs: number;
      /** Deleted buckets of which list-stale-uploads said that no upload is left. */
      emptiedBucketIds?: BucketId[];
    };
    outcome: { kind: 'expired'; count: number };
  };
  'forget-completed-uploads': { command: { uploadIds: UploadId[] }; outcome: { kind: 'forgotten' } };
  /** Key rotation: exchanges a wrapped key where it still is the expected one. `row` is opaque, from list-wrapped-keys. */
  'rewrap-keys': {
    command: { items: { row: Uint8Array; expected: WrappedKek; replacement: WrappedKek }[] };
    outcome: { kind: 'rewrapped'; count: number };
  };
  /** Writes nothing but the shard's time. */
  tick: { command: Record<never, never>; outcome: { kind: 'ticked' } };
}

// ---- queries ----

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

interface QueryTable {
  'get-access-key': {
    query: { accessKey: string };
    result: { kind: 'found'; accessKey: AccessKeyRecord; account: AccountRecord } | { kind: 'unknown' };
  };
  'get-account': { query: { accountId: AccountId }; result: { account: AccountRecord | null } };
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
  'get-bucket': { query: { bucketId: BucketId }; result: { bucket: BucketRecord | null } };
  'get-version': {
    query: { bucketId: BucketId; key: ObjectKey; versionId?: VersionId; includeBody: boolean };
    result:
      | FoundVersion
      /** The current version, or the one asked for, is a delete marker. */
      | { kind: 'delete-marker'; versionId: VersionId; modifiedAtMs: number; isLatest: boolean }
      | { kind: 'no-such-key' }
      | { kind: 'no-such-version' };
  };
  'list-objects': { query: ListObjectsQuery; result: ListObjectsPage };
  'list-versions': { query: ListVersionsQuery; result: ListVersionsPage };
  'get-upload': {
    query: { bucketId: BucketId; key: ObjectKey; uploadId: UploadId };
    result: { upload: UploadRecord | null };
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
    };
  };
  'list-parts': {
    query: { bucketId: BucketId; key: ObjectKey; uploadId: UploadId; after: number; max: number };
    result:
      | { kind: 'parts'; upload: UploadRecord; parts: PartRecord[]; isTruncated: boolean }
      | { kind: 'no-such-upload' };
  };
  'get-manifest-pages': {
    query: { manifestId: BlobId; from: number; to: number };
    result: { pages: (ManifestPage | null)[] };
  };
  'get-bodies': { query: { blobIds: BlobId[] }; result: { bodies: (Uint8Array | null)[] } };
  'get-blobs': { query: { blobIds: BlobId[] }; result: { blobs: (BlobRecord | null)[] } };

  // -- background and operations --
  // Queues are in time order. `fromMs` is where the last look ended (its last item's time): without it a scan crawls
  // over what earlier ones have finished. `after` (exclusive) is for the pages of one look whose items may stay.
  'list-outbox': {
    query: { fromMs?: number; after?: OutboxId; limit: number };
    result: { items: { id: OutboxId; createdAtMs: number; record: OutboxRecord }[] };
  };
  'list-ended-links': { query: { fromMs?: number; limit: number }; result: { ended: EndedLink[] } };
  'list-condemned': {
    query: { fromMs?: number; olderThanMs: number; limit: number };
    /** Condemned for longer than `olderThanMs`; `totalCount` of all, also of those that are not listed. */
    result: { blobs: { blobId: BlobId; blob: BlobRecord }[]; totalCount: number };
  };
  /** Claims whose link ids are older than `olderThanMs`. */
  'list-pending-claims': {
    query: {
      fromMs?: number;
      after?: { blobId: BlobId; linkId: LinkId };
      olderThanMs: number;
      limit: number;
    };
    result: { claims: { blobId: BlobId; linkId: LinkId; shard: number }[] };
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
    /** `next` is absent at the end of the scan. */
    result: { items: { row: Uint8Array; wrapped: WrappedKek }[]; next?: Uint8Array; scannedCount: number };
  };
  'count-usage': {
    query: { bucketId?: BucketId };
    result: { objectCount: number; sizeBytes: number; bucketCount: number };
  };
}
