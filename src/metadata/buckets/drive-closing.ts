// Drives a forced deletion from its closing to its decision: looks through the bucket in bounded steps, and reports to the
// shard. Any driver, and any number of them, continues where the deletion is.

import type { ClosingOutcome } from '../../ports/metadata/buckets.ts';
import type { CommandOf, MetadataPort, QueryOf, ResultOf } from '../../ports/metadata/port.ts';
import type { EmptyBucketJob } from '../../types/records/job-record.ts';
import { doneValue } from '../workers/shard-worker.ts';

/** Versions that one look goes through. */
export const LOOK_ROWS_MAX = 10_000;

/** Of the bucket's home; they throw where they are not answered, and the job is left as it is. */
export interface ClosingCalls {
  look(query: QueryOf<'find-protected'>): Promise<ResultOf<'find-protected'>>;
  step(command: CommandOf<'step-closing'>): Promise<ClosingOutcome>;
}

/** By the port. */
export function closingCalls(metadata: MetadataPort, shard: number): ClosingCalls {
  return {
    look: async (query) => doneValue(await metadata.query({ shard }, 'find-protected', query)),
    step: async (command) => doneValue(await metadata.execute({ shard }, 'step-closing', command)),
  };
}

/** One look and its step. */
export async function stepClosing(calls: ClosingCalls, job: EmptyBucketJob): Promise<ClosingOutcome> {
  const { bucketId, jobId, stepCount, after } = job;
  const limit = LOOK_ROWS_MAX;
  const { count, kept, next } = await calls.look({ bucketId, ...(after !== undefined && { after }), limit });
  const step = { bucketId, jobId, stepCount, count };
  if (kept !== undefined) return calls.step({ ...step, next: { kind: 'reopen' } });
  return calls.step({
    ...step,
    next: next === undefined ? { kind: 'delete' } : { kind: 'look', after: next },
  });
}

/** All of them. */
export async function driveClosing(
  calls: ClosingCalls,
  job: EmptyBucketJob,
): Promise<Exclude<ClosingOutcome, { kind: 'looking' }>> {
  for (let now = job; ; ) {
    const outcome = await stepClosing(calls, now);
    if (outcome.kind !== 'looking') return outcome;
    now = outcome.job;
  }
}
