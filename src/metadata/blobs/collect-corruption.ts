// Collects from each disk its quarantined and unreadable copies (R40). Missing copies get a repair entry at once, and the
// quarantined copy is dropped once the owners have proven theirs.
import { BoundedMap } from '../../base/bounded-map.ts';
import type { ChunkId } from '../../ports/chunks.ts';
import type { DiskId } from '../../ports/placement.ts';
import type { Worker } from '../../ports/worker.ts';
import { LIMITS } from '../../types/limits.ts';
import { chunkName, homeShardOf, idTimeMs } from '../../types/names.ts';
import { isLiveBlob } from '../../types/records/rows.ts';
import { findBlobs, type HomeShardDeps, missingOf, recordMissing } from '../workers/home-shard.ts';
import { doneValue } from '../workers/shard-worker.ts';

const ASK_EVERY_MS = 10_000;
const PAGE_CHUNKS = 500;
/** Of one disk in one round: a disk with more than that is dying, and the next round goes on there. */
const PAGES_MAX = 10;
/** A repair may take this long: recording the chunk again meanwhile would make it start over. */
const NOTED_FOR_MS = 10 * 60_000;
/** A quarantined copy without a repair entry is inspected again after this time. */
const AGAIN_AFTER_MS = 60_000;
const NOTED_MAX = 20_000;

export function createCorruptionCollector(deps: HomeShardDeps): Worker {
  const noted = new BoundedMap<string, number>(NOTED_MAX);
  /**
   * Where the last round left a disk that has more: what cannot be removed yet must not keep what follows it from being
   * collected.
   */
  const reached = new Map<DiskId, ChunkId>();

  /** Gives what failed: what one shard cannot note keeps back neither the others' nor what comes behind it. */
  async function collect(disk: DiskId, signal: AbortSignal): Promise<unknown[]> {
    const failures: unknown[] = [];
    let after = reached.get(disk);
    reached.delete(disk);
    for (let page = 0; page < PAGES_MAX; page++) {
      signal.throwIfAborted();
      const query = { homes: deps.shards(), limit: PAGE_CHUNKS, ...(after && { after }) };
      const chunks = await deps.disks.listQuarantined(disk, query);
      if (chunks === undefined || chunks.length === 0) return failures;
      for (const [shard, ids] of Map.groupBy(chunks, ({ blobId }) => homeShardOf(blobId))) {
        try {
          const news = await newsOf(disk, shard, ids);
          const live = await noteDamage(deps, { disk, shard, ids: news, signal });
          logDamage(disk, shard, live);
          for (const id of live) noted.set(nameOf(disk, id), deps.clock.monotonicMs());
        } catch (error) {
          failures.push(error);
        }
      }
      after = chunks.at(-1);
      if (chunks.length < PAGE_CHUNKS) return failures;
    }
    if (after !== undefined) reached.set(disk, after);
    return failures;
  }

  /** Of what is looked at again nothing is new. */
  function logDamage(diskId: DiskId, shard: number, live: readonly ChunkId[]): void {
    const chunkCount = live.filter((id) => notedForMs(diskId, id) >= NOTED_FOR_MS).length;
    if (chunkCount === 0) return;
    deps.telemetry.count('holdfast_damaged_chunks_found_total', {}, chunkCount);
    deps.log.warn({ diskId, shard, chunkCount }, 'damaged-chunks-found');
  }

  /**
   * Copies that are not recorded with a repair entry still open. Once it is resolved, a copy in quarantine was damaged
   * again, or left behind, and is inspected again soon.
   */
  async function newsOf(disk: DiskId, shard: number, ids: readonly ChunkId[]): Promise<ChunkId[]> {
    const others = ids.filter((id) => notedForMs(disk, id) >= AGAIN_AFTER_MS);
    const known = new Set(others.filter((id) => notedForMs(disk, id) < NOTED_FOR_MS));
    if (known.size === 0) return others;
    const blobIds = [...new Set([...known].map(({ blobId }) => blobId))];
    const { debts } = doneValue(await deps.metadata.query({ shard }, 'get-debts', { blobIds }));
    const incomplete = new Set(blobIds.filter((_blobId, at) => debts[at] !== null));
    return others.filter((id) => !known.has(id) || !incomplete.has(id.blobId));
  }

  /** For ever: it is not noted. */
  function notedForMs(disk: DiskId, id: ChunkId): number {
    return deps.clock.monotonicMs() - (noted.get(nameOf(disk, id)) ?? Number.NEGATIVE_INFINITY);
  }

  return {
    name: 'collect-corruption',
    async work(signal) {
      const disks = deps.shards().length > 0 ? deps.disks.disks() : [];
      const collected = await Promise.allSettled(disks.map((disk) => collect(disk, signal)));
      const failures = collected.flatMap((one) => (one.status === 'rejected' ? [one.reason] : one.value));
      return { state: 'idle', idleMs: ASK_EVERY_MS, ...(failures.length > 0 && { failures }) };
    },
  };
}

function nameOf(disk: DiskId, id: ChunkId): string {
  return `${disk} ${chunkName(id)}`;
}

/** Returns the chunks that have repair entries now: the others are to be listed again. */
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
  // R32: no commit can need it. A blob that is marked for deletion takes its copies with it.
  const orphans = ids.filter(
    ({ blobId }) => rows.get(blobId) === null && tick.timeMs - idTimeMs(blobId) > LIMITS.blobIdAgeMaxMs,
  );
  if (orphans.length > 0 && !isUnconfirmed) await disks.dropQuarantined(disk, orphans, fence);
  const live = ids.filter(({ blobId }) => isLiveBlob(rows.get(blobId)));
  if (live.length === 0) return [];
  const seen = await disks.look(live, { fence, signal });
  if (seen === undefined) return [];
  await recordMissing(deps, { shard, missing: missingOf(live, seen.states), mapVersion: seen.mapVersion });
  // These have enough copies: only the quarantined one is left to drop, now or later.
  const replaced = live.filter((_id, at) => seen.states[at]?.kind !== 'incomplete');
  const chunks = replaced.map((id) => ({ id, holders: [], quarantinedAt: [disk] }));
  const repaired = chunks.length > 0 ? await disks.repair(chunks, { fence, signal }) : undefined;
  // An owner may have found its copy damaged just now, when it was to prove it.
  if (repaired !== undefined)
    await recordMissing(deps, {
      shard,
      missing: missingOf(replaced, repaired.states),
      mapVersion: repaired.mapVersion,
    });
  return live;
}
