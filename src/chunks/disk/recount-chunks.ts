// Counts the chunks of a disk by its index, beside the totals that it keeps: for fsck.
import { concatBytes } from '../../base/bytes/bytes.ts';
import type { ChunkPort } from '../../ports/chunks.ts';
import type { KvPort } from '../../ports/kv.ts';
import { NOTHING } from './disk-totals.ts';
import { decodeIndexRow, decodeTotals, indexBounds, isIndexKey, TOTALS_KEY } from './keyspace.ts';

const PAGE_ROWS = 1000;

/** Both are of one moment. */
export async function recountChunks(kv: Pick<KvPort, 'cursor'>): ReturnType<ChunkPort['recount']> {
  const counted = { chunkCount: 0, liveBytes: 0 };
  const { gte } = indexBounds();
  // The totals lie behind the chunks, so one cursor sees both at one moment (L3).
  const cursor = kv.cursor({ column: 'index', gte, lt: concatBytes(TOTALS_KEY, Uint8Array.of(0)) });
  try {
    for (let isInside = true; isInside; ) {
      // As many rows as are read in one call of another thread.
      const rows = await cursor.next(PAGE_ROWS);
      for (const { key, value } of rows) {
        if (!isIndexKey(key)) continue;
        counted.chunkCount++;
        counted.liveBytes += decodeIndexRow(value).sizeBytes;
      }
      isInside = rows.length === PAGE_ROWS;
    }
    cursor.seek(TOTALS_KEY);
    const [totals] = await cursor.next(1);
    return { counted, kept: totals === undefined ? { ...NOTHING } : decodeTotals(totals.value) };
  } finally {
    cursor.close();
  }
}
