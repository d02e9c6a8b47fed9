// Brings forced deletions to their end (R21): those whose gateway went away before the bucket was deleted or open again,
// and what deleted buckets have left behind. A step of each at a time, so that none waits for a large one.
import { LIMITS } from '../../model/limits.ts';
import type { JobId } from '../../model/names.ts';
import type { EmptyBucketJob } from '../../model/records/job-record.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { MetadataPort } from '../../ports/metadata.ts';
import type { Worker } from '../../ports/worker.ts';
import { stepClosing } from '../drive-closing.ts';
import { createShardWorker, doneValue } from './shard-worker.ts';

/** Rest after a round of steps, as a multiple of the time that it took: clients come first. */
const REST_SHARE = 1;
const PAGE = 100;
const IDLE_MS = 1000;
/** Between two looks at all jobs of a shard, also at those that have ended. */
const WHOLE_LOOK_MS = 10 * 60_000;

export function createBucketEmptier(deps: {
  metadata: MetadataPort;
  shards(): readonly number[];
  clock: Pick<ClockPort, 'monotonicMs'>;
}): Worker {
  const { metadata, shards, clock } = deps;
  /** By shard: all jobs up to this one have ended. */
  const positions = new Map<number, JobId>();
  const wholeLooksAtMs = new Map<number, number>();
  /** Closings that were left by others, and are driven here until they are over. */
  const taken = new Set<JobId>();

  async function* jobsBehind(shard: number, first: JobId | undefined) {
    for (let after = first, isWhole = false; !isWhole; ) {
      const query = { ...(after && { after }), limit: PAGE };
      const { jobs, nowMs, next } = doneValue(await metadata.query({ shard }, 'list-jobs', query));
      for (const job of jobs) yield { job, nowMs };
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

  const steps = createShardWorker({
    name: 'empty-buckets',
    shards,
    idleMs: IDLE_MS,
    async unit(shard, signal) {
      const atMs = clock.monotonicMs();
      const isWhole = atMs >= (wholeLooksAtMs.get(shard) ?? 0) + WHOLE_LOOK_MS || !positions.has(shard);
      const old: JobId[] = [];
      let hasMore = false;
      let areOver = true;
      for await (const { job, nowMs } of jobsBehind(shard, isWhole ? undefined : positions.get(shard))) {
        signal.throwIfAborted();
        const { jobId, endedAtMs } = job;
        areOver &&= endedAtMs !== undefined;
        if (areOver) positions.set(shard, jobId);
        if (job.kind !== 'empty-bucket') continue;
        if (endedAtMs === undefined) hasMore = (await advance(shard, job, nowMs)) || hasMore;
        else if (nowMs - endedAtMs >= LIMITS.jobKeptMs) old.push(jobId);
      }
      if (isWhole) wholeLooksAtMs.set(shard, atMs);
      if (old.length > 0) doneValue(await metadata.execute({ shard }, 'forget-bucket-jobs', { jobIds: old }));
      return hasMore;
    },
  });

  return {
    name: steps.name,
    async work(signal) {
      const beganAtMs = clock.monotonicMs();
      const outcome = await steps.work(signal);
      const restMs = REST_SHARE * (clock.monotonicMs() - beganAtMs);
      return outcome.state === 'busy' && restMs > 0 ? { state: 'idle', idleMs: restMs } : outcome;
    },
  };
}
