// Commands and queries of MOVE: of one key at once, and of prefixes and large keys by jobs (service 4.2).
import type { Grant } from '../../types/acl.ts';
import type { MoveRefusal } from '../../types/move-refusals.ts';
import type { AccountId, BucketId, JobId, ObjectKey, VersionId } from '../../types/names.ts';
import type { WriteConditions } from '../../types/preconditions.ts';
import type { MovePrefixJob } from '../../types/records/job-record.ts';
import type { Tag } from '../../types/tags.ts';
import type { Versioning } from '../../types/versioning.ts';
import type { IdempotencyToken, OutcomeStoreFull } from './jobs.ts';

/** All versions and delete markers of a key are to bear another one. */
export interface KeyMove {
  from: ObjectKey;
  /** By which a prefix was replaced: it may be longer than a key can be. */
  to: string;
  /** On the current object of each, where there is one. */
  sourceConditions?: WriteConditions;
  targetConditions?: WriteConditions;
  /** The current object under `from` as the caller was judged by it; null: none was there. Absent: nobody has looked. */
  sourceJudged?: JudgedVersion | null;
}

/** What policies and lists look at. */
interface JudgedVersion {
  owner: AccountId;
  acl: readonly Grant[];
  tags: readonly Tag[];
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

/** Whose turns a step takes, and the look for its keys. */
export interface MoveTurn {
  bucketId: BucketId;
  /** Of the bucket; absent where the job began before this was noted. */
  owner?: AccountId;
}

/** Which step of a job for MOVE an entry is. */
interface MoveStep extends MoveTurn {
  jobId: JobId;
  /** It drives the job from here on. */
  driver: string;
  /** Behind so many steps: no step is made twice. */
  stepCount: number;
  /** Where the walk stood when its keys were looked for: another driver's step of this number may have been a shorter one. */
  begin: MoveCursor;
}

/** What is asked of the move of one key, in one entry or in several. */
interface MoveOfKey {
  bucketId: BucketId;
  move: KeyMove;
  overwrites: boolean;
  /** Nothing moves where one of the versions has an access control list. */
  isPrivateOnly?: true;
  token?: IdempotencyToken;
}

export interface MoveCommands {
  /** MOVE of one key (service 4.2). */
  'move-key': {
    command: MoveOfKey;
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
      isPrivateOnly?: true;
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
   * A job for MOVE of one key that has more than one entry may hold. Its latest version, and its null version, move at
   * once: `result` has them. Until the job has ended nothing else changes the two keys. Repeated under its token: that job.
   */
  'begin-key-move': {
    command: MoveOfKey & { driver: string };
    outcome:
      | { kind: 'begun'; job: MovePrefixJob; result: VersionId[]; versioning: Versioning }
      | { kind: 'refused'; result: MoveRefusal; versioning: Versioning }
      | { kind: 'began-before'; jobId: JobId }
      | { kind: 'too-many-jobs' }
      | OutcomeStoreFull
      | { kind: 'token-reused' };
  };
  /**
   * A step of a key that moves in several entries. `open`: its latest and its null version move, or the outcome says why it
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
}

export interface MoveQueries {
  /** The next keys of a prefix's walk, as many as one step may move. */
  'find-moves': {
    query: MoveTurn & { from: string; to: string; cursor: MoveCursor; keysMax: number };
    /** `cursor`: behind them; absent at the end of the walk. */
    result: { keys: ObjectKey[]; cursor?: MoveCursor };
  };
}
