// The stored rows of a shard besides versions: their types and codecs. Keys are in metadata/schema/keyspace.ts.
import { defineRecord, type RecordCodec } from '../../base/record-codec.ts';
import type { Grant } from '../acl.ts';
import type { CreationSettings } from '../bucket-config.ts';
import type { Checksum, ChecksumAlgorithm, ChecksumType } from '../checksums.ts';
import type { ETag } from '../etag.ts';
import type { EventConsumer } from '../events.ts';
import { paddedTo } from '../metered.ts';
import type {
  AccountId,
  BlobId,
  BucketId,
  BucketName,
  JobId,
  LinkId,
  ObjectKey,
  OutboxId,
  UploadId,
  VersionId,
} from '../names.ts';
import type { VersionProtection } from '../protection.ts';
import type { Quota } from '../quota.ts';
import type { RepairEntry } from '../repair-entries.ts';
import type { BucketCompliance, BucketObjectLock } from '../retention.ts';
import type { Tag } from '../tags.ts';
import type { BlobLayout, ManifestBody, ManifestPage, WrappedKek } from '../version.ts';
import type { ScanRecord } from './scan-record.ts';

/** extensions 1.4: trial, paid, suspended. */
export type AccountState = 'trial' | 'paid' | 'suspended';

export interface AccountRecord {
  accountId: AccountId;
  name: string;
  email: string;
  /** 64 hex digits: the ID of Owner elements. */
  canonicalId: string;
  state: AccountState;
  bucketsMax: number;
  bucketCount: number;
  createdAtMs: number;
  /** The operator's account; in S3 an ordinary one. */
  isRoot: boolean;
  /** Whether it may share with everybody, as the operator has set it; absent: as `mayBePublic` says. */
  mayBePublic?: boolean;
  /** Its bills are not paid: nothing is stored in its buckets, reads and deletes are served. */
  isUnpaid?: boolean;
  /** It is deleted, and there only because it owns buckets yet (account-removal-record.ts). Nothing signs for it. */
  deletedAtMs?: number;
}
/** Whether policies and lists of the account may be public: without a word of the operator's, only those of paid ones. */
export function mayBePublic({ mayBePublic: set, state }: AccountRecord): boolean {
  return set ?? state === 'paid';
}

export const accountCodec = defineRecord<AccountRecord>({ name: 'account', version: 1 });

export interface AccessKeyRecord {
  accessKey: string;
  accountId: AccountId;
  /** Of the user that signs with it; absent: the account's root. */
  userId?: string;
  /** The secret key, sealed by the master key, because SigV4 needs it in the clear. */
  sealedSecret: WrappedKek;
  createdAtMs: number;
  /** Requests that it signs are refused as if it were not there. */
  isDisabled?: true;
}
const ownKeyCodec = defineRecord<AccessKeyRecord>({ name: 'access-key', version: 1 });
const userKeyCodec = defineRecord<AccessKeyRecord>({
  name: 'access-key',
  version: 2,
  migrations: { 1: (old) => old },
});
/** Keys of users are of a form of their own: a program that knows no users would take one for a key of the account's root. */
export const accessKeyCodec: RecordCodec<AccessKeyRecord> = {
  name: 'access-key',
  encode: (record) => (record.userId === undefined ? ownKeyCodec : userKeyCodec).encode(record),
  decode: userKeyCodec.decode,
};

/** A change of identities, kept for gateways that have cached them (R46). */
export interface IdentityChangeRecord {
  accountId: AccountId;
  /** Hex, random: the same number means the same change only with the same mark. */
  mark: string;
}
export const identityChangeCodec = defineRecord<IdentityChangeRecord>({
  name: 'identity-change',
  version: 1,
});

/** A rename under way, as both of its names have it (R43). */
export interface NameChange {
  /** The other one of the two names. */
  other: BucketName;
  /** Of the bucket's names in its home: the one that this rename ends. */
  nameEpoch: number;
  /** The outbox item that completes it, and distinguishes this rename from all others. */
  itemId: OutboxId;
}

