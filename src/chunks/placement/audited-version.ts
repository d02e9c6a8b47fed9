// When previous owners may be forgotten: every home shard has audited all of its chunks by this map or a later one, and
// each misplaced chunk has a repair entry that names its holders (R39).
import type { MetadataPort } from '../../ports/metadata/port.ts';

/** Shards asked at once. */
const ASKED_MAX = 16;

/** The lowest placement version at which all shards have ended an audit; undefined while one has not, or does not answer. */
export async function auditedVersion(metadata: MetadataPort): Promise<number | undefined> {
  const shards = Array.from({ length: metadata.shardCount }, (_, shard) => shard);
  let least: number | undefined;
  for (let from = 0; from < shards.length; from += ASKED_MAX) {
    const some = shards.slice(from, from + ASKED_MAX);
    const replies = await Promise.all(some.map((shard) => metadata.query({ shard }, 'get-audit', {})));
    for (const reply of replies) {
      const version = reply.kind === 'done' ? reply.value.audit?.ended?.mapVersion : undefined;
      if (version === undefined) return undefined;
      least = Math.min(least ?? version, version);
    }
  }
  return least;
}
