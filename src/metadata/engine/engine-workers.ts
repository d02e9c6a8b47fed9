// Background work of the engine itself, for the shards that are served here.
import type { Worker } from '../../ports/worker.ts';
import type { Shard } from './shard.ts';

const FORGET_IDLE_MS = 30_000;
const KEEP_TIME_IDLE_MS = 60_000;

/** `shards`: those of the moment. */
export function createEngineWorkers(shards: () => readonly Shard[]): Worker[] {
  let next = 0;
  let idleCount = 0;
  return [
    {
      name: 'forget-request-outcomes',
      async work() {
        const served = shards();
        const shard = served[next % Math.max(1, served.length)];
        if (shard === undefined) return { state: 'idle', idleMs: FORGET_IDLE_MS };
        idleCount = (await shard.forgetOutcomes()) ? 0 : idleCount + 1;
        next = (next + 1) % served.length;
        return idleCount < served.length ? { state: 'busy' } : { state: 'idle', idleMs: FORGET_IDLE_MS };
      },
    },
    {
      name: 'keep-shard-time',
      async work() {
        await Promise.all(shards().map((shard) => shard.keepTime()));
        return { state: 'idle', idleMs: KEEP_TIME_IDLE_MS };
      },
    },
  ];
}