/**
 * A bucket's name in the system shard (R41-R43). `creating` counts as absent for readers; which of a `leaving` and an
 * `entering` name the bucket bears, its home alone knows.
 */
export interface NameRecord {
  state: 'creating' | 'active' | 'entering' | 'leaving';
  bucketId: BucketId;
  homeShard: number;
  owner: AccountId;
  /** Of the bucket, whatever its names since. */
  createdAtMs: number;
  /** Present while `entering` or `leaving`. */
  change?: NameChange;
}
export const nameCodec = defineRecord<NameRecord>({ name: 'name', version: 1 });

/** A bucket in its home shard: the only authority on the name it bears (R43) and on its settings. */
export interface BucketRecord {
  bucketId: BucketId;
  name: BucketName;
  /** Counts what was decided about its name, refusals too: each rename is decided once (R43). */
  nameEpoch: number;
  owner: AccountId;
  state: 'open' | 'closing' | 'deleted';
  createdAtMs: number;
  /** Counts changes of settings; commands carry the one their gateway authorised by (R45). */
  cfgVersion: number;
  /** As its document says: what commands decide by. */
  versioning: 'unversioned' | 'enabled' | 'suspended';
  /** Of its forced deletion: present while it is closing, and while it is deleted and not yet emptied. */
  jobId?: JobId;
  /**
   * Set when object lock or compliance is first switched on, and never taken away. Where it is absent, no version of the bucket
   * is protected, and none is asked (delete-blocker.ts). Whoever sets it waits until `keyRenames` is gone, and so does compliance that
   * changes: a key that moves in several entries asks the rules of deletion in the first one only.
   */
  mayProtect?: true;
  /** As its document says (BucketConfigs.objectLock): new versions take their retention from it. */
  objectLock?: BucketObjectLock;
  /** As its document says: what versions are kept by. */
  compliance?: BucketCompliance;
  /** As its document says: some rule of its lifecycle is enabled. */
  hasLifecycle?: true;
  /**
   * Set before the first version or upload is stored whose owner is not the bucket's, and never taken away. Where it is absent,
   * the bucket's owner owns all that is in it, and no object has to be looked at to know that.
   */
  mayHaveForeignObjects?: true;
  /** Of buckets that were configured before documents had rows of their own (BucketConfigs.versioning). */
  mfaDelete?: 'disabled';
  /** Keys that are being renamed in several entries: until the last of them nothing else changes these keys. */
  keyRenames?: { jobId: JobId; from: ObjectKey; to: ObjectKey }[];
  /** As its document says: how much it may hold. */
  quota?: Quota;
  /** As its document says: for whom events are written. A deleted bucket has them still, for what is taken out of it. */
  events?: EventConsumer[];
}
const plainBucketCodec = defineRecord<BucketRecord>({ name: 'bucket', version: 1 });
const protectingBucketCodec = defineRecord<BucketRecord>({
  name: 'bucket',
  version: 2,
  migrations: { 1: (old) => old },
});
/** Buckets whose versions may be protected are of a form of their own: a program that knows no retention would let them go. */
export const bucketCodec: RecordCodec<BucketRecord> = {
  name: 'bucket',
  encode: (bucket) => (bucket.mayProtect ? protectingBucketCodec : plainBucketCodec).encode(bucket),
  decode: protectingBucketCodec.decode,
};

/** A document of a bucket's configuration; its kind is in the row's key (bucket-config.ts). */
export interface BucketConfigRecord {
  document: unknown;
  changedAtMs: number;
}
export const bucketConfigCodec = defineRecord<BucketConfigRecord>({ name: 'bucket-config', version: 1 });

export interface UploadRecord {
  uploadId: UploadId;
  bucketId: BucketId;
  key: ObjectKey;
  initiatedAtMs: number;
  initiator: AccountId;
  owner: AccountId;
  kek: WrappedKek;
  sealedHeaders: Uint8Array;
  /** Of the version that Complete makes; absent where there are none. */
  tags?: Tag[];
  /** Likewise (VersionRecord.acl). */
  acl?: Grant[];
  /** Likewise (VersionRecord.protection). */
  protection?: VersionProtection;
  checksum?: { algorithm: ChecksumAlgorithm; type: ChecksumType };
}
export const uploadCodec = defineRecord<UploadRecord>({ name: 'upload', version: 1 });

