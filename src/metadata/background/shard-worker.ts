// What the background jobs over shards have in common: a round visits each shard once and does one bounded unit there.
import { AppError } from '../../model/errors.ts';
import type { Reply } from '../../ports/metadata.ts';
import type { Worker } from '../../ports/worker.ts';

/** One unit of work in one shard. True: there may be more now. Throws when a reply is not to be had; tried again later. */
export type ShardUnit = (shard: number, signal: AbortSignal) => Promise<boolean>;

export function createShardWorker(options: {
  name: string;
  /** Those whose open primary is here. */
  shards(): readonly number[];
  idleMs: number;
  unit: ShardUnit;
}): Worker {
  const { name, shards, idleMs, unit } = options;
  return {
    name,
    async work(signal) {
      const hasMore = await forEachJob(shards(), signal, (shard) => unit(shard, signal));
      return hasMore ? { state: 'busy' } : { state: 'idle', idleMs };
    },
  };
}

/**
 * Advances each of `jobs`, which may be whole shards; `advance` tells whether it has more to do now. One that fails keeps
 * none behind it from its turn, which would leave their work undone for ever: its error is thrown when all have had theirs.
 * True: one at least has more.
 */
export async function forEachJob<Job>(
  jobs: readonly Job[],
  signal: AbortSignal,
  advance: (job: Job) => Promise<boolean>,
): Promise<boolean> {
  let hasMore = false;
  const failures: unknown[] = [];
  for (const job of jobs) {
    if (signal.aborted) break;
    try {
      if (await advance(job)) hasMore = true;
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
  return hasMore;
}

/** The value of a reply; throws ServiceUnavailable for all others: what a unit left undone is found again. */
export function doneValue<T>(reply: Reply<T>): T {
  if (reply.kind !== 'done') throw new AppError('ServiceUnavailable');
  return reply.value;
}

/**
 * Where the next look into each shard's queue begins (protocol B11). Kept in memory: after a restart a look begins at
 * the queue's start once.
 */
export function createQueueCursors(): {
  from(shard: number): { fromMs?: number };
  /** Everything before `timeMs` is done. */
  advance(shard: number, timeMs: number): void;
  /** Nothing of the shard's is known to be done. */
  forget(shard: number): void;
} {
  const times = new Map<number, number>();
  return {
    from(shard) {
      const fromMs = times.get(shard);
      return fromMs === undefined ? {} : { fromMs };
    },
    advance: (shard, timeMs) => times.set(shard, timeMs),
    forget: (shard) => void times.delete(shard),
  };
}
