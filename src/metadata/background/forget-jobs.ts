// Forgets jobs a day after their end, when nobody may ask for their outcome any more (extensions.md 2.1).
import type { MetadataPort } from '../../ports/metadata.ts';
import type { TimeJumps } from '../../ports/time-jumps.ts';
import type { Worker } from '../../ports/worker.ts';
import { createShardWorker, doneValue } from './shard-worker.ts';

const BATCH = 250;
const IDLE_MS = 10 * 60_000;

export function createJobForgetter(deps: {
  metadata: MetadataPort;
  shards(): readonly number[];
  timeJumps: Pick<TimeJumps, 'mayRemoveByAge'>;
}): Worker {
  const { metadata, shards, timeJumps } = deps;
  return createShardWorker({
    name: 'forget-jobs',
    shards,
    idleMs: IDLE_MS,
    async unit(shard) {
      if (!timeJumps.mayRemoveByAge(shard)) return false;
      const { jobIds } = doneValue(await metadata.query({ shard }, 'list-ended-jobs', { limit: BATCH }));
      if (jobIds.length === 0) return false;
      doneValue(await metadata.execute({ shard }, 'forget-jobs', { jobIds }));
      return jobIds.length === BATCH;
    },
  });
}
