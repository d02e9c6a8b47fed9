// Processes ended links: blobs without another link are marked for deletion, and claims on blobs of other shards are
// released (R26, R29).
import type { MetadataPort } from '../../ports/metadata/port.ts';
import type { Worker } from '../../ports/worker.ts';
import { createQueueCursors, createShardWorker, doneValue } from '../workers/shard-worker.ts';

const BATCH = 250;
const IDLE_MS = 1000;

export function createDeletionMarker(deps: { metadata: MetadataPort; shards(): readonly number[] }): Worker {
  const { metadata, shards } = deps;
  const cursors = createQueueCursors();
  return createShardWorker({
    name: 'mark-blobs',
    shards,
    idleMs: IDLE_MS,
    async unit(shard) {
      const query = { ...cursors.from(shard), limit: BATCH };
      const { ended } = doneValue(await metadata.query({ shard }, 'list-ended-links', query));
      const last = ended.at(-1);
      if (last === undefined) return false;
      const { kind } = doneValue(await metadata.execute({ shard }, 'condemn-blobs', { ended }));
      // R23: they wait for the operator's word.
      if (kind === 'unconfirmed') return false;
      cursors.advance(shard, last.endedAtMs);
      return ended.length === BATCH;
    },
  });
}
