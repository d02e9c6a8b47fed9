// Shard time as the shards last told it: ids are minted from it, never from this machine's clock (R24).

import type { ClockPort } from '../ports/clock.ts';
import type { MetadataPort, Reply } from '../ports/metadata.ts';
import { LIMITS } from '../types/limits.ts';
import type { MetadataCalls } from './object-store.ts';

export interface ShardTimes {
  /** At most LIMITS.shardTimeKeptMs old: it is asked for when no reply has told it lately. */
  timeMs(calls: MetadataCalls, shard: number): Promise<number>;
  /** The same port, all of whose replies are learnt from: who has asked for a bucket need not ask for the time as well. */
  learnFrom(metadata: MetadataPort): MetadataPort;
}

export function createShardTimes(clock: ClockPort): ShardTimes {
  const times = new Map<number, { timeMs: number; heardAtMs: number }>();

  async function learn<T>(shard: number, answer: Promise<Reply<T>>): Promise<Reply<T>> {
    const reply = await answer;
    if ('timeMs' in reply) times.set(shard, { timeMs: reply.timeMs, heardAtMs: clock.monotonicMs() });
    return reply;
  }

  return {
    async timeMs(calls, shard) {
      const known = times.get(shard);
      if (known !== undefined && clock.monotonicMs() - known.heardAtMs < LIMITS.shardTimeKeptMs)
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
