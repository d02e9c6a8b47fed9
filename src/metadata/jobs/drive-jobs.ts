// Drives on prefix MOVEs that nobody else drives (R21): the client of the request that began one is gone, or its gateway.
// Accounts have their turns, a step each (account-turns.ts): none waits for another one's many or large jobs.
import { doubledPause } from '../../base/async/doubled-pause.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { MetadataPort } from '../../ports/metadata/port.ts';
import type { Worker } from '../../ports/worker.ts';
import { LIMITS } from '../../types/limits.ts';
import type { JobId } from '../../types/names.ts';
import { type JobRecord, type MovePrefixJob, mayDrive } from '../../types/records/job-record.ts';
import { driveMove, type MoveCalls, type MovedKeys, REST_SHARE } from '../moves/drive-move.ts';
import { createAccountTurns } from '../workers/account-turns.ts';
import { doneValue, FailedShards } from '../workers/shard-worker.ts';

/** Every primary of a shard drives under the same name: after a failover or a restart it continues at once. */
const DRIVER = 'shard';
/** Accounts whose steps are under way at once. */
const AT_ONCE_MAX = 4;
/** For so long steps are made before it is looked for other jobs that have been left. */
const TURNS_MS = 500;
const FAILED_REST_MIN_MS = 1000;
const FAILED_REST_MAX_MS = 60_000;

interface Task {
  shard: number;
  jobId: JobId;
  /** Whose turns it takes. */
  account: string;
}

interface Rest {
  untilMs: number;
  pauseMs: number;
}

export function createJobDriver(deps: {
  metadata: MetadataPort;
  shards(): readonly number[];
  clock: Pick<ClockPort, 'monotonicMs' | 'sleep'>;
}): Worker {
  const { metadata, shards, clock } = deps;
  const failedShards = new FailedShards();
  /** Walks that are under way here, each up to its last step. */
  const walks = new Map<JobId, AsyncGenerator<MovedKeys, void>>();
  /** Jobs whose last step failed. */
  const rests = new Map<JobId, Rest>();

  function callsOf(shard: number, jobId: JobId): MoveCalls {
    return {
      findMoves: async (query) => doneValue(await metadata.query({ shard }, 'find-moves', query)),
      step: async (command) => doneValue(await metadata.execute({ shard }, 'step-move', command)),
      stepKey: async (command) => doneValue(await metadata.execute({ shard }, 'step-key-move', command)),
      async findJob() {
        const { job, nowMs } = doneValue(
          await metadata.query({ shard }, 'get-job', { jobId, isBrief: true }),
        );
        return job?.kind === 'move-prefix' ? { job, nowMs } : undefined;
      },
      driver: DRIVER,
      // Another driver goes on with it.
      pause: async () => false,
      // Nobody waits for it, and clients of this shard may: steps are small. The rests between them are taken here.
      others: { areWaiting: () => true, rest: async () => {} },
    };
  }

  async function* walkOf({ shard, jobId }: Task): AsyncGenerator<MovedKeys, void> {
    const calls = callsOf(shard, jobId);
    const found = await calls.findJob();
    if (found !== undefined) yield* driveMove(calls, found.job);
  }

  /** One step, and the rest behind it. True: the job may have more. */
  async function step(task: Task, underWay: number): Promise<boolean> {
    const { jobId } = task;
    const beganAtMs = clock.monotonicMs();
    const walk = walks.get(jobId) ?? walkOf(task);
    walks.set(jobId, walk);
    try {
      const { done } = await walk.next();
      rests.delete(jobId);
      if (done) walks.delete(jobId);
      const restMs = REST_SHARE * underWay * (clock.monotonicMs() - beganAtMs);
      if (restMs > 0) await clock.sleep(restMs);
      return !done;
    } catch (error) {
      walks.delete(jobId);
      const limits = { minMs: FAILED_REST_MIN_MS, maxMs: FAILED_REST_MAX_MS };
      const pauseMs = doubledPause(rests.get(jobId)?.pauseMs, limits);
      rests.set(jobId, { untilMs: clock.monotonicMs() + pauseMs, pauseMs });
      throw error;
    }
  }

  const turns = createAccountTurns<Task>({
    atOnceMax: AT_ONCE_MAX,
    accountOf: ({ account }) => account,
    idOf: ({ jobId }) => jobId,
    step,
  });

  /** Of this shard, those that nobody else drives. */
  async function findLeft(shard: number): Promise<Task[]> {
    const query = { kind: 'move-prefix', limit: LIMITS.jobsWithOnlyOnesMax } as const;
    const tasks: Task[] = [];
    for (let after: JobId | undefined; ; ) {
      const page = { ...query, ...(after && { after }) };
      const { jobs, nowMs, next } = doneValue(await metadata.query({ shard }, 'list-open-jobs', page));
      const left = jobs.filter(isMove).filter((job) => mayDrive(job, DRIVER, nowMs));
      for (const { jobId, owner, bucketId } of left) tasks.push({ shard, jobId, account: owner ?? bucketId });
      if (next === undefined) return tasks;
      after = next;
    }
  }

  async function findAllLeft(signal: AbortSignal): Promise<{ tasks: Task[]; failures: unknown[] }> {
    const tasks: Task[] = [];
    const failures: unknown[] = [];
    for (const shard of failedShards.others(shards())) {
      if (signal.aborted) break;
      try {
        tasks.push(...(await findLeft(shard)));
        failedShards.worked(shard);
      } catch (error) {
        failures.push(error);
        failedShards.failed(shard);
      }
    }
    return { tasks, failures };
  }

  /** What is known of jobs that are not to be driven here any more is forgotten. */
  async function forgetOthers(tasks: readonly Task[]): Promise<void> {
    const listed = new Set(tasks.map(({ jobId }) => jobId));
    for (const jobId of rests.keys()) if (!listed.has(jobId)) rests.delete(jobId);
    for (const [jobId, walk] of walks) {
      if (listed.has(jobId)) continue;
      walks.delete(jobId);
      await walk.return();
    }
  }

  return {
    name: 'drive-jobs',
    async work(signal) {
      const beganAtMs = clock.monotonicMs();
      const found = await findAllLeft(signal);
      await forgetOthers(found.tasks);
      const ready = found.tasks.filter(({ jobId }) => (rests.get(jobId)?.untilMs ?? 0) <= beganAtMs);
      const hasEnded = () => signal.aborted || clock.monotonicMs() - beganAtMs >= TURNS_MS;
      const made = await turns.take(ready, hasEnded);
      const failures = [...found.failures, ...made.failures];
      const idleMs = LIMITS.jobLookMs;
      failedShards.roundEnded(made.hasMore ? clock.monotonicMs() - beganAtMs : idleMs);
      const failed = failures.length > 0 && { failures };
      return made.hasMore ? { state: 'busy', ...failed } : { state: 'idle', idleMs, ...failed };
    },
  };
}

function isMove(job: JobRecord): job is MovePrefixJob {
  return job.kind === 'move-prefix';
}
