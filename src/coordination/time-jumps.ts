// Jumps of the clock in a cluster, as its shards have noted them (R19): asked and accepted over the metadata port.
import type { MetadataPort } from '../ports/metadata/port.ts';
import type { TimeJumps } from '../ports/time-jumps.ts';
import { sumOfAccepted } from '../types/accepted-jumps.ts';
import { requireDone } from '../types/require-done.ts';

/** Throws AppError ServiceUnavailable while a shard does not answer: what it has noted is not known then. */
export function createTimeJumps(metadata: MetadataPort): Pick<TimeJumps, 'unacceptedMs' | 'accept'> {
  const shards = Array.from({ length: metadata.shardCount }, (_, shard) => shard);
  return {
    async unacceptedMs() {
      const ask = async (shard: number) => requireDone(await metadata.query({ shard }, 'get-time-jump', {}));
      const found = await Promise.all(shards.map(ask));
      return Math.max(...found.map(({ jumpMs }) => jumpMs));
    },
    async accept(atMostMs) {
      const accept = async (shard: number) =>
        requireDone(await metadata.execute({ shard }, 'accept-time-jump', { atMostMs }));
      return sumOfAccepted(await Promise.all(shards.map(accept)));
    },
  };
}
