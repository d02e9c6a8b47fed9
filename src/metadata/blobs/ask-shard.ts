// A question to a shard whose asker goes on without it, or later, where it does not answer now.
import type { MetadataPort, QueryName, QueryOf, Reply, ResultOf } from '../../ports/metadata/port.ts';

/** A shard does not answer now. */
export class SilentShard extends Error {
  readonly shard: number;

  constructor(shard: number) {
    super(`shard ${shard} does not answer`);
    this.shard = shard;
  }
}

/** What the shard says. Throws {@link SilentShard}. */
export async function askShard<N extends QueryName>(
  metadata: Pick<MetadataPort, 'query'>,
  shard: number,
  name: N,
  query: QueryOf<N>,
): Promise<ResultOf<N>> {
  const reply: Reply<ResultOf<N>> = await metadata.query({ shard }, name, query);
  if (reply.kind !== 'done') throw new SilentShard(shard);
  return reply.value;
}
