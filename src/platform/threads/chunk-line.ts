// The chunk port between threads: the one that has the chunk store serves it, the others have it. Bytes of chunks are moved,
// and the memory of what has been written goes back to a thread that writes, for its next chunk.
// No call asks whether the line has room. Each is part of a request in flight, and the lease of a body has the bytes of the few
// puts or gets of it that wait (body-budget.ts). So they are bounded, below what a line has room for (limit-relations.ts).
import { must } from '../../base/assert.ts';
import type {
  ChunkId,
  ChunkPart,
  ChunkPort,
  ChunkRead,
  ChunkReadOptions,
  Fence,
} from '../../ports/chunks.ts';
import type { ThreadLine } from './thread-line.ts';

type Put = readonly [id: ChunkId, checksum: number | null];
type Get = readonly [id: ChunkId, isProven: boolean, part: ChunkPart | null];

/** Over a line whose other end serves it. `onReleased`: memory to use again. */
export function createLineChunks(line: ThreadLine, onReleased: (buffer: ArrayBuffer) => void): ChunkPort {
  const ask = async <T>(name: string, value: unknown) => (await line.ask(name, value)).value as T;
  return {
    async put(id, bytes, checksum) {
      const { value, bytes: spare } = await line.ask('put-chunk', [id, checksum ?? null], bytes);
      if (spare?.buffer instanceof ArrayBuffer) onReleased(spare.buffer);
      return (value as Awaited<ReturnType<ChunkPort['put']>> | null) ?? undefined;
    },
    async get(id, { isProven, part }: ChunkReadOptions = { isProven: false }) {
      const { value, bytes } = await line.ask('get-chunk', [id, isProven, part ?? null]);
      const read = value as ChunkRead;
      return read.kind === 'found' ? { ...read, bytes: must(bytes, 'a chunk has bytes') } : read;
    },
    have: (ids) => ask('have-chunks', ids),
    async drop(ids, fence) {
      await line.ask('drop-chunks', [ids, fence]);
    },
    list: (options) => ask('list-chunks', options),
    usage: () => ask('chunk-usage', {}),
    recount: () => ask('recount-chunks', {}),
  };
}

/** Memory of chunks that were written, up to `bytesMax` of it. */
export function createSpares(bytesMax: number): {
  give(buffer: ArrayBuffer): void;
  take(): ArrayBuffer | undefined;
} {
  const spares: ArrayBuffer[] = [];
  let sumBytes = 0;
  return {
    give(buffer) {
      if (sumBytes + buffer.byteLength > bytesMax) return;
      sumBytes += buffer.byteLength;
      spares.push(buffer);
    },
    take() {
      const spare = spares.pop();
      sumBytes -= spare?.byteLength ?? 0;
      return spare;
    },
  };
}

/** `takeSpare`: memory of a chunk that was written, if there is some; the thread that puts the next one gets it. */
export function serveChunks(
  line: ThreadLine,
  { chunks, takeSpare }: { chunks: ChunkPort; takeSpare(): ArrayBuffer | undefined },
): void {
  line.serve({
    async 'put-chunk'([id, checksum]: Put, bytes) {
      const value = await chunks.put(id, must(bytes, 'a chunk has bytes'), checksum ?? undefined);
      const spare = takeSpare();
      return { value: value ?? null, ...(spare && { bytes: new Uint8Array(spare) }) };
    },
    async 'get-chunk'([id, isProven, part]: Get) {
      const read = await chunks.get(id, { isProven, part: part ?? undefined });
      if (read.kind !== 'found') return { value: read };
      const { bytes, ...found } = read;
      return { value: found, bytes };
    },
    'have-chunks': async (ids: readonly ChunkId[]) => ({ value: await chunks.have(ids) }),
    async 'drop-chunks'([ids, fence]: readonly [readonly ChunkId[], Fence]) {
      await chunks.drop(ids, fence);
      return {};
    },
    'list-chunks': async (options: Parameters<ChunkPort['list']>[0]) => ({
      value: await chunks.list(options),
    }),
    'chunk-usage': async () => ({ value: await chunks.usage() }),
    'recount-chunks': async () => ({ value: await chunks.recount() }),
  });
}
