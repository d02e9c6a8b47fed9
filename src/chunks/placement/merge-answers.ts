// Merges the answers of several disks into one.
import type { ChunkPort, ChunkTotals } from '../../ports/chunks.ts';

type Listed = Awaited<ReturnType<ChunkPort['list']>>[number];
type Usage = Awaited<ReturnType<ChunkPort['usage']>>;
type Recount = Awaited<ReturnType<ChunkPort['recount']>>;

/**
 * The first `limit` chunks of all pages, each once. Every page has the first chunks of its disk, so none is skipped. The
 * receipt time is that of the youngest copy: the sweep must not take the chunk earlier (R32).
 */
export function mergeChunkPages(pages: readonly (readonly Listed[])[], limit: number): Listed[] {
  const merged: Listed[] = [];
  for (const chunk of pages.flat().sort(compareChunks)) {
    const last = merged.at(-1);
    if (last !== undefined && compareChunks(last, chunk) === 0) {
      last.receivedAtMs = Math.max(last.receivedAtMs, chunk.receivedAtMs);
    } else if (merged.length === limit) break;
    else merged.push({ ...chunk });
  }
  return merged;
}

function compareChunks({ id: a }: Listed, { id: b }: Listed): number {
  if (a.blobId !== b.blobId) return a.blobId < b.blobId ? -1 : 1;
  return a.index - b.index;
}

export function sumUsages(usages: readonly Usage[]): Usage {
  const sum = (of: (usage: Usage) => number) => usages.reduce((total, usage) => total + of(usage), 0);
  return {
    ...sumTotals(usages),
    pendingReclaimBytes: sum((usage) => usage.pendingReclaimBytes),
    diskFreeBytes: sum((usage) => usage.diskFreeBytes),
    diskTotalBytes: sum((usage) => usage.diskTotalBytes),
  };
}

export function sumRecounts(recounts: readonly Recount[]): Recount {
  return {
    counted: sumTotals(recounts.map(({ counted }) => counted)),
    kept: sumTotals(recounts.map(({ kept }) => kept)),
  };
}

function sumTotals(totals: readonly ChunkTotals[]): ChunkTotals {
  return {
    chunkCount: totals.reduce((count, one) => count + one.chunkCount, 0),
    liveBytes: totals.reduce((bytes, one) => bytes + one.liveBytes, 0),
  };
}
