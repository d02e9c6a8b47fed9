// The metadata port between threads: the one that has the shards serves it, the others have it.
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

export function serveMetadata(line: ThreadLine, metadata: MetadataPort): void {
  line.serve({
    execute: async ([envelope, name, body]: Call) => ({
      value: await metadata.execute(envelope, name, body),
    }),
    query: async ([envelope, name, body]: Call) => ({ value: await metadata.query(envelope, name, body) }),
  });
}
