// Brings forced deletions to their end (R21): those whose gateway went away before the bucket was deleted or open again,
// and what deleted buckets have left behind. A step of each at a time, so that none waits for a large one.

import type { ClockPort } from '../../ports/clock.ts';
import type { MetadataPort } from '../../ports/metadata/port.ts';
import type { Worker } from '../../ports/worker.ts';
import { LIMITS } from '../../types/limits.ts';
import type { JobId } from '../../types/names.ts';
import type { EmptyBucketJob, JobRecord } from '../../types/records/job-record.ts';
import { createShardWorker, doneValue, forEachJob, resting } from '../workers/shard-worker.ts';
import { closingCalls, stepClosing } from './drive-closing.ts';

/** Rest after a round of steps, as a multiple of the time that it took: clients come first. */
const REST_SHARE = 1;
const IDLE_MS = 1000;
/** Of one shard in one round, oldest first. */
const JOBS_MAX = 1000;

export function createBucketEmptier(deps: {
  metadata: MetadataPort;
  shards(): readonly number[];
  clock: Pick<ClockPort, 'monotonicMs'>;
}): Worker {
  const { metadata, shards, clock } = deps;
  /** Closings that were left by others, and are driven here until they are over. */
  const taken = new Set<JobId>();

  /** True: there is more to do now. */
  async function advance(shard: number, job: EmptyBucketJob, nowMs: number): Promise<boolean> {
    const { bucketId, jobId, stepCount, stage, steppedAtMs } = job;
    if (stage !== 'look') {
      const command = { bucketId, jobId, stepCount };
      const outcome = doneValue(await metadata.execute({ shard }, 'empty-bucket', command));
      return outcome.kind === 'elsewhere' || outcome.job.endedAtMs === undefined;
    }
    if (!taken.has(jobId) && nowMs - steppedAtMs < LIMITS.jobStallTimeoutMs) return false;
    taken.add(jobId);
    const { kind } = await stepClosing(closingCalls(metadata, shard), job);
    if (kind !== 'looking') taken.delete(jobId);
    return true;
  }

  const steps = createShardWorker({
    name: 'empty-buckets',
    shards,
    idleMs: IDLE_MS,
    async unit(shard, signal) {
      const query = { kind: 'empty-bucket', limit: JOBS_MAX } as const;
      const { jobs, nowMs } = doneValue(await metadata.query({ shard }, 'list-open-jobs', query));
      return forEachJob(jobs.filter(isEmptying), signal, (job) => advance(shard, job, nowMs));
    },
  });

  return resting(steps, { clock, restShare: REST_SHARE });
}

function isEmptying(job: JobRecord): job is EmptyBucketJob {
  return job.kind === 'empty-bucket';
}
