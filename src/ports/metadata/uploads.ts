// Commands and queries about multipart uploads.
import type { Checksum, ChecksumAlgorithm } from '../../types/checksums.ts';
import type { DeleteBlocker } from '../../types/delete-blocker.ts';
import type { ETag } from '../../types/etag.ts';
import type { BucketId, ObjectKey, UploadId } from '../../types/names.ts';
import type { ConditionRefusal, WriteConditions } from '../../types/preconditions.ts';
import type { PartRecord, UploadRecord } from '../../types/records/rows.ts';
import type { ManifestBody } from '../../types/version.ts';
import type { DataGrant, GrantRefusal } from './blobs.ts';
import type { QuotaRefusal } from './quotas.ts';
import type { CommittedVersion } from './versions.ts';

export interface CompletePart {
  partNumber: number;
  /** Unquoted. */
  etag: ETag;
  /** base64, when the request gave one. */
  checksum?: { algorithm: ChecksumAlgorithm; value: string };
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

/** A part without where its bytes are. */
export type ListedPart = Omit<PartRecord, keyof ManifestBody>;

export interface UploadCommands {
  'create-upload': {
    command: { bucketId: BucketId; upload: Omit<UploadRecord, 'uploadId' | 'initiatedAtMs' | 'bucketId'> };
    outcome: { kind: 'created'; upload: UploadRecord } | { kind: 'blocked'; blocker: DeleteBlocker };
  };
  'commit-part': {
    command: {
      bucketId: BucketId;
      key: ObjectKey;
      uploadId: UploadId;
      part: Omit<PartRecord, 'modifiedAtMs' | 'heldBy'>;
      data: DataGrant;
    };
    outcome:
      | { kind: 'committed'; modifiedAtMs: number }
      | GrantRefusal
      | { kind: 'no-such-upload' }
      | QuotaRefusal;
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
      | { kind: 'blocked'; blocker: DeleteBlocker }
      | QuotaRefusal;
  };
  /** The upload is gone; its parts' links end in the background. */
  'abort-upload': {
    command: { bucketId: BucketId; key: ObjectKey; uploadId: UploadId };
    outcome: { kind: 'aborted' } | { kind: 'no-such-upload' };
  };
  /** Ends some parts of an upload that was aborted or has expired, and their links; `isLast`: none is left. */
  'release-parts': {
    command: { endedAtMs: number; uploadId: UploadId };
    outcome: { kind: 'released'; isLast: boolean };
  };
  /** Ends uploads whose bucket is deleted or whose age is above `olderThanMs`, as abort does. `left`: of those that others held. */
  'expire-uploads': {
    command: {
      uploads: { bucketId: BucketId; key: ObjectKey; uploadId: UploadId }[];
      olderThanMs: number;
      /** Deleted buckets of which list-stale-uploads said that no upload is left. */
      emptiedBucketIds?: BucketId[];
      leavesBusy?: true;
    };
    outcome: { kind: 'expired'; count: number; left?: UploadId[] };
  };
  /** `left`: of those that others held. */
  'forget-completed-uploads': {
    command: { uploadIds: UploadId[]; leavesBusy?: true };
    outcome: { kind: 'forgotten'; left?: UploadId[] };
  };
}

export interface UploadQueries {
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
  /** Uploads that were aborted or have expired, with parts to release. */
  'list-ended-uploads': {
    query: { fromMs?: number; after?: { endedAtMs: number; uploadId: UploadId }; limit: number };
    result: { ended: { endedAtMs: number; uploadId: UploadId }[] };
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
}
