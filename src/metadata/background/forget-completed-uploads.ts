// Forgets the answers of Completes after seven days (s3-behaviour 29).
import { LIMITS } from '../../model/limits.ts';
import type { MetadataPort } from '../../ports/metadata.ts';
import type { TimeJumps } from '../../ports/time-jumps.ts';
import type { Worker } from '../../ports/worker.ts';
import { createQueueCursors, createShardWorker, doneValue } from './shard-worker.ts';

const BATCH = 250;
const IDLE_MS = 60 * 60_000;

export function createCompletedUploadForgetter(deps: {
  metadata: MetadataPort;
  shards(): readonly number[];
  timeJumps: Pick<TimeJumps, 'mayRemoveByAge'>;
}): Worker {
  const { metadata, shards, timeJumps } = deps;
  const cursors = createQueueCursors();
  return createShardWorker({
    name: 'forget-completed-uploads',
    shards,
    idleMs: IDLE_MS,
    async unit(shard) {
      if (!timeJumps.mayRemoveByAge(shard)) return false;
      const query = { ...cursors.from(shard), olderThanMs: LIMITS.completedUploadKeptMs, limit: BATCH };
      const { completed } = doneValue(await metadata.query({ shard }, 'list-completed-uploads', query));
      const last = completed.at(-1);
      if (last === undefined) return false;
      const uploadIds = completed.map(({ uploadId }) => uploadId);
      doneValue(await metadata.execute({ shard }, 'forget-completed-uploads', { uploadIds }));
      cursors.advance(shard, last.completedAtMs);
      return completed.length === BATCH;
    },
  });
}
