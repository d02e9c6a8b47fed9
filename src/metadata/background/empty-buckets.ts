// Brings forced deletions to their end (R21): those whose gateway went away before the bucket was deleted or open again,
// and what deleted buckets have left behind. A step of each at a time, so that none waits for a large one.
import { LIMITS } from '../../model/limits.ts';
import type { JobId } from '../../model/names.ts';
import type { EmptyBucketJob } from '../../model/records/job-record.ts';
import type { MetadataPort } from '../../ports/metadata.ts';
import type { Worker } from '../../ports/worker.ts';
import { stepClosing } from '../drive-closing.ts';
import { createShardWorker, doneValue } from './shard-worker.ts';

const PAGE = 100;
const IDLE_MS = 1000;
export function createBucketEmptier(deps: { metadata: MetadataPort; shards(): readonly number[] }): Worker {
  const { metadata, shards } = deps;
  /** Closings that were left by others, and are driven here until they are over. */
  const taken = new Set<JobId>();

  async function* jobsOf(shard: number) {
    for (let after: JobId | undefined, isWhole = false; !isWhole; ) {
      const query = { kind: 'empty-bucket', ...(after && { after }), limit: PAGE } as const;
      const { jobs, nowMs, next } = doneValue(await metadata.query({ shard }, 'list-open-jobs', query));
      for (const job of jobs) if (job.kind === 'empty-bucket') yield { job, nowMs };
      [after, isWhole] = [next, next === undefined];
    }
  }

  /** True: there is more to do now. */
  async function advance(shard: number, job: EmptyBucketJob, nowMs: number): Promise<boolean> {
    const { bucketId, jobId, stepCount, stage, steppedAtMs } = job;
    if (stage !== 'look') {
      const command = { bucketId, jobId, stepCount };
      const outcome = doneValue(await metadata.execute({ shard }, 'empty-bucket', command));
      return outcome.kind === 'elsewhere' || outcome.job.endedAtMs === undefined;
    }
    if (!taken.has(jobId) && nowMs - steppedAtMs < LIMITS.jobLeftMs) return false;
    taken.add(jobId);
    const { kind } = await stepClosing(
      {
        look: async (query) => doneValue(await metadata.query({ shard }, 'look-for-kept', query)),
        step: async (command) => doneValue(await metadata.execute({ shard }, 'step-closing', command)),
      },
      job,
    );
    if (kind !== 'looking') taken.delete(jobId);
    return true;
  }

  return createShardWorker({
    name: 'empty-buckets',
    shards,
    idleMs: IDLE_MS,
    async unit(shard, signal) {
      let hasMore = false;
      for await (const { job, nowMs } of jobsOf(shard)) {
        signal.throwIfAborted();
        hasMore = (await advance(shard, job, nowMs)) || hasMore;
      }
      return hasMore;
    },
  });
}
