// The reverse sweep of a cluster (R32): walks what each disk has of the shards that are led here, and asks the shards
// whether they know it. What no commit can claim any more is dropped there; what lies where it should not becomes a debt,
// by which it goes once its owners have proven theirs (R38). Condemned blobs are not its business (R31).
import { COPIES_UNKNOWN } from '../../model/debts.ts';
import { LIMITS } from '../../model/limits.ts';
import { homeShardOf, idTimeMs } from '../../model/names.ts';
import { isLiveBlob } from '../../model/records/rows.ts';
import { mayBeOrphan } from '../../model/sweep-age.ts';
import type { ChunkId } from '../../ports/chunks.ts';
import type { DiskId } from '../../ports/placement.ts';
import type { Worker } from '../../ports/worker.ts';
import { findBlobs, type HomeWorkDeps, noteOwed } from './home-work.ts';

const PAGE_CHUNKS = 500;
/** A copy that came late to a disk that stood in: long after every debt of its birth. */
const MISPLACED_AFTER_MS = 10 * 60_000;
const IDLE_MS = 10_000;

export interface DiskSweepDeps extends HomeWorkDeps {
  /** From the end of one pass over all disks to the beginning of the next. */
  passEveryMs: number;
}

interface ListedChunk {
  id: ChunkId;
  receivedAtMs: number;
}

export function createDiskSweep(deps: DiskSweepDeps): Worker {
  const { disks, clock, log } = deps;
  let left: DiskId[] | undefined;
  let after: ChunkId | undefined;
  let droppedCount = 0;
  let nextAtMs = 0;
  const times = new CommittedTimes(deps);

  function endPass(): void {
    if (droppedCount > 0) log.info({ droppedCount }, 'orphan-chunks-dropped');
    left = undefined;
    droppedCount = 0;
    nextAtMs = clock.monotonicMs() + deps.passEveryMs;
  }

  return {
    name: 'sweep-disks',
    async work(signal) {
      if (left === undefined) {
        if (clock.monotonicMs() < nextAtMs || deps.shards().length === 0)
          return { state: 'idle', idleMs: IDLE_MS };
        left = disks.disks();
      }
      const [disk] = left;
      if (disk === undefined) {
        endPass();
        return { state: 'idle', idleMs: Math.min(IDLE_MS, deps.passEveryMs) };
      }
      const query = { homes: deps.shards(), limit: PAGE_CHUNKS, ...(after && { after }) };
      const page = await disks.listOf(disk, query);
      for (const [shard, chunks] of Map.groupBy(page?.chunks ?? [], ({ id }) => homeShardOf(id.blobId))) {
        if (signal.aborted) return { state: 'busy' };
        droppedCount += await sweep(deps, { disk, shard, chunks, times });
      }
      after = page?.next;
      if (after === undefined) left.shift();
      return { state: 'busy' };
    },
  };
}

/**
 * Times that shards have committed (R32). One that is past what is asked for serves again: a pass over a disk needs few of
 * them, not one for each page.
 */
class CommittedTimes {
  readonly #deps: Pick<DiskSweepDeps, 'metadata' | 'fenceOf'>;
  readonly #known = new Map<number, { timeMs: number; incarnation: number }>();

  constructor(deps: Pick<DiskSweepDeps, 'metadata' | 'fenceOf'>) {
    this.#deps = deps;
  }

  /** Past `afterMs`, if it is so late already. undefined: the shard does not say. */
  async past(shard: number, afterMs: number): Promise<number | undefined> {
    const { metadata, fenceOf } = this.#deps;
    const { incarnation } = fenceOf(shard);
    const known = this.#known.get(shard);
    // Another history may not have come so far.
    if (known?.incarnation === incarnation && known.timeMs > afterMs) return known.timeMs;
    const tick = await metadata.execute({ shard }, 'tick', {});
    if (tick.kind !== 'done') return undefined;
    this.#known.set(shard, { timeMs: tick.timeMs, incarnation });
    return tick.timeMs;
  }
}

/** How many it has dropped. */
async function sweep(
  deps: DiskSweepDeps,
  swept: { disk: DiskId; shard: number; chunks: readonly ListedChunk[]; times: CommittedTimes },
): Promise<number> {
  const { disk, shard, chunks, times } = swept;
  const { disks, telemetry } = deps;
  const nowMs = deps.clock.wallMs();
  // Received by a clock that was ahead: nobody knows when, and that may be years to come. A debt drops nothing by its age.
  const settled = chunks.filter(({ receivedAtMs }) => Math.abs(nowMs - receivedAtMs) > MISPLACED_AFTER_MS);
  // Of its own chunks only those are asked for that no commit can claim any more.
  const asked = settled.filter((chunk) => !disks.isOwner(disk, chunk.id) || mayBeOrphan(chunk, nowMs));
  if (asked.length === 0) return 0;
  // The time first, the look-up second: a blob that is unknown at a committed time past its age stays unknown (R25).
  const old = asked.filter((chunk) => mayBeOrphan(chunk, nowMs)).map(({ id }) => idTimeMs(id.blobId));
  const timeMs = old.length === 0 ? 0 : await times.past(shard, Math.max(...old) + LIMITS.blobIdAgeMaxMs);
  if (timeMs === undefined) return 0;
  const askedIds = asked.map(({ id }) => id);
  const { rows, isUnconfirmed } = await findBlobs(deps, shard, askedIds);
  const misplaced = askedIds.filter((id) => isLiveBlob(rows.get(id.blobId)) && !disks.isOwner(disk, id));
  const owed = misplaced.map((id) => ({ ...id, copies: COPIES_UNKNOWN, holders: [disk] }));
  await noteOwed(deps, { shard, owed, mapVersion: disks.mapVersion() });
  // R23: what a home does not know may be what it has lost.
  if (isUnconfirmed) return 0;
  const orphans = asked.filter(
    (chunk) =>
      rows.get(chunk.id.blobId) === null &&
      mayBeOrphan(chunk, nowMs) &&
      timeMs - idTimeMs(chunk.id.blobId) > LIMITS.blobIdAgeMaxMs,
  );
  if (orphans.length === 0) return 0;
  const ids = orphans.map(({ id }) => id);
  if (!(await disks.drop(disk, ids, deps.fenceOf(shard)))) return 0;
  telemetry.count('holdfast_orphan_chunks_dropped_total', {}, ids.length);
  return ids.length;
}
