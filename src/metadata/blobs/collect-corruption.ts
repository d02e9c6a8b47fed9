// Asks each disk which copies it keeps aside because they did not verify, and which it cannot read (R40): what is lacking by
// that is a debt of its blob at once, and the copy that is aside goes once the owners have proven theirs.
import { BoundedMap } from '../../base/bounded-map.ts';
import type { ChunkId } from '../../ports/chunks.ts';
import type { DiskId } from '../../ports/placement.ts';
import type { Worker } from '../../ports/worker.ts';
import { LIMITS } from '../../types/limits.ts';
import { chunkName, homeShardOf, idTimeMs } from '../../types/names.ts';
import { isLiveBlob } from '../../types/records/rows.ts';
import { findBlobs, type HomeShardDeps, noteOwed, owedOf } from '../workers/home-shard.ts';
import { doneValue } from '../workers/shard-worker.ts';

const ASK_EVERY_MS = 10_000;
const PAGE_CHUNKS = 500;
/** Of one disk in one round: a disk with more than that is dying, and the next round goes on there. */
const PAGES_MAX = 10;
/** A repair may take that long: noted again while its blob owes something, it would have to begin anew. */
const NOTED_KEPT_MS = 10 * 60_000;
/** What it owes no more, and is aside still, is looked at again so often. */
const AGAIN_AFTER_MS = 60_000;
const NOTED_MAX = 20_000;

export function createCorruptionCollector(deps: HomeShardDeps): Worker {
  const noted = new BoundedMap<string, number>(NOTED_MAX);
  /** Where the last round left a disk that has more: what cannot go yet must not keep what comes behind it from being heard. */
  const reached = new Map<DiskId, ChunkId>();

  /** Gives what failed: what one shard cannot note keeps back neither the others' nor what comes behind it. */
  async function hear(disk: DiskId, signal: AbortSignal): Promise<unknown[]> {
    const failures: unknown[] = [];
    let after = reached.get(disk);
    reached.delete(disk);
    for (let page = 0; page < PAGES_MAX; page++) {
      signal.throwIfAborted();
      const query = { homes: deps.shards(), limit: PAGE_CHUNKS, ...(after && { after }) };
      const aside = await deps.disks.listQuarantined(disk, query);
      if (aside === undefined || aside.length === 0) return failures;
      for (const [shard, ids] of Map.groupBy(aside, ({ blobId }) => homeShardOf(blobId))) {
        try {
          const news = await newsOf(disk, shard, ids);
          const live = await noteDamage(deps, { disk, shard, ids: news, signal });
          tellOf(disk, shard, live);
          for (const id of live) noted.set(nameOf(disk, id), deps.clock.monotonicMs());
        } catch (error) {
          failures.push(error);
        }
      }
      after = aside.at(-1);
      if (aside.length < PAGE_CHUNKS) return failures;
    }
    if (after !== undefined) reached.set(disk, after);
    return failures;
  }

  /** Of what is looked at again nothing is new. */
  function tellOf(diskId: DiskId, shard: number, live: readonly ChunkId[]): void {
    const chunkCount = live.filter((id) => notedForMs(diskId, id) >= NOTED_KEPT_MS).length;
    if (chunkCount === 0) return;
    deps.telemetry.count('holdfast_damaged_chunks_found_total', {}, chunkCount);
    deps.log.warn({ diskId, shard, chunkCount }, 'damaged-chunks-heard-of');
  }

  /**
   * But for what is noted, and owed still: once the debt is settled, what is aside was damaged again, or left behind, and is
   * looked at again before long.
   */
  async function newsOf(disk: DiskId, shard: number, ids: readonly ChunkId[]): Promise<ChunkId[]> {
    const others = ids.filter((id) => notedForMs(disk, id) >= AGAIN_AFTER_MS);
    const known = new Set(others.filter((id) => notedForMs(disk, id) < NOTED_KEPT_MS));
    if (known.size === 0) return others;
    const blobIds = [...new Set([...known].map(({ blobId }) => blobId))];
    const { debts } = doneValue(await deps.metadata.query({ shard }, 'get-debts', { blobIds }));
    const owing = new Set(blobIds.filter((_blobId, at) => debts[at] !== null));
    return others.filter((id) => !known.has(id) || !owing.has(id.blobId));
  }

  /** For ever: it is not noted. */
  function notedForMs(disk: DiskId, id: ChunkId): number {
    return deps.clock.monotonicMs() - (noted.get(nameOf(disk, id)) ?? Number.NEGATIVE_INFINITY);
  }

  return {
    name: 'hear-damage',
    async work(signal) {
      const disks = deps.shards().length > 0 ? deps.disks.disks() : [];
      const heard = await Promise.allSettled(disks.map((disk) => hear(disk, signal)));
      const failures = heard.flatMap((one) => (one.status === 'rejected' ? [one.reason] : one.value));
      return { state: 'idle', idleMs: ASK_EVERY_MS, ...(failures.length > 0 && { failures }) };
    },
  };
}

function nameOf(disk: DiskId, id: ChunkId): string {
  return `${disk} ${chunkName(id)}`;
}

/** Gives those that are debts now: the others are to be asked about again. */
async function noteDamage(
  deps: HomeShardDeps,
  damage: { disk: DiskId; shard: number; ids: readonly ChunkId[]; signal: AbortSignal },
): Promise<ChunkId[]> {
  const { metadata, disks } = deps;
  const { disk, shard, ids, signal } = damage;
  if (ids.length === 0) return [];
  const fence = deps.fenceOf(shard);
  const tick = await metadata.execute({ shard }, 'tick', {});
  if (tick.kind !== 'done') return [];
  const { rows, isUnconfirmed } = await findBlobs(deps, shard, ids);
  // R32: nobody can come to need it. What is condemned goes with its blob.
  const orphans = ids.filter(
    ({ blobId }) => rows.get(blobId) === null && tick.timeMs - idTimeMs(blobId) > LIMITS.blobIdAgeMaxMs,
  );
  if (orphans.length > 0 && !isUnconfirmed) await disks.dropQuarantined(disk, orphans, fence);
  const live = ids.filter(({ blobId }) => isLiveBlob(rows.get(blobId)));
  if (live.length === 0) return [];
  const seen = await disks.look(live, { fence, signal });
  if (seen === undefined) return [];
  await noteOwed(deps, { shard, owed: owedOf(live, seen.states), mapVersion: seen.mapVersion });
  // Of these there are copies enough: only what is aside is left to go, now or when it is heard of again.
  const replaced = live.filter((_id, at) => seen.states[at]?.kind !== 'incomplete');
  const chunks = replaced.map((id) => ({ id, holders: [], quarantinedAt: [disk] }));
  const mended = chunks.length > 0 ? await disks.repair(chunks, { fence, signal }) : undefined;
  // An owner may have found its copy damaged just now, when it was to prove it.
  if (mended !== undefined)
    await noteOwed(deps, { shard, owed: owedOf(replaced, mended.states), mapVersion: mended.mapVersion });
  return live;
}
