// Commands and queries about buckets: their names (R41 to R43), configuration, forced deletion and usage.
import type {
  BucketConfigs,
  ComplianceUnlock,
  ConfigKind,
  ConfigsOfBucket,
  CreationSettings,
} from '../../types/bucket-config.ts';
import type { DeleteBlocker } from '../../types/delete-blocker.ts';
import type {
  AccountId,
  BucketId,
  BucketName,
  JobId,
  ObjectKey,
  OutboxId,
  VersionId,
} from '../../types/names.ts';
import type { EmptyBucketJob } from '../../types/records/job-record.ts';
import type { BucketRecord, NameRecord } from '../../types/records/rows.ts';
import type { LockedSetting } from '../../types/retention.ts';

export interface ProtectedVersion {
  key: ObjectKey;
  versionId: VersionId;
  blocker: DeleteBlocker;
}

/** Why a document does not fit to the others that the bucket has. */
export type ConfigRefusal =
  /** Object lock needs versioning, and keeps it from being suspended. */
  | 'needs-versioning'
  | 'has-object-lock'
  /** Object lock and compliance exclude each other. */
  | 'has-compliance'
  /** Locked settings of compliance are not reduced: this one would be. */
  | `locked-${LockedSetting}`
  /** A rename of a key in several entries has to end first: it asks the rules of deletion in the first one only. */
  | 'keys-are-moving';

/** How a forced deletion stands. */
export type ClosingOutcome =
  /** At this step: the driver continues the look from there. */
  | { kind: 'looking'; job: EmptyBucketJob }
  /** For everybody and for good; what was in it goes by its job. */
  | { kind: 'deleted'; bucket: BucketRecord }
  /** Something in it has to stay: it is open again, with all that it had. */
  | { kind: 'reopened' }
  /** There is no such job, and the bucket is not deleted. */
  | { kind: 'gone' };

export interface BucketCommands {
  /**
   * R41 first step: checks name and limit, writes the name as `creating`, and the outbox, which makes the bucket with these
   * settings if the gateway does not.
   */
  'reserve-name': {
    command: { name: BucketName; owner: AccountId; settings?: CreationSettings };
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
  /** R41 second step, with all settings in one entry. A bucket that is there is answered as it is, and keeps its settings. */
  'create-bucket': {
    command: { bucketId: BucketId; name: BucketName; owner: AccountId; settings?: CreationSettings };
    outcome: { kind: 'created'; bucket: BucketRecord } | { kind: 'deleted-already' };
  };
  /** Holds the bucket exclusively, so that no PUT slips in behind the emptiness check (R7, A15). */
  'delete-bucket': {
    command: { bucketId: BucketId };
    outcome: { kind: 'deleted'; bucket: BucketRecord } | { kind: 'not-empty' } | { kind: 'no-such-bucket' };
  };
  /**
   * R43, the one moment of change. Repeating it gives the same answer: a rename that was refused stays so. `because` is
   * there where only the bucket's policy was in the way, in a repetition where it still is.
   */
  'rename-bucket': {
    command: { bucketId: BucketId; from: BucketName; to: BucketName; nameEpoch: number };
    outcome: { kind: 'renamed'; bucket: BucketRecord } | { kind: 'refused'; because?: 'policy-too-long' };
  };
  'set-bucket-config': {
    /** null takes the document away. What is absent in one of `versioning` stays as it is. */
    command: {
      [K in ConfigKind]: { bucketId: BucketId; kind: K; document: BucketConfigs[K] | null };
    }[ConfigKind];
    outcome:
      | { kind: 'changed'; bucket: BucketRecord }
      | { kind: 'no-such-bucket' }
      | { kind: 'refused'; because: ConfigRefusal };
  };
  /** Ends the lock of a bucket's compliance settings, by the operator's word alone; it is recorded in the document. */
  'unlock-compliance': {
    command: { bucketId: BucketId; by: string; reason: string };
    outcome:
      | { kind: 'unlocked'; bucket: BucketRecord; unlocks: ComplianceUnlock[] }
      | { kind: 'no-such-bucket' }
      | { kind: 'not-locked' };
  };
  /** Goes before the first version or upload of another account (BucketRecord.mayHaveForeignObjects). Repeating it changes nothing. */
  'admit-foreign-objects': {
    command: { bucketId: BucketId };
    outcome: { kind: 'admitted'; bucket: BucketRecord } | { kind: 'no-such-bucket' };
  };
  /** Force delete: from here on nothing is written into the bucket, until its job (a new one) has decided. */
  'close-bucket': {
    command: { bucketId: BucketId };
    outcome: { kind: 'closing'; job: EmptyBucketJob } | { kind: 'no-such-bucket' };
  };
  /**
   * What a look behind step `stepCount` has found in a closing bucket: `count` versions that may go, and more `after`
   * them; or no more (`delete`); or one that has to stay (`reopen`). Behind another step it changes nothing.
   */
  'step-closing': {
    command: {
      bucketId: BucketId;
      jobId: JobId;
      stepCount: number;
      count: number;
      next: { kind: 'look'; after: string } | { kind: 'delete' } | { kind: 'reopen' };
    };
    outcome: ClosingOutcome;
  };
  /** Takes some of what is left out of a deleted bucket, behind step `stepCount`. `job`: as it is then. */
  'empty-bucket': {
    command: { bucketId: BucketId; jobId: JobId; stepCount: number };
    outcome: { kind: 'stepped'; job: EmptyBucketJob } | { kind: 'elsewhere' };
  };
}

export interface BucketQueries {
  'find-name': { query: { name: BucketName }; result: { record: NameRecord | null } };
  'list-names': {
    query: { owner: AccountId; prefix?: string; after?: string; max: number };
    result: { names: { name: BucketName; record: NameRecord }[]; isTruncated: boolean };
  };
  /**
   * `kinds`: the documents that are asked for; default: all. `bytesMax`: where the rows of these take more, none of them is
   * answered, and `isLarge`.
   */
  'get-bucket': {
    query: { bucketId: BucketId; kinds?: readonly ConfigKind[]; bytesMax?: number };
    result: { bucket: BucketRecord | null; configs: ConfigsOfBucket; isLarge?: true };
  };
  'count-usage': {
    query: { bucketId?: BucketId };
    result: { objectCount: number; sizeBytes: number; bucketCount: number };
  };
  /**
   * Whether some versions of a bucket may go, as deleteBlocker has it. `count` objects were met, delete markers apart, up
   * to one that has to stay (`kept`), or to `next`, which is absent at the end. `after` (exclusive) is opaque.
   */
  'find-protected': {
    query: { bucketId: BucketId; after?: string; limit: number };
    result: { count: number; kept?: ProtectedVersion; next?: string };
  };
  /**
   * Versions of a bucket that may go, among `limit` of them behind the row `after` (opaque). `keptCount` others may not; the
   * first of these may at `untilMs`, unless somebody has to end a hold. `next` is absent at the end.
   */
  'find-removable': {
    query: { bucketId: BucketId; after?: string; limit: number };
    result: {
      items: { key: ObjectKey; versionId: VersionId }[];
      keptCount: number;
      untilMs?: number;
      next?: string;
    };
  };
}
