// What one batch of wire.ts asks, done on the disk.

import type { ServedDisk } from '../../ports/chunk-server.ts';
import type { ChunkId, Fence } from '../../ports/chunks.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { InspectedChunk, Order } from '../../ports/disk-orders.ts';
import { LIMITS } from '../../types/limits.ts';
import { homeShardOf } from '../../types/names.ts';
import { fromInspected, fromUsage } from './answers.ts';
import { Refused } from './refused.ts';
import type { BatchBody, BatchName, OrderName } from './wire.ts';

export interface BatchAsked extends BatchBody {
  /** Of the sender's placement map. */
  version: number;
  /** Aborts when nobody waits for the answer any more. */
  signal: AbortSignal;
  clock: Pick<ClockPort, 'monotonicMs'>;
}

export function runBatch(chunks: ServedDisk, name: BatchName, asked: BatchAsked): Promise<unknown> {
  const { ids, fence, after, limit, homes } = asked;
  const page = { limit, ...(after && { after }) };
  switch (name) {
    case 'have':
      return chunks.have(ids);
    case 'drop':
      if (fence === undefined) throw new Refused('malformed');
      refuseOtherHomes(ids, fence);
      return chunks.drop(ids, fence).then(() => null);
    case 'list':
      return chunks.list(page);
    case 'usage':
      return chunks.usage().then(fromUsage);
    case 'recount':
      return chunks.recount();
    case 'list-aside':
      return chunks.listQuarantined({ ...page, homes });
    case 'list-of':
      return chunks.listOf({ ...page, homes });
    default:
      return runOrder(chunks, name, asked);
  }
}

function runOrder(chunks: ServedDisk, name: OrderName, asked: BatchAsked): Promise<unknown> {
  const { ids, fence, version, signal, pull } = asked;
  if (fence === undefined) throw new Refused('malformed');
  refuseOtherHomes(ids, fence);
  const order = { fence, mapVersion: version };
  switch (name) {
    case 'inspect':
      return inspect(chunks, order, asked).then((found) => found.map(fromInspected));
    case 'pull': {
      const [id] = ids;
      if (pull === undefined || id === undefined || ids.length > 1) throw new Refused('malformed');
      return chunks.pull({ id, ...pull }, order, signal);
    }
    case 'drop-misplaced':
      return chunks.dropMisplaced(ids, order).then(() => null);
    case 'drop-aside':
      return chunks.dropQuarantined(ids, order).then(() => null);
  }
}

/** Who orders for one shard has no say over the chunks of another. */
export function refuseOtherHomes(ids: readonly ChunkId[], { shard }: Fence): void {
  if (ids.some(({ blobId }) => homeShardOf(blobId) !== shard)) throw new Refused('malformed');
}

/** Of the first of `ids`, as many as are read in bounded time; the sender asks for the others again. */
async function inspect(chunks: ServedDisk, order: Order, asked: BatchAsked): Promise<InspectedChunk[]> {
  const { ids, readBytes, signal, clock } = asked;
  if (!readBytes) return chunks.inspect(ids, order, { readBytes, signal });
  const endMs = clock.monotonicMs() + LIMITS.chunkInspectMaxMs;
  const found: InspectedChunk[] = [];
  let readSizeBytes = 0;
  while (found.length < Math.min(ids.length, LIMITS.chunkInspectIdsMax)) {
    // One by one, for each may take LIMITS.chunkReadMaxMs.
    const next = ids.slice(found.length, found.length + 1);
    const verified = await chunks.inspect(next, order, { readBytes, signal });
    found.push(...verified);
    for (const one of verified) if (one.kind === 'whole') readSizeBytes += one.sizeBytes;
    if (readSizeBytes >= LIMITS.chunkInspectBytesMax || clock.monotonicMs() >= endMs) break;
  }
  return found;
}
