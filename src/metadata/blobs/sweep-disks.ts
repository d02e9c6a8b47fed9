// The reverse sweep of a cluster (R32): walks the chunks on each disk that belong to shards led here, and asks the shards
// whether they know them. Chunks that no commit can reference any more are dropped; misplaced copies get a repair entry,
// and are dropped once the owners have proven theirs (R38). Blobs that are marked for deletion are not handled here (R31).

import type { ChunkId } from '../../ports/chunks.ts';
import type { DiskId } from '../../ports/placement.ts';
import type { Worker } from '../../ports/worker.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import { type BlobId, homeShardOf, idTimeMs } from '../../types/names.ts';
import { isLiveBlob } from '../../types/records/rows.ts';
import { COPIES_UNKNOWN } from '../../types/repair-entries.ts';
import { mayBeOrphan } from '../../types/sweep-age.ts';
import { ScanPass } from '../scans/scan-pass.ts';
import { findBlobs, type HomeShardDeps, recordMissing } from '../workers/home-shard.ts';

const PAGE_CHUNKS = 500;
/** A copy that came late to a stand-in: long after the repair entry of its blob. */
const MISPLACED_AFTER_MS = 10 * 60_000;
const IDLE_MS = 10_000;

export interface DiskSweepDeps extends HomeShardDeps {
  /** From the end of one pass over a disk to the beginning of the next. */
  passEveryMs: number;
}

interface ListedChunk {
  id: ChunkId;
  receivedAtMs: number;
}

/** Of one disk: its passes, each through what it has of the shards that are led here. */
interface DiskTurn {
  pass: ScanPass<ChunkPlace>;
  droppedCount: number;
  /** Not before: all is swept, or the disk did not answer. Monotonic ms. */
  nextAtMs: number;
}

/** A chunk id as plain data. */
type ChunkPlace = { blobId: BlobId; index: number };

/** In the order of disks' lists. */
function compareChunks(a: ChunkPlace, b: ChunkPlace): number {
  return a.blobId === b.blobId ? a.index - b.index : a.blobId < b.blobId ? -1 : 1;
}

