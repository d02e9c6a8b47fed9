// The commands and queries of what goes beyond S3: renames, compositions, appends, forced deletions, and the tokens by
// which they may be repeated. Part of the tables in metadata-commands.ts and metadata-queries.ts, as plain data.
import type { BucketId, JobId } from '../model/names.ts';
import type { JobRecord } from '../model/records/job-record.ts';

/** What a request asks to be known by, and a digest of all that it asks for. */
export interface IdempotencyToken {
  token: string;
  digest: string;
}

export interface KeptToken {
  keptAtMs: number;
  bucketId: BucketId;
  token: string;
}

export interface ExtensionCommands {
  /** Tokens that have been kept for long enough; others stay. */
  'forget-tokens': {
    command: { tokens: Pick<KeptToken, 'bucketId' | 'token'>[] };
    outcome: { kind: 'forgotten' };
  };
}

export interface ExtensionQueries {
  'list-kept-tokens': {
    query: { fromMs?: number; olderThanMs: number; limit: number };
    /** `keptAtMs` of the last one is where the next look begins. */
    result: { tokens: KeptToken[] };
  };
  /** In the order in which they began, those that have ended too; `next` is absent at the end. */
  'list-jobs': {
    query: { after?: JobId; limit: number };
    result: { jobs: JobRecord[]; next?: JobId };
  };
  'get-job': { query: { jobId: JobId }; result: { job: JobRecord | null } };
}
