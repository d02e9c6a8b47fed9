// The commands and queries of what goes beyond S3: renames, compositions, appends, forced deletions, and the tokens by
// which they may be repeated. Part of the tables in metadata-commands.ts and metadata-queries.ts, as plain data.
import type { DeleteBlocker } from '../model/delete-blocker.ts';
import type { BucketId, JobId, ObjectKey, VersionId } from '../model/names.ts';
import type { EmptyBucketJob, JobRecord, JobState } from '../model/records/job-record.ts';
import type { BucketRecord } from '../model/records/rows.ts';

/** What a request asks to be known by, and a digest of all that it asks for. */
export interface IdempotencyToken {
  token: string;
  digest: string;
}

export interface KeptVersion {
  key: ObjectKey;
  versionId: VersionId;
  blocker: DeleteBlocker;
}

export interface KeptToken {
  keptAtMs: number;
  bucketId: BucketId;
  token: string;
}

/** How a forced deletion stands. */
export type ClosingOutcome =
  /** At this step: whoever drives it looks on from there. */
  | { kind: 'looking'; job: EmptyBucketJob }
  /** For everybody and for good; what was in it goes by its job. */
  | { kind: 'deleted'; bucket: BucketRecord }
  /** Something in it has to stay: it is open again, with all that it had. */
  | { kind: 'reopened' }
  /** There is no such job, and the bucket is not deleted. */
  | { kind: 'gone' };

export interface ExtensionCommands {
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
  /** Of those that have ended long ago (LIMITS.jobKeptMs) and are of buckets; others stay. */
  'forget-bucket-jobs': { command: { jobIds: JobId[] }; outcome: { kind: 'forgotten' } };
  /** Tokens that have been kept for long enough; others stay. */
  'forget-tokens': {
    command: { tokens: Pick<KeptToken, 'bucketId' | 'token'>[] };
    outcome: { kind: 'forgotten' };
  };
}

export interface ExtensionQueries {
  /**
   * Whether some versions of a bucket may go, as deleteBlocker has it. `count` were met, up to one that has to stay
   * (`kept`), or to `next`, which is absent at the end. `after` (exclusive) is opaque.
   */
  'look-for-kept': {
    query: { bucketId: BucketId; after?: string; limit: number };
    result: { count: number; kept?: KeptVersion; next?: string };
  };
  'list-kept-tokens': {
    query: { fromMs?: number; olderThanMs: number; limit: number };
    /** `keptAtMs` of the last one is where the next look begins. */
    result: { tokens: KeptToken[] };
  };
  /** In the order in which they began, those that have ended too; `next` is absent at the end. */
  'list-jobs': {
    query: { after?: JobId; limit: number };
    /** `nowMs`: shard time, by which it is told how long ago each was driven on. */
    result: { jobs: JobRecord[]; nowMs: number; next?: JobId };
  };
  /** Those that there are of each kind and state; others are left out. */
  'count-jobs': {
    query: Record<never, never>;
    result: { counts: { kind: JobRecord['kind']; state: JobState; count: number }[] };
  };
  'get-job': { query: { jobId: JobId }; result: { job: JobRecord | null } };
}
