// Jobs in the rows of a shard, so that they outlive their drivers (R21): each step is one entry, which does a bounded part
// of the work and records the progress here.
import { defineRecord } from '../../base/record-codec.ts';
import type { RequestOrigin } from '../events.ts';
import { LIMITS } from '../limits.ts';
import type { AccountId, BucketId, BucketName, JobId, ObjectKey, VersionId } from '../names.ts';

interface JobProgress {
  jobId: JobId;
  bucketId: BucketId;
  beganAtMs: number;
  /** When its driver last made a step or said that it goes on; at first the beginning. */
  steppedAtMs: number;
  /** Steps that were made: each names the one that it comes behind, so that none is made twice. */
  stepCount: number;
  /** Present once it is done; the record is kept for LIMITS.jobKeptMs from then on. */
  endedAtMs?: number;
  /** Nobody can ask for it again: it stays for an answer under way, and among the newest for the operator. */
  isTokenless?: true;
  /** Who asked for it, where its bucket's events are recorded. */
  origin?: RequestOrigin;
}

/** Why a key, or one of its versions, was not renamed. */
export interface MoveError {
  sourceKey: ObjectKey;
  destinationKey: string;
  versionId?: VersionId;
  /** Of types/errors.ts, or ObjectAlreadyExists. */
  code: string;
  message: string;
}

export interface KeyInSteps {
  from: ObjectKey;
  to: ObjectKey;
  /** What is added to the order of each version: they come above what was under `to`. */
  base: number;
  /** The order of the last one that has moved: the others are below it. Absent: none has but the first entry's. */
  below?: number;
}

/** MOVE with X-Svc-Prefix, or of one key with more than one entry may hold (service 4.2). */
export interface MovePrefixJob extends JobProgress {
  kind: 'move-prefix';
  /** Of the bucket; absent where it began before this was noted. */
  owner?: AccountId;
  /** What it counts for in what is kept for the owner; absent where it began before that was counted. */
  keptBytes?: number;
  from: string;
  to: string;
  overwrites: boolean;
  /** What has an access control list stays: who began it may give none at the destination. */
  isPrivateOnly?: true;
  /** It renames the one key `from` to `to`, and no prefix. */
  isKey?: true;
  /** The key that is being renamed in several steps: its latest version has moved, of the older ones some. */
  within?: KeyInSteps;
  /** Who drives it: steps of others are refused until it leaves, or is silent for LIMITS.jobStallTimeoutMs. Absent: nobody. */
  driver?: string;
  /** The part of the keys that is being walked, and in which direction; see metadata/moves/plan-prefix-move.ts. */
  leg: number;
  /** Behind which key of that leg it goes on; absent: at its start. */
  after?: ObjectKey;
  /** Versions and markers that have moved, each of a key that moved as a whole. */
  movedCount: number;
  errorCount: number;
  /** The first of them are kept: LIMITS.moveErrorsKeptMax, or under a token moveErrorsUnderTokenMax. Here are the last of these. */
  errors: MoveError[];
  /** Those before the last, in rows of their own: each step and each hold writes the job anew. Absent: there are none. */
  errorRows?: ErrorRows;
}

export interface ErrorRows {
  rowCount: number;
  errorCount: number;
  /** Of keys and messages (errorBytes in metadata/jobs/jobs.ts). */
  textBytes: number;
}

/** Some errors of a job. */
export interface MoveErrorsRecord {
  errors: MoveError[];
}

/** What of a deleted bucket goes, one after the other. */
export const EMPTYING_STAGES = ['older', 'current', 'markers', 'tokens'] as const;
export type EmptyingStage = (typeof EMPTYING_STAGES)[number];

/**
 * DELETE with force_delete (service 4.1). `look`: the bucket is closing, and it is looked whether all that is in it
 * may go. `older` to `tokens`: it is deleted, and these go. `emptied`, `refused`: ended; something had to stay, and the
 * bucket is open again.
 */
export interface EmptyBucketJob extends JobProgress {
  kind: 'empty-bucket';
  name: BucketName;
  stage: 'look' | EmptyingStage | 'emptied' | 'refused';
  /** Behind which row of the stage it goes on, hex; absent: at its start. */
  after?: string;
  /** Versions that the look has met; delete markers are not counted. */
  totalCount: number;
  /** Those that have gone since. */
  removedCount: number;
}

export type JobRecord = MovePrefixJob | EmptyBucketJob;

/** `refused`: it ended without having done anything. */
export const JOB_STATES = ['under-way', 'done', 'refused'] as const;
export type JobState = (typeof JOB_STATES)[number];
/** In the order of their marks in the table of open jobs: only ever added to. */
export const JOB_KINDS = ['move-prefix', 'empty-bucket'] as const satisfies JobRecord['kind'][];
export type JobKind = JobRecord['kind'];

export function jobState(job: JobRecord): JobState {
  if (job.endedAtMs === undefined) return 'under-way';
  return job.kind === 'empty-bucket' && job.stage === 'refused' ? 'refused' : 'done';
}

/** Whether `driver` may make the next step of a job at this shard time: it drives it, or nobody does. */
export function mayDrive(job: MovePrefixJob, driver: string, nowMs: number): boolean {
  if (job.driver === undefined || job.driver === driver) return true;
  return nowMs - job.steppedAtMs >= LIMITS.jobStallTimeoutMs;
}

export const jobCodec = defineRecord<JobRecord>({ name: 'job', version: 1 });
export const moveErrorsCodec = defineRecord<MoveErrorsRecord>({ name: 'errors of a job', version: 1 });
