// The commands and queries of what goes beyond S3: renames, compositions, appends, forced deletions, and the tokens by
// which they may be repeated. Part of the tables in metadata-commands.ts and metadata-queries.ts, as plain data.
import type { DeleteBlocker } from '../types/delete-blocker.ts';
import type { MoveRefusal } from '../types/move-refusals.ts';
import type { BucketId, JobId, ObjectKey, VersionId } from '../types/names.ts';
import type { WriteConditions } from '../types/preconditions.ts';
import type {
  EmptyBucketJob,
  JobKind,
  JobRecord,
  JobState,
  MovePrefixJob,
} from '../types/records/job-record.ts';
import type { BucketRecord } from '../types/records/rows.ts';
import type { Versioning } from '../types/versioning.ts';
import type { ComposeCommands, ComposeQueries, OutcomeStoreFull, TokenAnswer } from './compose-calls.ts';

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

/** All versions and delete markers of a key are to bear another one. */
export interface KeyMove {
  from: ObjectKey;
  /** By which a prefix was replaced: it may be longer than a key can be. */
  to: string;
  /** On the current object of each, where there is one. */
  sourceConditions?: WriteConditions;
  targetConditions?: WriteConditions;
}

/** The ids of what was moved, newest first; or why nothing was. */
export type MoveResult = VersionId[] | MoveRefusal;

/** How far a walk over the keys of a prefix has come. */
export interface MoveCursor {
  /** Of metadata/moves/plan-prefix-move.ts. */
  leg: number;
  /** Behind which key it goes on; absent: at the leg's start. */
  after?: ObjectKey;
}

