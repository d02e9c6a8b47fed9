// The commands of the metadata shards and their outcomes, as plain data: what changes state. Each is evaluated once,
// atomically, in one shard. How they are called is in metadata.ts.
import type { BucketConfigs, ConfigKind } from '../types/bucket-config.ts';
import type { Checksum, ChecksumAlgorithm } from '../types/checksums.ts';
import type { PlacedChunks } from '../types/debts.ts';
import type { DeleteBlocker } from '../types/delete-blocker.ts';
import type { ETag } from '../types/etag.ts';
import type { EventType } from '../types/events.ts';
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
import type { ConditionRefusal, WriteConditions } from '../types/preconditions.ts';
import type {
  AccessKeyRecord,
  AccountRecord,
  BucketRecord,
  ForeignRecord,
  HistoryRecord,
  NameRecord,
  PartRecord,
  UploadRecord,
} from '../types/records/rows.ts';
import type { Tag } from '../types/tags.ts';
import type { BlobUse, VersionRecord, WrappedKek } from '../types/version.ts';
import type { AskedClaim, SettledClaim } from './claim-calls.ts';
import type { DebtCommands } from './debt-calls.ts';
import type { EventCommands } from './event-calls.ts';
import type { ExtensionCommands } from './extension-calls.ts';
import type { ScanCommands } from './scan-calls.ts';

/** A new blob of this shard, with its own link, born in the entry that commits its version or part (R25). */
export interface NewBlob {
  use: BlobUse;
  chunkCrc32?: Uint8Array;
  chunkCrcs?: { algorithm: ChecksumAlgorithm; values: Uint8Array };
  /** Sealed bytes; present exactly when the layout says `inline`. */
  body?: Uint8Array;
  /** Where a placement map says which disks have its chunks: what they owe by it is a debt from the start (R36). */
  placed?: PlacedChunks;
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
  births: NewBlob[];
  links: LinkGrant[];
}

export type GrantRefusal =
  /** These blobs are condemned or unknown: re-read the source (R26, R27). */
  | { kind: 'gone'; blobIds: BlobId[] }
  /** An id is too old or too new for this shard's time (R25, R28): begin again. */
  | { kind: 'late' }
  /** A blob of this id was born already (R24): its chunks may be in use, so nobody may drop them for this refusal. */
  | { kind: 'exists' };

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
  /** The parts are links to more pieces of other objects than one entry may hold (LIMITS.uploadPartsBytesMax). */
  | { kind: 'too-many-segments' }
  | { kind: 'size-mismatch' }
  | { kind: 'bad-checksum'; algorithm: ChecksumAlgorithm }
  | { kind: 'checksum-missing'; partNumber: number };

/** A claim as its holder has it. */
export interface HeldClaim {
  blobId: BlobId;
  linkId: LinkId;
  layout: ForeignRecord['layout'];
}

/** R23: nothing of this home may go before the operator has confirmed its history. */
export interface Unconfirmed {
  kind: 'unconfirmed';
}

/** Of an outcome that takes rights away. */
export interface Revocation {
  /** R46: the number of its change of identities; answered once gateways have heard of it. Absent: nothing was revoked. */
  revokedSeq?: number;
}

