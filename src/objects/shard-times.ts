// The last known time of each shard: ids are made from it, never from this machine's clock (R24).

import type { ClockPort } from '../ports/clock.ts';
import type { MetadataPort, Reply } from '../ports/metadata/port.ts';
import { LIMITS } from '../types/limits.ts';
import type { MetadataCalls } from './object-store.ts';

export interface ShardTimes {
  /** At most LIMITS.shardTimeKeptMs old: the shard is asked when no reply has carried its time lately. */
  timeMs(calls: MetadataCalls, shard: number): Promise<number>;
  /** The same port, which learns the time from all replies: a request that has read its bucket need not ask for the time. */
  learnFrom(metadata: MetadataPort): MetadataPort;
}

export function createShardTimes(clock: ClockPort): ShardTimes {
  const times = new Map<number, { timeMs: number; learntAtMs: number }>();

  async function learn<T>(shard: number, answer: Promise<Reply<T>>): Promise<Reply<T>> {
    const reply = await answer;
    if ('timeMs' in reply) times.set(shard, { timeMs: reply.timeMs, learntAtMs: clock.monotonicMs() });
    return reply;
  }

  return {
    async timeMs(calls, shard) {
      const known = times.get(shard);
      if (known !== undefined && clock.monotonicMs() - known.learntAtMs < LIMITS.shardTimeKeptMs)
        return known.timeMs;
      const { timeMs } = await calls.query({ shard }, 'get-blobs', { blobIds: [] });
      return timeMs;
    },
    learnFrom: (metadata) => ({
      shardCount: metadata.shardCount,
      execute: (envelope, name, command) => learn(envelope.shard, metadata.execute(envelope, name, command)),
      query: (envelope, name, query) => learn(envelope.shard, metadata.query(envelope, name, query)),
    }),
  };
}
