// When the owners before a change may be forgotten: every home has looked at all of its chunks by that map or a later one,
// and what is not where it should be is a debt of the home, which knows who has it (R39).
import type { MetadataPort } from '../../ports/metadata.ts';

/** Shards that are asked at once. */
const ASKED_MAX = 16;

/** The least placement version by which all shards have ended an audit. undefined: not all have, or not all answer. */
export async function auditedAt(metadata: MetadataPort): Promise<number | undefined> {
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
