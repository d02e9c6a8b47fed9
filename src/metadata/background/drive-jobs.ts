// Drives on jobs whose driver has left them (R21): the gateway that began a prefix's MOVE is gone, or its client is.
import { LIMITS } from '../../model/limits.ts';
import type { JobRecord, MovePrefixJob } from '../../model/records/job-record.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { MetadataPort } from '../../ports/metadata.ts';
import type { Worker } from '../../ports/worker.ts';
import { driveMove, type MoveCalls, restBetweenSteps } from '../drive-move.ts';
import { createShardWorker, doneValue, forEachJob } from './shard-worker.ts';

const IDLE_MS = 5000;
/** Of one job in one unit of work: the other shards have jobs, too. */
const STEPS_MAX = 16;

export function createJobDriver(deps: {
  metadata: MetadataPort;
  shards(): readonly number[];
  clock: Pick<ClockPort, 'monotonicMs' | 'sleep'>;
}): Worker {
  const { metadata, shards, clock } = deps;

  function callsOf(shard: number, { jobId }: MovePrefixJob): MoveCalls {
    return {
      findMoves: async (query) => doneValue(await metadata.query({ shard }, 'find-moves', query)),
      step: async (command) => doneValue(await metadata.execute({ shard }, 'step-move', command)),
      async findJob() {
        const { job } = doneValue(await metadata.query({ shard }, 'get-job', { jobId }));
        return job?.kind === 'move-prefix' ? job : undefined;
      },
      // Another driver goes on with it.
      pause: async () => false,
      // Nobody waits for it, and clients of this shard may.
      others: restBetweenSteps(clock, () => true),
    };
  }

  /** True when the job is not at its end. */
  async function drive(shard: number, job: MovePrefixJob, signal: AbortSignal): Promise<boolean> {
    let stepCount = 0;
    for await (const _ of driveMove(callsOf(shard, job), job)) {
      if (++stepCount === STEPS_MAX || signal.aborted) return true;
    }
    return false;
  }

  /** Jobs that this driver is in the middle of: they are not left. */
  const own = new Set<string>();

  return createShardWorker({
    name: 'drive-jobs',
    shards,
    idleMs: IDLE_MS,
    async unit(shard, signal) {
      const query = { kind: 'move-prefix', limit: LIMITS.jobsMax } as const;
      const { jobs, nowMs } = doneValue(await metadata.query({ shard }, 'list-open-jobs', query));
      const left = jobs.filter(isMove).filter(({ jobId, steppedAtMs }) => {
        return own.has(jobId) || nowMs - steppedAtMs >= LIMITS.jobLeftMs;
      });
      return forEachJob(left, signal, async (job) => {
        own.delete(job.jobId);
        const hasMore = await drive(shard, job, signal);
        if (hasMore) own.add(job.jobId);
        return hasMore;
      });
    },
  });
}

function isMove(job: JobRecord): job is MovePrefixJob {
  return job.kind === 'move-prefix';
}
