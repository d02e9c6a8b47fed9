// Drives a prefix's MOVE over shards of a test, as a gateway would.
import { driveMove, type MoveCalls, type MovedKeys } from '../../../src/metadata/moves/drive-move.ts';
import type { MovePrefixJob } from '../../../src/types/records/job-record.ts';
import { BUCKET, type MetadataShards } from './metadata-shards.ts';

/** As whom jobs are begun and driven here. */
export const DRIVER = 'a gateway';

export function moveCalls(world: MetadataShards, { jobId }: Pick<MovePrefixJob, 'jobId'>): MoveCalls {
  return {
    findMoves: (query) => world.query('find-moves', query),
    step: (command) => world.execute('step-move', command),
    stepKey: (command) => world.execute('step-key-move', command),
    async findJob() {
      const { job, nowMs } = await world.query('get-job', { jobId });
      return job?.kind === 'move-prefix' ? { job, nowMs } : undefined;
    },
    driver: DRIVER,
    pause: async () => false,
  };
}

/** Of BUCKET. */
export async function beginMove(
  world: MetadataShards,
  { from, to, overwrites = false }: { from: string; to: string; overwrites?: boolean },
): Promise<MovePrefixJob> {
  const begun = await world.execute('begin-move', {
    bucketId: BUCKET,
    from,
    to,
    overwrites,
    driver: DRIVER,
  });
  if (begun.kind !== 'begun') throw new Error(begun.kind);
  return begun.job;
}

/** To its end; what each step did, and the job then. */
export async function driveJob(
  world: MetadataShards,
  job: MovePrefixJob,
): Promise<{ steps: MovedKeys[]; ended: MovePrefixJob | undefined }> {
  const steps: MovedKeys[] = [];
  const calls = moveCalls(world, job);
  for await (const step of driveMove(calls, job)) steps.push(step);
  return { steps, ended: (await calls.findJob())?.job };
}