export interface PartRecord extends ManifestBody {
  /** In what these hold its bytes are counted (quotas/held.ts). Absent: of an earlier release. */
  heldBy?: { bucketId: BucketId; owner: AccountId };
  partNumber: number;
  sizeBytes: number;
  modifiedAtMs: number;
  /** 32 hex digits: the part's MD5, or derived for a part made by copy (design "Data model"). */
  etag: ETag;
  checksum?: Omit<Checksum, 'type'>;
}
export const partCodec = defineRecord<PartRecord>({ name: 'part', version: 1 });

/** What a Complete answered, kept so that repeating it is idempotent (s3-behaviour 29). */
export interface CompletedUploadRecord {
  bucketId: BucketId;
  key: ObjectKey;
  versionId: VersionId;
  /** The bucket's, at that moment. */
  versioning: BucketRecord['versioning'];
  etag: ETag;
  checksum?: Checksum;
  /** Digest of the part list, to recognise a repetition. */
  partListDigest: string;
  completedAtMs: number;
}
export const completedUploadCodec = defineRecord<CompletedUploadRecord>({
  name: 'completed-upload',
  version: 1,
});

/**
 * A blob in its home shard; `manifest` blobs are paged manifests, link-counted the same way: their pages are rows, and
 * their size is that of the bytes they lead to.
 */
export interface BlobRecord extends BlobLayout {
  kind: 'data' | 'manifest';
  /** CRC32 of each chunk's plaintext, 4 bytes each, big-endian, so that ranges combine (design "Data model"). */
  chunkCrc32?: Uint8Array;
  /** More CRCs by algorithm, as the client's checksum asked for. */
  chunkCrcs?: { algorithm: ChecksumAlgorithm; values: Uint8Array };
  /** It has had more links than its first: only then may others be left when one ends. */
  isShared?: true;
  /** Of pieces: the row was made anew from what another shard knew of it (R23). Nothing comes behind pieces that may be lost. */
  isClosed?: true;
  /** Of a manifest: a composition's, so that the links of its pages say so themselves (LinkRecord.composedIn). */
  isComposed?: true;
  /**
   * Of a compacted blob: other blobs with its bytes (packed, types/compacted-from.ts). Absent where it has them alone, as
   * in rows of earlier versions.
   */
  foldedFrom?: Uint8Array;
  /** Of what came in several uploads: what is charged of it, each of them of LIMITS.chargedBytesMin at least. */
  chargedBytes?: number;
  /** Final: no link may be added any more (R26). */
  condemnedAtMs?: number;
}
export const blobCodec = defineRecord<BlobRecord>({ name: 'blob', version: 1 });

/** What is charged of a blob that no object is charged for any more (extensions 6). */
export function chargedOf({
  sizeBytes,
  chargedBytes,
}: Pick<BlobRecord, 'sizeBytes' | 'chargedBytes'>): number {
  return chargedBytes ?? paddedTo(sizeBytes);
}

/** It is known, and not marked for deletion. */
export function isLiveBlob(blob: Pick<BlobRecord, 'condemnedAtMs'> | null | undefined): boolean {
  return blob !== null && blob !== undefined && blob.condemnedAtMs === undefined;
}

/** The missing copies of a blob's chunks (R36): it is in the repair queue by its copies and the time of its first record. */
export interface RepairEntryRecord extends RepairEntry {
  notedAtMs: number;
  /** Hex, random, new after each record, so that only the inspected state is resolved. */
  mark: string;
}
export const repairCodec = defineRecord<RepairEntryRecord>({ name: 'debt', version: 1 });

