// Forgets idempotency tokens after a day (extensions.md 2.1).
import { LIMITS } from '../../model/limits.ts';
import type { MetadataPort } from '../../ports/metadata.ts';
import type { TimeJumps } from '../../ports/time-jumps.ts';
import type { Worker } from '../../ports/worker.ts';
import { createQueueCursors, createShardWorker, doneValue } from './shard-worker.ts';

const BATCH = 250;
const IDLE_MS = 10 * 60_000;

export function createTokenForgetter(deps: {
  metadata: MetadataPort;
  shards(): readonly number[];
  timeJumps: Pick<TimeJumps, 'mayRemoveByAge'>;
}): Worker {
  const { metadata, shards, timeJumps } = deps;
  const cursors = createQueueCursors();
  return createShardWorker({
    name: 'forget-tokens',
    shards,
    idleMs: IDLE_MS,
    async unit(shard) {
      if (!timeJumps.mayRemoveByAge(shard)) return false;
      const query = { ...cursors.from(shard), olderThanMs: LIMITS.idempotencyTokenKeptMs, limit: BATCH };
      const { tokens } = doneValue(await metadata.query({ shard }, 'list-kept-tokens', query));
      const last = tokens.at(-1);
      if (last === undefined) return false;
      doneValue(await metadata.execute({ shard }, 'forget-tokens', { tokens }));
      cursors.advance(shard, last.keptAtMs);
      return tokens.length === BATCH;
    },
  });
}
