// Commands and queries about work that goes on over many entries, or in other shards: jobs, the outbox, scans; and about what
// is kept of requests that are over, by their tokens.
import type { BucketId, JobId, OutboxId } from '../../types/names.ts';
import type { JobKind, JobRecord, JobState } from '../../types/records/job-record.ts';
import type { OutboxRecord } from '../../types/records/rows.ts';
import type { ScanRecord, ScanStep } from '../../types/records/scan-record.ts';

/** What a token stands for already, or that it was another request's. */
export type TokenAnswer<Outcome> = { kind: 'repeated'; outcome: Outcome } | { kind: 'token-reused' };

/** So much is kept of earlier requests that nothing may be kept of this one: it is not done. */
export interface OutcomeStoreFull {
  kind: 'too-much-kept';
}

/** What a request asks to be known by, and a digest of all that it asks for. */
export interface IdempotencyToken {
  token: string;
  digest: string;
}

export interface StoredToken {
  keptAtMs: number;
  bucketId: BucketId;
  token: string;
}

export interface JobCommands {
  'finish-outbox': { command: { ids: OutboxId[] }; outcome: { kind: 'finished' } };
  /** Writes nothing but the shard's time. */
  tick: { command: Record<never, never>; outcome: { kind: 'ticked' } };
  /** Jobs that ended so long ago that nobody may ask for them any more; others stay. */
  'forget-jobs': { command: { jobIds: JobId[] }; outcome: { kind: 'forgotten' } };
  /** Tokens that have been kept for long enough; others stay. `left`: of those that others held, or whose bucket they held. */
  'forget-tokens': {
    command: { tokens: Pick<StoredToken, 'bucketId' | 'token'>[]; leavesBusy?: true };
    outcome: { kind: 'forgotten'; left?: Pick<StoredToken, 'bucketId' | 'token'>[] };
  };
  /**
   * Of a request that was about no bucket. Where something is kept under the token already, that stays. `payer`: whose share of
   * what is kept it counts in, a partner's; no id of an account.
   */
  'keep-answer': {
    command: { token: IdempotencyToken; answer: unknown; payer: string };
    outcome: { kind: 'kept' } | OutcomeStoreFull;
  };
  /** How far the scan of this name has come in this shard. `gone`: another pass has begun since, or this one has ended. */
  'note-scan': {
    command: { name: string } & ScanStep;
    outcome: { kind: 'noted'; scan: ScanRecord } | { kind: 'gone' };
  };
}

export interface JobQueries {
  // Queues are in time order. `fromMs` is where the last look ended (its last item's time): without it a scan crawls
  // over what earlier ones have finished. `after` (exclusive) is for the pages of one look whose items may stay.
  'list-outbox': {
    query: { fromMs?: number; after?: OutboxId; limit: number };
    result: { items: { id: OutboxId; createdAtMs: number; record: OutboxRecord }[] };
  };
  /**
   * Those of a kind that are under way, in the order in which they began, without their errors; fewer than `limit` where they are
   * large. `next` is absent at the end.
   */
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
  /** What a token stands for already, for requests that look at more than their command does. */
  'get-kept-outcome': {
    query: { bucketId: BucketId; token: IdempotencyToken };
    result: TokenAnswer<unknown> | { kind: 'none' };
  };
  'list-kept-tokens': {
    query: { fromMs?: number; olderThanMs: number; limit: number };
    /** `keptAtMs` of the last one is where the next look begins. */
    result: { tokens: StoredToken[] };
  };
  /** Those that began last first, those that have ended too, without their errors. `before` which to go on, exclusive: the `next` of a page. */
  'list-jobs': {
    query: { before?: JobId; limit: number };
    /** Absent `next`: at the end. `nowMs`: shard time, from which the age of each job's last step follows. */
    result: { jobs: JobRecord[]; nowMs: number; next?: JobId };
  };
  /** Of each kind and state. */
  'count-jobs': {
    query: Record<never, never>;
    result: { counts: { kind: JobRecord['kind']; state: JobState; count: number }[] };
  };
  /** What is kept of requests that are over: under tokens, and jobs that no token leads to. */
  'count-kept': { query: Record<never, never>; result: { tokenBytes: number; tokenlessBytes: number } };
  /** `isBrief`: without the errors of a rename, which are many perhaps. */
  'get-job': { query: { jobId: JobId; isBrief?: true }; result: { job: JobRecord | null; nowMs: number } };
  /** null: none has begun yet. */
  'get-scan': { query: { name: string }; result: { scan: ScanRecord | null } };
}