/** Which step of a job for MOVE an entry is. */
interface MoveStep {
  bucketId: BucketId;
  jobId: JobId;
  /** It drives the job from here on. */
  driver: string;
  /** Behind so many steps: no step is made twice. */
  stepCount: number;
  /** Where the walk stood when its keys were looked for: another driver's step of this number may have been a shorter one. */
  begin: MoveCursor;
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

export interface ExtensionCommands extends ComposeCommands {
  /** MOVE of one key (service 4.2). */
  'move-key': {
    command: { bucketId: BucketId; move: KeyMove; overwrites: boolean; token?: IdempotencyToken };
    outcome:
      | { kind: 'moved-key'; result: MoveResult; versioning: Versioning }
      /** Under its token, in several entries. */
      | { kind: 'began-before'; jobId: JobId }
      | OutcomeStoreFull
      | { kind: 'token-reused' };
  };
  /** A job for MOVE of a prefix. Repeated under its token: the job that it began. */
  'begin-move': {
    command: {
      bucketId: BucketId;
      from: string;
      to: string;
      overwrites: boolean;
      token?: IdempotencyToken;
      /** Who is about to make its steps. Absent: nobody yet. */
      driver?: string;
    };
    outcome:
      | { kind: 'begun'; job: MovePrefixJob }
      | { kind: 'began-before'; jobId: JobId }
      | { kind: 'too-many-jobs' }
      | OutcomeStoreFull
      | { kind: 'token-reused' };
  };
  /**
   * A job for MOVE of one key that has more than one entry may hold. Its latest version, and its null version, move at once:
   * `result` tells them. Until the job has ended nothing else changes the two keys. Repeated under its token: that job.
   */
  'begin-key-move': {
    command: {
      bucketId: BucketId;
      move: KeyMove;
      overwrites: boolean;
      token?: IdempotencyToken;
      driver: string;
    };
    outcome:
      | { kind: 'begun'; job: MovePrefixJob; result: VersionId[]; versioning: Versioning }
      | { kind: 'refused'; result: MoveRefusal; versioning: Versioning }
      | { kind: 'began-before'; jobId: JobId }
      | { kind: 'too-many-jobs' }
      | OutcomeStoreFull
      | { kind: 'token-reused' };
  };
  /**
   * A step of a key that moves in several entries. `open`: its latest and its null version move, or it is told why it
   * cannot; `move`: some of those below, newest first; `close`: none is left, and both keys are free again.
   */
  'step-key-move': {
    command: MoveStep & {
      key: ObjectKey;
      to: ObjectKey;
      phase: 'open' | 'move' | 'close';
      versionsMax: number;
    };
    outcome:
      | {
          kind: 'stepped';
          result: MoveResult;
          versioning: Versioning;
          job: MovePrefixJob;
          /** Of `move`: more is left. */
          hasMore: boolean;
        }
      | { kind: 'elsewhere'; job: MovePrefixJob }
      | { kind: 'held' }
      | { kind: 'no-such-job' };
  };
  /** Moves keys of such a job's prefix, and writes how far it has come; no key may be touched twice. */
  'step-move': {
    command: MoveStep & {
      /** Those of the job. */
      from: string;
      to: string;
      /** In the order of the walk. */
      keys: ObjectKey[];
      /** Where it stands then. Absent: at its end. */
      cursor?: MoveCursor;
    };
    outcome: /** A result for each key. */
      | { kind: 'stepped'; results: MoveResult[]; versioning: Versioning }
      /** Another driver drives it, or has driven it on, or to its end; or it ended with its bucket. */
      | { kind: 'elsewhere'; job: MovePrefixJob }
      /** What these keys have, or what is under their new names, is more than one entry may hold: fewer of them. */
      | { kind: 'too-much'; job: MovePrefixJob }
      /** The one key that these are has more than one entry may hold: it moves in several (step-key-move). */
      | { kind: 'large-key'; job: MovePrefixJob }
      /** The bucket takes no writes for now. */
      | { kind: 'held' }
      | { kind: 'no-such-job' };
  };
  /** Its driver says between two steps that it goes on, or that it leaves it to others. Nothing where another one drives it. */
  'hold-move': {
    command: { jobId: JobId; driver: string; leaves: boolean };
    outcome: { kind: 'held' };
  };
  /** Jobs that ended so long ago that nobody may ask for them any more; others stay. */
  'forget-jobs': { command: { jobIds: JobId[] }; outcome: { kind: 'forgotten' } };
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
  /** Tokens that have been kept for long enough; others stay. */
  'forget-tokens': {
    command: { tokens: Pick<KeptToken, 'bucketId' | 'token'>[] };
    outcome: { kind: 'forgotten' };
  };
}

export interface ExtensionQueries extends ComposeQueries {
  /** The next keys of a prefix's walk, as many as one step may move. */
  'find-moves': {
    query: { bucketId: BucketId; from: string; to: string; cursor: MoveCursor; keysMax: number };
    /** `cursor`: behind them; absent at the end of the walk. */
    result: { keys: ObjectKey[]; cursor?: MoveCursor };
  };
  /** Those of a kind that are under way, in the order in which they began; `next` is absent at the end. */
  'list-open-jobs': {
    query: { kind: JobKind; after?: JobId; limit: number };
    result: { jobs: JobRecord[]; nowMs: number; next?: JobId };
  };
  /** Those that ended long enough ago to be forgotten, whatever they are. */
  'list-ended-jobs': { query: { limit: number }; result: { jobIds: JobId[] } };
  /**
   * Of those that no token leads to and that ended a while ago, the ones that are not among the newest, which are shown to
   * the operator. `shownFromMs`: of the oldest that is, where none is left behind these: a later look may begin there.
   */
  'list-surplus-jobs': {
    query: { fromMs?: number; limit: number };
    result: { jobIds: JobId[]; shownFromMs?: number };
  };
  /**
   * Whether some versions of a bucket may go, as deleteBlocker has it. `count` objects were met, delete markers apart, up
   * to one that has to stay (`kept`), or to `next`, which is absent at the end. `after` (exclusive) is opaque.
   */
  'find-protected': {
    query: { bucketId: BucketId; after?: string; limit: number };
    result: { count: number; kept?: KeptVersion; next?: string };
  };
  /** What a token stands for already, for requests that look at more than their command does. */
  'get-kept-outcome': {
    query: { bucketId: BucketId; token: IdempotencyToken };
    result: TokenAnswer<unknown> | { kind: 'none' };
  };
  'list-kept-tokens': {
    query: { fromMs?: number; olderThanMs: number; limit: number };
    /** `keptAtMs` of the last one is where the next look begins. */
    result: { tokens: KeptToken[] };
  };
  /** Those that began last first, those that have ended too. `before` which to go on, exclusive: the `next` of a page. */
  'list-jobs': {
    query: { before?: JobId; limit: number };
    /** Absent `next`: at the end. `nowMs`: shard time, by which it is told how long ago each was driven on. */
    result: { jobs: JobRecord[]; nowMs: number; next?: JobId };
  };
  /** Of each kind and state. */
  'count-jobs': {
    query: Record<never, never>;
    result: { counts: { kind: JobRecord['kind']; state: JobState; count: number }[] };
  };
  /** What is kept of requests that are over: under tokens, and jobs that no token leads to. */
  'count-kept': { query: Record<never, never>; result: { tokenBytes: number; tokenlessBytes: number } };
  'get-job': { query: { jobId: JobId }; result: { job: JobRecord | null; nowMs: number } };
}
