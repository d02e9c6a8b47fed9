// The metadata port between threads: the one that has the shards serves it, the others have it.
import { must } from '../../base/assert.ts';
import type { Envelope, MetadataPort, Reply } from '../../ports/metadata/port.ts';
import type { ThreadLine } from './thread-line.ts';

type Call = readonly [envelope: Envelope, name: never, body: never];

const BUSY = { kind: 'busy' } as const;

/** Over a line whose other end serves it. A line with too many questions under way is `busy`. */
export function createLineMetadata(line: ThreadLine, shardCount: number): MetadataPort {
  async function ask(kind: 'execute' | 'query', call: readonly unknown[]): Promise<Reply<never>> {
    if (!line.hasRoom()) return BUSY;
    return (await line.ask(kind, call)).value as Reply<never>;
  }
  return {
    shardCount,
    execute: (envelope, name, command) => ask('execute', [envelope, name, command]),
    query: (envelope, name, query) => ask('query', [envelope, name, query]),
  };
}

/** One port over those of several threads, each of which has the shards that {@link shardsOf} says. */
export function joinMetadata(ports: readonly MetadataPort[]): MetadataPort {
  const portOf = (shard: number) => must(ports[shard % ports.length], 'there is a thread');
  return {
    shardCount: portOf(0).shardCount,
    execute: (envelope, name, command) => portOf(envelope.shard).execute(envelope, name, command),
    query: (envelope, name, query) => portOf(envelope.shard).query(envelope, name, query),
  };
}

/** The shards of thread `index` of `threads`. */
export function shardsOf(
  index: number,
  { threads, shardCount }: { threads: number; shardCount: number },
): number[] {
  return Array.from({ length: shardCount }, (_, shard) => shard).filter((shard) => shard % threads === index);
}

export function serveMetadata(line: ThreadLine, metadata: MetadataPort): void {
  line.serve({
    execute: async ([envelope, name, body]: Call) => ({
      value: await metadata.execute(envelope, name, body),
    }),
    query: async ([envelope, name, body]: Call) => ({ value: await metadata.query(envelope, name, body) }),
  });
}