export interface CommandTable extends DebtCommands, EventCommands, ExtensionCommands, ScanCommands {
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
    outcome: ({ kind: 'changed'; account: AccountRecord } | { kind: 'no-such-account' }) & Revocation;
  };
  'delete-account': {
    command: { accountId: AccountId };
    outcome: /** No such account, or no more: who revokes again hears it no sooner than who did. */
      | (({ kind: 'deleted' } | { kind: 'no-such-account' }) & Revocation)
      | { kind: 'owns-buckets' }
      | { kind: 'is-root' };
  };
  'add-access-key': {
    command: { accountId: AccountId; accessKey: Pick<AccessKeyRecord, 'accessKey' | 'sealedSecret'> };
    outcome:
      | { kind: 'added'; accessKey: AccessKeyRecord }
      | { kind: 'no-such-account' }
      | { kind: 'taken' }
      | { kind: 'too-many-keys' };
  };
  'change-access-key': {
    command: { accountId: AccountId; accessKey: string; change: 'disable' | 'enable' | 'delete' };
    outcome: /** Of a key that is gone: who revokes again hears it no sooner than who did. */
    (({ kind: 'changed' } | { kind: 'no-such-key' }) & Revocation) | { kind: 'last-key-of-root' };
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
  /**
   * R43 first step: `from` leaves, `to` enters, and the outbox brings it to its end whatever becomes of the gateway.
   * `nameEpoch`: of the bucket's row, by which the renaming was authorised. Of a rename that is under way it answers as
   * of one that has begun now.
   */
  'begin-rename': {
    command: { bucketId: BucketId; from: BucketName; to: BucketName; nameEpoch: number };
    outcome:
      | { kind: 'begun'; homeShard: number; nameEpoch: number; itemId: OutboxId }
      /** `from` is not, or no longer, this bucket's. */
      | { kind: 'no-such-name' }
      /** `to` has this owner already, or another. */
      | { kind: 'owned-already'; record: NameRecord }
      | { kind: 'taken' }
      /** Another creation or rename has one of the names. */
      | { kind: 'in-progress' };
  };
  /** R43 last step: does what the home has decided; `gone` when somebody else has done so, or the bucket is forgotten. */
  'end-rename': {
    command: {
      bucketId: BucketId;
      from: BucketName;
      to: BucketName;
      itemId: OutboxId;
      verdict: 'renamed' | 'refused';
    };
    outcome: { kind: 'renamed' } | { kind: 'undone' } | { kind: 'gone' };
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
  /** R43, the one moment of change. Repeating it gives the same answer: a rename that was refused stays so. */
  'rename-bucket': {
    command: { bucketId: BucketId; from: BucketName; to: BucketName; nameEpoch: number };
    outcome: { kind: 'renamed'; bucket: BucketRecord } | { kind: 'refused' };
  };
  'set-bucket-config': {
    /** null takes the document away. What is absent in one of `versioning` stays as it is. */
    command: {
      [K in ConfigKind]: { bucketId: BucketId; kind: K; document: BucketConfigs[K] | null };
    }[ConfigKind];
    outcome: { kind: 'changed'; bucket: BucketRecord } | { kind: 'no-such-bucket' };
  };
  'commit-version': {
    command: {
      bucketId: BucketId;
      key: ObjectKey;
      version: NewVersion;
      data: DataGrant;
      conditions?: WriteConditions;
      /** How it came to be; absent: by a PUT. */
      event?: Extract<EventType, 's3:ObjectCreated:Copy' | 's3:ObjectCreated:Post'>;
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
       * (dataLinkId of types/version.ts) tells it from a later one that got the same order after a deletion: the new
       * kek fits the data of this one only.
       */
      expected: { versionId: VersionId; order: number; dataLinkId: LinkId | null };
      version: Pick<NewVersion, 'owner' | 'kek' | 'sealedHeaders' | 'checksum'>;
      /** Absent: those that the version has in the moment of the commit. */
      tags?: Tag[];
      /** Link ids for the new version where the old one stays (versioned bucket), by blob id; one per use. */
      linkId: LinkId;
    };
    outcome:
      | CommittedVersion
      | GrantRefusal
      | { kind: 'changed' }
      | { kind: 'blocked'; blocker: DeleteBlocker };
  };
  /** One entry for the items, in order, or for the first ones (LIMITS.deleteItemsMin at least): ask for the rest. */
  'delete-versions': {
    command: { bucketId: BucketId; owner: AccountId; items: DeleteItem[] };
    outcome: { kind: 'deleted-versions'; items: DeleteOutcome[] };
  };
  /** Gives a version these tags instead of those it has; null takes them away. It stays the version that it was in all else. */
  'set-tags': {
    command: { bucketId: BucketId; key: ObjectKey; versionId?: VersionId; tags: Tag[] | null };
    outcome:
      | { kind: 'tagged'; versionId: VersionId; versioning: BucketRecord['versioning'] }
      | VersionAbsence;
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
  /** The upload is gone; its parts' links end in the background. */
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
  /** Ends some parts of an upload that was aborted or has expired, and their links; `isLast`: none is left. */
  'release-parts': {
    command: { endedAtMs: number; uploadId: UploadId };
    outcome: { kind: 'released'; isLast: boolean };
  };
  /** R29: absent ones are done. */
  'release-links': {
    command: { links: { blobId: BlobId; linkId: LinkId }[] };
    outcome: { kind: 'released' };
  };
  /** R30: what the claiming shard said of pending links, each by the nonce of the one that it was asked about. */
  'settle-claims': { command: { claims: SettledClaim[] }; outcome: { kind: 'settled' } };
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
    outcome: { kind: 'settled'; condemnedCount: number } | Unconfirmed;
  };
  /** R31, after the drops were answered: deletes the rows of condemned blobs. */
  'erase-blobs': { command: { blobIds: BlobId[] }; outcome: { kind: 'erased' } | Unconfirmed };
  // -- a history that began with what one replica had left (R23) --
  /** In a shard that claims: commits no claim of an earlier history of this home any more. */
  'learn-history': { command: { homeShard: number; incarnation: number }; outcome: { kind: 'learned' } };
  /**
   * In the home: `shard` holds these. Missing links are added as pending ones, missing rows of blobs made anew while the
   * history is not confirmed; `gone`: of those whose blobs are not here and may not be made. `pending`: those that are not
   * confirmed now, of which `shard` may be asked; absent from a home of the version before.
   */
  'assert-links': {
    command: { shard: number; claims: HeldClaim[] };
    outcome: { kind: 'asserted'; gone: BlobId[]; pending?: AskedClaim[] };
  };
  /** In the home: `shard` has told all. */
  'note-asserted': { command: { shard: number; incarnation: number }; outcome: { kind: 'noted' } };
  /** The operator's word that what is lost is lost. */
  'confirm-history': {
    command: Record<never, never>;
    outcome:
      | { kind: 'confirmed'; history: HistoryRecord }
      /** These shards have not told yet. */
      | { kind: 'waiting'; shards: number[] }
      /** There is nothing to confirm. */
      | { kind: 'no-doubt' };
  };
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
