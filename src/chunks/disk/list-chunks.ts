// Lists the chunks of a disk by its index, in id order. It continues behind an unreadable part of the index; the scrub
// finds the chunks in there.

import { type ReadPage, readPage } from '../../base/read-page.ts';
import type { ChunkId } from '../../ports/chunks.ts';
import type { DiskOrders } from '../../ports/disk-orders.ts';
import type { KvPort } from '../../ports/kv.ts';
import { LIMITS } from '../../types/limits.ts';
import { homeShardOf } from '../../types/names.ts';
import { decodeIndexRow, indexBounds, parseIndexKey } from './keyspace.ts';

export interface ListedChunk {
  id: ChunkId;
  sizeBytes: number;
  receivedAtMs: number;
}

/** Fewer than `limit` only at the end. */
export async function listChunks(
  kv: Pick<KvPort, 'range'>,
  { after, limit }: { after?: ChunkId | undefined; limit: number },
): Promise<ListedChunk[]> {
  const found: ListedChunk[] = [];
  const bounds = indexBounds(after);
  for (let gte: Uint8Array | undefined = bounds.gte; gte !== undefined && found.length < limit; ) {
    const range = { column: 'index', gte, lt: bounds.lt, limit: limit - found.length };
    const { rows, next }: ReadPage = await readPage(kv, range);
    for (const { key, value } of rows) {
      const { sizeBytes, receivedAtMs } = decodeIndexRow(value);
      found.push({ id: parseIndexKey(key), sizeBytes, receivedAtMs });
    }
    gte = next;
  }
  return found;
}

/** See `DiskOrders`. */
export async function listChunksOf(
  kv: Pick<KvPort, 'range'>,
  options: Parameters<DiskOrders['listOf']>[0],
): ReturnType<DiskOrders['listOf']> {
  const homes = new Set(options.homes);
  const rows = await listChunks(kv, { after: options.after, limit: LIMITS.chunkScanRowsMax });
  const chunks = rows.filter(({ id }) => homes.has(homeShardOf(id.blobId))).slice(0, options.limit);
  const isFull = chunks.length === options.limit;
  if (!isFull && rows.length < LIMITS.chunkScanRowsMax) return { chunks };
  const last = isFull ? chunks.at(-1) : rows.at(-1);
  return last === undefined ? { chunks } : { chunks, next: last.id };
}
