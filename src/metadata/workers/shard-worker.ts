// What the background jobs over shards have in common: a round visits each shard once and does one bounded unit there.
import { doubledPause } from '../../base/async/doubled-pause.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { Reply } from '../../ports/metadata/port.ts';
import type { Worker } from '../../ports/worker.ts';
import { AppError } from '../../types/errors.ts';

/** One unit of work in one shard. True: there may be more now. Throws when a reply is not to be had; tried again later. */
export type ShardUnit = (shard: number, signal: AbortSignal) => Promise<boolean>;

/** For units that take little memory and share nothing: one shard that is slow delays few others. */
export const SHARDS_AT_ONCE = 4;

export function createShardWorker(options: {
  name: string;
  /** Those whose open primary is here. */
  shards(): readonly number[];
  idleMs: number;
  /** Shards that are visited at once; default: one after the other. */
  atOnce?: number;
  unit: ShardUnit;
}): Worker {
  const { name, shards, idleMs, atOnce = 1, unit } = options;
  const rests = new FailedShards();
  let lastFirst: number | undefined;
  return {
    name,
    async work(signal) {
      let hasMore = false;
      let doneCount = 0;
      const failures: unknown[] = [];
      const others = rests.others(shards());
      // Each round begins with another shard. A unit may use up what all shards share, or take long: the shards behind it get
      // less in that round, and these must not be the same shards each time.
      const first = lastFirst === undefined ? 0 : (others.indexOf(lastFirst) + 1) % others.length;
      lastFirst = others[first];
      const rest = [...others.slice(first), ...others.slice(0, first)].values();
      const visit = async () => {
        for (const shard of rest) {
          if (signal.aborted) break;
          try {
            if (await unit(shard, signal)) hasMore = true;
            doneCount++;
            rests.worked(shard);
          } catch (error) {
            // The others have work, too: one shard that cannot go on must not leave theirs undone, nor slow it down.
            failures.push(error);
            rests.failed(shard);
          }
        }
      };
      await Promise.all(Array.from({ length: atOnce }, visit));
      if (failures.length > 0 && doneCount === 0) throw failures[0];
      rests.roundEnded(hasMore ? BUSY_ROUND_MS : idleMs);
      const failed = failures.length > 0 && { failures };
      return hasMore ? { state: 'busy', ...failed } : { state: 'idle', idleMs, ...failed };
    },
  };
}

/** The worker with a rest after each round that leaves more to do: as a multiple of the time that the round took. Clients come first. */
export function resting(
  worker: Worker,
  { clock, restShare }: { clock: Pick<ClockPort, 'monotonicMs'>; restShare: number },
): Worker {
  return {
    name: worker.name,
    async work(signal) {
      const beganAtMs = clock.monotonicMs();
      const outcome = await worker.work(signal);
      const restMs = restShare * (clock.monotonicMs() - beganAtMs);
      return outcome.state === 'busy' && restMs > 0 ? { ...outcome, state: 'idle', idleMs: restMs } : outcome;
    },
  };
}

/** How long a round counts for when the next one follows without a pause. */
const BUSY_ROUND_MS = 1000;
const REST_MIN_MS = 1000;
const REST_MAX_MS = 60_000;

/** Leaves shards whose units fail out of rounds, for longer each time. It has no clock, and adds up the lengths of rounds. */
export class FailedShards {
  readonly #rests = new Map<number, { leftMs: number; pauseMs: number }>();

  /** The shards of this round: those that do not rest. Where all of them rest, all. */
  others(shards: readonly number[]): readonly number[] {
    const led = new Set(shards);
    for (const shard of this.#rests.keys()) if (!led.has(shard)) this.#rests.delete(shard);
    const awake = shards.filter((shard) => (this.#rests.get(shard)?.leftMs ?? 0) <= 0);
    return awake.length === 0 ? shards : awake;
  }

  failed(shard: number): void {
    const pauseMs = doubledPause(this.#rests.get(shard)?.pauseMs, { minMs: REST_MIN_MS, maxMs: REST_MAX_MS });
    this.#rests.set(shard, { leftMs: pauseMs, pauseMs });
  }

  worked(shard: number): void {
    this.#rests.delete(shard);
  }

  roundEnded(lengthMs: number): void {
    for (const rest of this.#rests.values()) rest.leftMs -= lengthMs;
  }
}

/**
 * Advances each job of a shard; `advance` returns whether it has more to do now. One that fails keeps none behind it from
 * its turn: its error is thrown when all have had theirs. True: one at least has more.
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
 * Looks into each shard's queue, a page in each unit (B11): what cannot be done holds up nothing that is behind it,
 * and the next look begins with it. Kept in memory: after a restart a look begins at the queue's start once.
 */
export function createQueueWalks<Place>(): {
  /** Of the next page. */
  from(shard: number): { fromMs?: number; after?: Place };
  /** `next`: there may be more behind it; `lastMs`: the time of the last item; `leftFromMs`: of the first that is to come again. */
  passed(
    shard: number,
    page: { next: Place | undefined; lastMs: number | undefined; leftFromMs: number | undefined },
  ): void;
} {
  const walks = new Map<number, { fromMs?: number; after?: Place; leftFromMs?: number }>();
  return {
    from(shard) {
      const { fromMs, after } = walks.get(shard) ?? {};
      return { ...(fromMs !== undefined && { fromMs }), ...(after !== undefined && { after }) };
    },
    passed(shard, { next, lastMs, ...page }) {
      const before = walks.get(shard);
      const leftFromMs = before?.leftFromMs ?? page.leftFromMs;
      const fromMs = leftFromMs ?? lastMs ?? before?.fromMs;
      walks.set(shard, {
        ...(fromMs !== undefined && { fromMs }),
        // Where nothing was left the next page begins with all of the last ms: another item of it may come before those that
        // were seen.
        ...(next !== undefined && leftFromMs !== undefined && { after: next, leftFromMs }),
      });
    },
  };
}

/**
 * Where the next look into each shard's queue begins (B11). Kept in memory: after a restart a look begins at
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
