// Processes ended links: blobs without another link are marked for deletion, and claims on blobs of other shards are
// released (R26, R29).
import type { EndedLink } from '../../ports/metadata/blobs.ts';
import type { MetadataPort } from '../../ports/metadata/port.ts';
import type { Worker } from '../../ports/worker.ts';
import { createLateItems } from '../workers/late-items.ts';
import { createQueueWalks, createShardWorker, doneValue, SHARDS_AT_ONCE } from '../workers/shard-worker.ts';
import { linkText } from './links.ts';

const BATCH = 250;
const IDLE_MS = 1000;

export function createDeletionMarker(deps: { metadata: MetadataPort; shards(): readonly number[] }): Worker {
  const { metadata, shards } = deps;
  const walks = createQueueWalks<EndedLink>();
  const late = createLateItems<EndedLink>(linkText);
  return createShardWorker({
    name: 'mark-blobs',
    shards,
    idleMs: IDLE_MS,
    atOnce: SHARDS_AT_ONCE,
    async unit(shard) {
      const query = { ...walks.from(shard), limit: BATCH };
      const { ended } = doneValue(await metadata.query({ shard }, 'list-ended-links', query));
      const last = ended.at(-1);
      const next = ended.length === BATCH ? last : undefined;
      if (last === undefined) {
        walks.passed(shard, { next, lastMs: undefined, leftFromMs: undefined });
        return false;
      }
      const command = { ended, leavesBusy: true } as const;
      const outcome = doneValue(await metadata.execute({ shard }, 'condemn-blobs', command));
      // R23: they wait for the operator's word.
      if (outcome.kind === 'unconfirmed') return false;
      const { left = [] } = outcome;
      late.begin(shard, left, (link) => metadata.execute({ shard }, 'condemn-blobs', { ended: [link] }));
      walks.passed(shard, { next, lastMs: last.endedAtMs, leftFromMs: left[0]?.endedAtMs });
      return next !== undefined;
    },
  });
}
