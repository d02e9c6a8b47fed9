// Shard time as the shards last told it: ids are minted from it, never from this machine's clock (R24).
import { LIMITS } from '../model/limits.ts';
import type { ClockPort } from '../ports/clock.ts';
import type { MetadataCalls } from './object-store.ts';

export interface ShardTimes {
  /** At most LIMITS.shardTimeKeptMs old: it is asked for when no reply has told it lately. */
  timeMs(calls: MetadataCalls, shard: number): Promise<number>;
  /** Learns from a reply. */
  note(shard: number, timeMs: number): void;
}

export function createShardTimes(clock: ClockPort): ShardTimes {
  const times = new Map<number, { timeMs: number; heardAtMs: number }>();
  function note(shard: number, timeMs: number): void {
    times.set(shard, { timeMs, heardAtMs: clock.monotonicMs() });
  }
  return {
    note,
    async timeMs(calls, shard) {
      const known = times.get(shard);
      if (known !== undefined && clock.monotonicMs() - known.heardAtMs < LIMITS.shardTimeKeptMs)
        return known.timeMs;
      const { timeMs } = await calls.query({ shard }, 'get-blobs', { blobIds: [] });
      note(shard, timeMs);
      return timeMs;
    },
  };
}
