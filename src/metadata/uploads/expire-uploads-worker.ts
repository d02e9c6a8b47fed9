// Ends uploads that their clients have left: above an age, or of a deleted bucket.
import type { MetadataPort } from '../../ports/metadata/port.ts';
import type { TimeJumps } from '../../ports/time-jumps.ts';
import type { Worker } from '../../ports/worker.ts';
import { createLateItems } from '../workers/late-items.ts';
import { createQueueCursors, createShardWorker, doneValue, SHARDS_AT_ONCE } from '../workers/shard-worker.ts';
import type { UploadName } from './uploads.ts';

const BATCH = 100;
const IDLE_MS = 60_000;
/** Above every age. */
const NO_AGE_MS = Number.MAX_SAFE_INTEGER;

export function createUploadExpiry(deps: {
  metadata: MetadataPort;
  shards(): readonly number[];
  /** Age at which an upload is ended. */
  uploadKeptMs: number;
  timeJumps: Pick<TimeJumps, 'mayRemoveByAge'>;
}): Worker {
  const { metadata, shards, uploadKeptMs, timeJumps } = deps;
  const cursors = createQueueCursors();
  const late = createLateItems<UploadName>(({ uploadId }) => uploadId);
  return createShardWorker({
    name: 'expire-uploads',
    shards,
    idleMs: IDLE_MS,
    atOnce: SHARDS_AT_ONCE,
    async unit(shard) {
      // Those of deleted buckets go all the same: it is not their age that ends them.
      const olderThanMs = timeJumps.mayRemoveByAge(shard) ? uploadKeptMs : NO_AGE_MS;
      const query = { ...cursors.from(shard), olderThanMs, limit: BATCH };
      const reply = await metadata.query({ shard }, 'list-stale-uploads', query);
      const { uploads, emptiedBucketIds } = doneValue(reply);
      if (uploads.length > 0 || emptiedBucketIds.length > 0) {
        const some = uploads.slice(0, BATCH);
        const command = { uploads: some, olderThanMs, emptiedBucketIds, leavesBusy: true } as const;
        const { left = [] } = doneValue(await metadata.execute({ shard }, 'expire-uploads', command));
        const leftOut = some.filter(({ uploadId }) => left.includes(uploadId));
        late.begin(shard, leftOut, (upload) =>
          metadata.execute({ shard }, 'expire-uploads', { uploads: [upload], olderThanMs }),
        );
        // Those that others hold are not asked about again and again.
        if (some.length > 0 && leftOut.length === some.length) return false;
      } else if (reply.kind === 'done') {
        cursors.advance(shard, Math.max(0, reply.timeMs - olderThanMs));
      }
      return uploads.length > 0;
    },
  });
}
