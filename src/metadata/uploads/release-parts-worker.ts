// Ends the parts of uploads that were aborted or have expired: some of each at a time, so that none waits for a large one.
import type { MetadataPort, ResultOf } from '../../ports/metadata/port.ts';
import type { Worker } from '../../ports/worker.ts';
import { createQueueWalks, createShardWorker, doneValue, SHARDS_AT_ONCE } from '../workers/shard-worker.ts';

const BATCH = 20;
const IDLE_MS = 1000;

type EndedUpload = ResultOf<'list-ended-uploads'>['ended'][number];

export function createPartRelease(deps: { metadata: MetadataPort; shards(): readonly number[] }): Worker {
  const { metadata, shards } = deps;
  const walks = createQueueWalks<EndedUpload>();
  return createShardWorker({
    name: 'release-parts',
    shards,
    idleMs: IDLE_MS,
    atOnce: SHARDS_AT_ONCE,
    async unit(shard, signal) {
      const query = { ...walks.from(shard), limit: BATCH };
      const { ended } = doneValue(await metadata.query({ shard }, 'list-ended-uploads', query));
      const left: EndedUpload[] = [];
      const failures: unknown[] = [];
      for (const upload of ended) {
        signal.throwIfAborted();
        try {
          const { isLast } = doneValue(await metadata.execute({ shard }, 'release-parts', upload));
          if (!isLast) left.push(upload);
        } catch (error) {
          // One that cannot end keeps none that ended behind it.
          left.push(upload);
          failures.push(error);
        }
      }
      const last = ended.at(-1);
      const next = ended.length === BATCH ? last : undefined;
      walks.passed(shard, { next, lastMs: last?.endedAtMs, leftFromMs: left[0]?.endedAtMs });
      if (failures.length > 0) throw failures[0];
      return next !== undefined || left.length > 0;
    },
  });
}
