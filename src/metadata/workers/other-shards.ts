// What the work of a shard asks of other shards (R29, R30): each of them by itself, so that one that is silent, or slow,
// holds up nothing that is for the others. The one place that knows which do not answer; a guess of this worker.
import { doubledPause } from '../../base/async/doubled-pause.ts';
import { within } from '../../base/async/within.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { MetadataPort } from '../../ports/metadata/port.ts';
import type { Logger } from '../../ports/telemetry.ts';
import { LIMITS } from '../../types/limits.ts';

/** What work needs that asks other shards. */
export interface AskingWorkDeps {
  metadata: MetadataPort;
  /** Whose work it is: those whose open primary is here. */
  shards(): readonly number[];
  clock: Pick<ClockPort, 'monotonicMs' | 'sleep'>;
  log: Logger;
}

export interface OtherShards {
  /** Not to be asked now: it has not answered lately, or has not yet answered what it was asked before. */
  isAway(shard: number): boolean;
  /**
   * Runs `ask` for each of those that are not away, all at once; `ask` rejects with OwnFailure, or when the shard did not
   * answer, which it has then reported. Resolves when all have ended, or after LIMITS.shardLateMs: what is late goes on,
   * and its shard is away until it ends.
   */
  askEach<Part>(
    parts: ReadonlyMap<number, Part>,
    ask: (shard: number, part: Part) => Promise<void>,
  ): Promise<void>;
}

/** The other shard has answered; what has failed is what the asking one was to make of it. */
export class OwnFailure extends Error {}

/** Rejects with OwnFailure. */
export async function ofOwn<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    throw new OwnFailure('the shard itself does not answer', { cause });
  }
}

interface Rest {
  untilMs: number;
  pauseMs: number;
}

export function createOtherShards(clock: Pick<ClockPort, 'monotonicMs' | 'sleep'>): OtherShards {
  const rests = new Map<number, Rest>();
  /** One question of a shard at most, so that what is late takes the memory of one. */
  const asked = new Set<number>();

  function failed(shard: number): void {
    const bounds = { minMs: LIMITS.shardRestMinMs, maxMs: LIMITS.shardRestMaxMs };
    const pauseMs = doubledPause(rests.get(shard)?.pauseMs, bounds);
    rests.set(shard, { untilMs: clock.monotonicMs() + pauseMs, pauseMs });
  }

  function isAway(shard: number): boolean {
    return asked.has(shard) || (rests.get(shard)?.untilMs ?? 0) > clock.monotonicMs();
  }

  async function askOne(shard: number, ask: () => Promise<void>): Promise<void> {
    asked.add(shard);
    try {
      await ask();
      rests.delete(shard);
    } catch (error) {
      if (error instanceof OwnFailure) rests.delete(shard);
      else failed(shard);
    } finally {
      asked.delete(shard);
    }
  }

  return {
    isAway,
    async askEach(parts, ask) {
      const present = [...parts].filter(([shard]) => !isAway(shard));
      if (present.length === 0) return;
      const all = Promise.all(present.map(([shard, part]) => askOne(shard, () => ask(shard, part))));
      await within(all, LIMITS.shardLateMs, clock);
    },
  };
}
