// Ends the parts of uploads that were aborted or have expired: some of each at a time, so that none waits for a large one.
import type { MetadataPort } from '../../ports/metadata.ts';
import type { Worker } from '../../ports/worker.ts';
import { createQueueCursors, createShardWorker, doneValue, forEachJob } from './shard-worker.ts';

const BATCH = 20;
const IDLE_MS = 1000;

export function createPartRelease(deps: { metadata: MetadataPort; shards(): readonly number[] }): Worker {
  const { metadata, shards } = deps;
  const cursors = createQueueCursors();
  return createShardWorker({
    name: 'release-parts',
    shards,
    idleMs: IDLE_MS,
    async unit(shard, signal) {
      const query = { ...cursors.from(shard), limit: BATCH };
      const { ended } = doneValue(await metadata.query({ shard }, 'list-ended-uploads', query));
      let unfinishedAtMs: number | undefined;
      await forEachJob(ended, signal, async (upload) => {
        const { isLast } = doneValue(await metadata.execute({ shard }, 'release-parts', upload));
        if (!isLast) unfinishedAtMs ??= upload.endedAtMs;
        return !isLast;
      });
      signal.throwIfAborted();
      const nextAtMs = unfinishedAtMs ?? ended.at(-1)?.endedAtMs;
      if (nextAtMs !== undefined) cursors.advance(shard, nextAtMs);
      return unfinishedAtMs !== undefined || ended.length === BATCH;
    },
  });
}
