// The reverse sweep (R32): walks the index of a disk and asks each blob's home shard whether it knows the blob. Chunks that
// no commit can reference any more are dropped: those of requests and processes that ended before their commit. Chunks of
// blobs that are marked for deletion are erased by the workers of src/metadata/blobs (R31).

import type { ChunkId, ChunkPort, Fence } from '../../ports/chunks.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { MetadataPort } from '../../ports/metadata/port.ts';
import type { Logger } from '../../ports/telemetry.ts';
import type { Worker } from '../../ports/worker.ts';
import { LIMITS } from '../../types/limits.ts';
import { homeShardOf, idTimeMs } from '../../types/names.ts';
import { isOfSweepAge, mayBeOrphan } from '../../types/sweep-age.ts';

const PAGE_CHUNKS = 500;
const PAUSE_BETWEEN_PASSES_MS = 60 * 60 * 1000;
/** Pause after a pass in which a shard did not answer; doubled each time, up to the usual pause. */
const PAUSE_AFTER_REFUSAL_MS = 10_000;

export interface SweepDeps {
  chunks: Pick<ChunkPort, 'list' | 'drop'>;
  metadata: MetadataPort;
  clock: ClockPort;
  log: Logger;
  /** The fence of drops for a shard (R21). */
  fenceOf(shard: number): Fence;
}

export function createChunkSweep(deps: SweepDeps): Worker {
  const { chunks, clock, log } = deps;
  let after: ChunkId | undefined;
  let droppedCount = 0;
  /** Where the next pass begins to make up for what the last one had to skip: behind which chunk. */
  let heldUp: { after: ChunkId | undefined } | undefined;
  let refusalPauseMs = PAUSE_AFTER_REFUSAL_MS;

  function endPass(): { state: 'idle'; idleMs: number } {
    if (droppedCount > 0) log.info({ droppedCount }, 'orphan-chunks-dropped');
    droppedCount = 0;
    after = heldUp?.after;
    const idleMs = heldUp === undefined ? PAUSE_BETWEEN_PASSES_MS : refusalPauseMs;
    refusalPauseMs =
      heldUp === undefined ? PAUSE_AFTER_REFUSAL_MS : Math.min(2 * refusalPauseMs, PAUSE_BETWEEN_PASSES_MS);
    heldUp = undefined;
    return { state: 'idle', idleMs };
  }

  /** The number of dropped chunks. A failure for one shard does not hold up the others. */
  async function sweep(
    shard: number,
    ids: readonly ChunkId[],
    signal: AbortSignal,
  ): Promise<number | 'refused'> {
    try {
      const orphans = await findOrphans(deps, shard, ids);
      if (orphans === 'refused') return 'refused';
      if (orphans.length > 0) await chunks.drop(orphans, deps.fenceOf(shard));
      return orphans.length;
    } catch (error) {
      if (!signal.aborted) log.warn({ err: error, shard, chunkCount: ids.length }, 'sweep-failed');
      return 'refused';
    }
  }

  return {
    name: 'sweep-chunks',
    async work(signal) {
      const page = await chunks.list({ limit: PAGE_CHUNKS, ...(after && { after }) });
      const nowMs = clock.wallMs();
      const old = page.filter((chunk) => mayBeOrphan(chunk, nowMs));
      for (const [shard, ids] of byHomeShard(old.map(({ id }) => id))) {
        if (signal.aborted) return { state: 'busy' };
        const swept = await sweep(shard, ids, signal);
        if (swept === 'refused') heldUp ??= { after };
        else droppedCount += swept;
      }
      after = page.at(-1)?.id;
      // Ids are in time order: there is nothing to ask about behind a young one.
      const hasMore = page.length === PAGE_CHUNKS && after !== undefined && isOfSweepAge(after, nowMs);
      return hasMore ? { state: 'busy' } : endPass();
    },
  };
}

function byHomeShard(ids: readonly ChunkId[]): Map<number, ChunkId[]> {
  return Map.groupBy(ids, ({ blobId }) => homeShardOf(blobId));
}

/** Chunks whose blob the shard does not know and can never come to know. */
async function findOrphans(
  { metadata }: SweepDeps,
  shard: number,
  ids: readonly ChunkId[],
): Promise<ChunkId[] | 'refused'> {
  // The time first, the look-up second: a blob that is unknown at a committed time past its age stays unknown (R25).
  const tick = await metadata.execute({ shard }, 'tick', {});
  if (tick.kind !== 'done') return 'refused';
  const late = ids.filter(({ blobId }) => tick.timeMs - idTimeMs(blobId) > LIMITS.blobIdAgeMaxMs);
  const blobIds = [...new Set(late.map(({ blobId }) => blobId))];
  if (blobIds.length === 0) return [];
  const found = await metadata.query({ shard }, 'get-blobs', { blobIds });
  // R23: a blob that its home does not know may be one that the home has lost.
  if (found.kind !== 'done' || found.value.isUnconfirmed) return 'refused';
  const unknown = new Set(blobIds.filter((_, at) => (found.value.blobs[at] ?? null) === null));
  return late.filter(({ blobId }) => unknown.has(blobId));
}