export function createDiskSweep(deps: DiskSweepDeps): Worker {
  const { disks, clock, log } = deps;
  /** In the order in which they have their turns: a disk that fails holds up no other, nor begins anew for it. */
  const turns = new Map<DiskId, DiskTurn>();
  const times = new CommittedTimes(deps);

  function nextTurn(): [DiskId, DiskTurn] | undefined {
    const there = disks.disks();
    const known = new Set(there);
    for (const disk of turns.keys()) if (!known.has(disk)) turns.delete(disk);
    for (const disk of there) if (!turns.has(disk)) turns.set(disk, newTurn(disk));
    const nowMs = clock.monotonicMs();
    const next = [...turns].find(([, { nextAtMs }]) => nextAtMs <= nowMs);
    if (next === undefined) return undefined;
    const [disk, turn] = next;
    turns.delete(disk);
    turns.set(disk, turn);
    return next;
  }

  function newTurn(disk: DiskId): DiskTurn {
    const { metadata, passEveryMs: everyMs } = deps;
    const name = `sweep-disks/${disk}`;
    const pass = new ScanPass<ChunkPlace>({ metadata, clock, name, everyMs, compare: compareChunks });
    return { pass, droppedCount: 0, nextAtMs: 0 };
  }

  async function endPass(diskId: DiskId, turn: DiskTurn): Promise<void> {
    const { droppedCount } = turn;
    if (droppedCount > 0) log.info({ diskId, droppedCount }, 'orphan-chunks-dropped');
    turn.droppedCount = 0;
    await turn.pass.ended();
  }

  /** What one shard cannot say now keeps back none of the others': the next walk comes by again. */
  async function sweepOf(
    disk: DiskId,
    { shard, chunks }: { shard: number; chunks: readonly ListedChunk[] },
    signal: AbortSignal,
  ): Promise<number> {
    try {
      return await sweep(deps, { disk, shard, chunks, times });
    } catch (error) {
      const fields = { err: error, diskId: disk, shard, chunkCount: chunks.length };
      if (!signal.aborted) log.warn(fields, 'sweep-failed');
      return 0;
    }
  }

  return {
    name: 'sweep-disks',
    async work(signal) {
      const idle = { state: 'idle', idleMs: Math.min(IDLE_MS, deps.passEveryMs) } as const;
      if (deps.shards().length === 0) return idle;
      const found = nextTurn();
      if (found === undefined) return idle;
      const [disk, turn] = found;
      const items = await turn.pass.next(deps.shards());
      if ('waitMs' in items) {
        turn.nextAtMs = clock.monotonicMs() + items.waitMs;
        return { state: 'busy' };
      }
      const { shards: homes, after } = items;
      const page = await disks.listOf(disk, { homes, limit: PAGE_CHUNKS, ...(after && { after }) });
      if (page === undefined) {
        turn.nextAtMs = clock.monotonicMs() + IDLE_MS;
        return { state: 'busy' };
      }
      for (const [shard, chunks] of Map.groupBy(page.chunks, ({ id }) => homeShardOf(id.blobId))) {
        if (signal.aborted) return { state: 'busy' };
        turn.droppedCount += await sweepOf(disk, { shard, chunks }, signal);
      }
      if (page.next === undefined) await endPass(disk, turn);
      else await turn.pass.reached({ ...page.next });
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

  /** Past `afterMs`, if it is so late already. Rejects when the shard does not say. */
  async past(shard: number, afterMs: number): Promise<number> {
    const { metadata, fenceOf } = this.#deps;
    const { incarnation } = fenceOf(shard);
    const known = this.#known.get(shard);
    // Another history may not have come so far.
    if (known?.incarnation === incarnation && known.timeMs > afterMs) return known.timeMs;
    const tick = await metadata.execute({ shard }, 'tick', {});
    if (tick.kind !== 'done') throw new AppError('ServiceUnavailable');
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
  // Received by a fast clock: the real time is unknown. A repair entry drops nothing by age.
  const stable = chunks.filter(({ receivedAtMs }) => Math.abs(nowMs - receivedAtMs) > MISPLACED_AFTER_MS);
  // Of its own chunks only those are asked for that no commit can claim any more.
  const asked = stable.filter((chunk) => !disks.isOwner(disk, chunk.id) || mayBeOrphan(chunk, nowMs));
  if (asked.length === 0) return 0;
  // The time first, the look-up second: a blob that is unknown at a committed time past its age stays unknown (R25).
  const old = asked.filter((chunk) => mayBeOrphan(chunk, nowMs)).map(({ id }) => idTimeMs(id.blobId));
  const timeMs = old.length === 0 ? 0 : await times.past(shard, Math.max(...old) + LIMITS.blobIdAgeMaxMs);
  const askedIds = asked.map(({ id }) => id);
  const { rows, isUnconfirmed } = await findBlobs(deps, shard, askedIds);
  const orphans = asked.filter(
    (chunk) =>
      // R23: what a home does not know may be what it has lost.
      !isUnconfirmed &&
      rows.get(chunk.id.blobId) === null &&
      mayBeOrphan(chunk, nowMs) &&
      timeMs - idTimeMs(chunk.id.blobId) > LIMITS.blobIdAgeMaxMs,
  );
  const ids = orphans.map(({ id }) => id);
  const isDropped = ids.length > 0 && (await disks.drop(disk, ids, deps.fenceOf(shard)));
  if (isDropped) telemetry.count('holdfast_orphan_chunks_dropped_total', {}, ids.length);
  const misplaced = askedIds.filter((id) => isLiveBlob(rows.get(id.blobId)) && !disks.isOwner(disk, id));
  const missing = misplaced.map((id) => ({ ...id, copies: COPIES_UNKNOWN, holders: [disk] }));
  await recordMissing(deps, { shard, missing, mapVersion: disks.mapVersion() });
  return isDropped ? ids.length : 0;
}