/** The look at all blobs of a shard that is under way, or was the last one (R39). */
export interface AuditRecord extends ScanRecord {
  /** The placement version by which it began. New blobs by an older one get repair entries from here on. */
  mapVersion: number;
  after?: BlobId;
  ended?: { mapVersion: number; beganAtMs: number; endedAtMs: number };
}
export const auditCodec = defineRecord<AuditRecord>({ name: 'audit', version: 1 });

/** A link row in the blob's home, or under a foreign row (R26-R30). */
export interface LinkRecord {
  state: 'own' | 'pending' | 'confirmed';
  /** The claiming shard; for `own` the home itself. */
  shard: number;
  /** What holds it is a composition of this bucket, or was appended to (service 4.2, compose rule 6). */
  composedIn?: BucketId;
  /**
   * A page of this manifest of a composition, of this shard: links to it hold this blob. Absent in rows of earlier
   * versions, which name only the bucket of the composition.
   */
  inManifest?: BlobId;
  /** Of one with `composedIn`: what holds it was appended to, and is charged for this data itself (VersionRecord.chargedBytes). */
  isCharged?: true;
  /** Of a pending one, by whichever command made it. Absent in rows of earlier versions; apply-claim-verdicts.ts gives them one. */
  nonce?: string;
}
export const linkCodec = defineRecord<LinkRecord>({ name: 'link', version: 1 });

/** Shard S's knowledge of a blob of another home: the claim that its local links stand on (R28). */
export interface ForeignRecord {
  homeShard: number;
  linkId: LinkId;
  /** Of the home, when the claim was made; absent: 1. One of a history that was given up is worth nothing (R23). */
  incarnation?: number;
  layout: BlobLayout & { kind: 'data' | 'manifest' };
}
export const foreignCodec = defineRecord<ForeignRecord>({ name: 'foreign', version: 1 });

/**
 * R23: of a history that began with what one replica had left. Until the operator has confirmed it nothing of this home is
 * marked for deletion or erased, and before that all shards must have asserted which blobs of it they hold.
 */
export interface HistoryRecord {
  incarnation: number;
  begunAtMs: number;
  /** Shards that have asserted everything; this one too, when others know again what it holds of theirs. */
  assertedBy: number[];
  /** Links that were missing, and blobs whose rows were. */
  linkCount: number;
  blobCount: number;
  confirmedAtMs?: number;
}
export const historyCodec = defineRecord<HistoryRecord>({ name: 'history', version: 1 });

/** R23: the newest known history of another home: claims of earlier ones are worth nothing. */
export const homeHistoryCodec = defineRecord<{ incarnation: number }>({ name: 'home-history', version: 1 });

/** The answer to a request with an idempotency token, for its repetition. */
export interface TokenRecord {
  /** Of all that the request asked for: another one under the same token is refused. */
  digest: string;
  keptAtMs: number;
  /** The command's outcome, as plain data. */
  outcome: unknown;
  /** What it counts for in what is kept for the bucket's owner; absent where it is older than that is counted. */
  keptBytes?: number;
  /** Of a request that was about no bucket: for whom it counts. */
  payer?: string;
}
export const tokenCodec = defineRecord<TokenRecord>({ name: 'token', version: 1 });

/** Work that one shard sends to another (R21, R29, R41 to R43); sent until done, idempotent by content. */
export type OutboxRecord =
  | { kind: 'release-link'; homeShard: number; blobId: BlobId; linkId: LinkId }
  | {
      kind: 'create-bucket';
      homeShard: number;
      bucketId: BucketId;
      name: BucketName;
      owner: AccountId;
      /** Absent: none. */
      settings?: CreationSettings;
    }
  | { kind: 'forget-name'; bucketId: BucketId; name: BucketName; owner: AccountId }
  | {
      kind: 'rename-bucket';
      homeShard: number;
      bucketId: BucketId;
      from: BucketName;
      to: BucketName;
      nameEpoch: number;
    };
export const outboxCodec = defineRecord<OutboxRecord>({ name: 'outbox', version: 1 });

export const manifestPageCodec = defineRecord<ManifestPage>({ name: 'manifest-page', version: 1 });
