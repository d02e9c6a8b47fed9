// Totals of a disk: chunks and bytes. Each commit carries them as an absolute row; commits apply in call order, so the last
// one is right.
import type { ChunkTotals } from '../../ports/chunks.ts';
import type { DiskSpace } from '../../ports/disk-reserve.ts';
import type { KvPort, KvPut } from '../../ports/kv.ts';
import { decodeTotals, encodeTotals, TOTALS_KEY } from './keyspace.ts';

export const NOTHING: ChunkTotals = { chunkCount: 0, liveBytes: 0 };

export class DiskTotals {
  readonly #totals: ChunkTotals;

  private constructor(totals: ChunkTotals) {
    this.#totals = totals;
  }

  static async open(kv: Pick<KvPort, 'getMany'>): Promise<DiskTotals> {
    const [row] = await kv.getMany('index', [TOTALS_KEY]);
    return new DiskTotals(row === undefined ? { ...NOTHING } : decodeTotals(row));
  }

  get(): ChunkTotals {
    return { ...this.#totals };
  }

  count(chunks: number, bytes: number): void {
    this.#totals.chunkCount += chunks;
    this.#totals.liveBytes += bytes;
  }

  /** The totals now. */
  row(): KvPut {
    return { column: 'index', key: TOTALS_KEY, value: encodeTotals(this.#totals) };
  }
}

/** What a disk reports about its room. */
export function usageOf(facts: {
  space: DiskSpace;
  stored: ReturnType<KvPort['usage']>;
  totals: ChunkTotals;
}): ChunkTotals & { pendingReclaimBytes: number; diskFreeBytes: number; diskTotalBytes: number } {
  const { space, stored, totals } = facts;
  // Everything the store holds beyond the live chunks waits to be compacted away.
  const heldBytes = stored.liveBytes + stored.pendingReclaimBytes;
  return {
    ...totals,
    pendingReclaimBytes: Math.max(0, heldBytes - totals.liveBytes),
    diskFreeBytes: space.freeBytes,
    diskTotalBytes: space.totalBytes,
  };
}
