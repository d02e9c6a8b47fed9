// Where every chunk of a cluster lies, by asking every disk and every home shard, and where it should lie by the placement
// map: a witness beside `holdfast cluster status`, which takes the word of those who repair.
import { setTimeout as sleep } from 'node:timers/promises';
import { securityOf } from '../../../src/admin/join-cluster.ts';
import { withOperatorTools } from '../../../src/admin/operator-tools.ts';
import { must } from '../../../src/base/assert.ts';
import { within } from '../../../src/base/async/within.ts';
import { ownersOf } from '../../../src/chunks/placement/placement.ts';
import { placementOf } from '../../../src/chunks/placement/placement-document.ts';
import type { Config } from '../../../src/config/schema.ts';
import { createMetadataRouter } from '../../../src/coordination/route-metadata.ts';
import { createChunkClient } from '../../../src/platform/chunk-http/client.ts';
import { systemClock, systemRandom } from '../../../src/platform/system-clock.ts';
import type { ChunkId } from '../../../src/ports/chunks.ts';
import type { DiskChunks } from '../../../src/ports/disk-chunks.ts';
import type { PlacementMap } from '../../../src/ports/placement.ts';
import { type BlobId, homeShardOf, idTimeMs } from '../../../src/types/names.ts';

const PAGE_CHUNKS = 1000;
const BLOBS_AT_ONCE = 200;
const YOUNG_MS = 2000;
const LOOK_AGAIN_MS = 2500;
/** Of one look, which may wait for some shards and disks that do not answer; who waits for more is told. */
const LOOK_MAX_MS = 100_000;
const LATE_COPIES_MAX = 8;
const WHOLE_WITHIN_MS = 240_000;

export interface Copies {
  map: PlacementMap;
  /** Of live data. */
  chunkCount: number;
  copyCount: number;
  /** Chunks of live data by how many of their owners have them. */
  byOwners: Record<number, number>;
  /** Copies of live data on disks that do not own them. */
  misplacedCount: number;
  /** Copies of live data, by disk. */
  byDisk: Map<string, number>;
  /** Copies of what is deleted, or was never committed, by disk. */
  deadByDisk: Map<string, number>;
}

export async function readPlacementMap(config: Config): Promise<PlacementMap> {
  return withOperatorTools({ config, clusterId: undefined }, async ({ coordination }) =>
    placementOf(must(await coordination.placementMap.read(), 'a placement map').document),
  );
}

/**
 * Of data that is older than two seconds: what is being written is not looked at. Disks that are away have nothing.
 * Rejects when one that is there, or a shard, does not answer.
 */
export async function findCopies(config: Config): Promise<Copies> {
  const found = await within(lookForCopies(config), LOOK_MAX_MS, systemClock);
  if (found === undefined) throw new Error(`where copies are is not known after ${LOOK_MAX_MS} ms`);
  return found;
}

async function lookForCopies(config: Config): Promise<Copies> {
  return withOperatorTools(
    { config, clusterId: undefined },
    async ({ coordination, identity, members, calls }) => {
      const { clusterId, shardCount } = must(identity, 'a cluster');
      const stored = must(await coordination.placementMap.read(), 'a placement map');
      const map = placementOf(stored.document);
      const security = securityOf(config);
      if (security.mode !== 'secret') throw new Error('clusters of tests have a secret');
      const credentials = { kind: 'secret', secret: security.secret } as const;
      const client = createChunkClient({ clusterId, credentials, clock: systemClock, onMapVersion() {} });
      const stopping = new AbortController();
      const metadata = createMetadataRouter({ shardCount, calls, clock: systemClock, random: systemRandom });
      coordination.registry.watch(
        (shard, registered) => metadata.onRegistered(shard, registered),
        stopping.signal,
      );
      const youngMs = Date.now() - YOUNG_MS;
      try {
        const present = new Map(
          members.flatMap(({ disks, address }) => disks.map((disk) => [disk.diskId, address])),
        );
        const holders = new Map<string, Held>();
        for (const disk of map.disks) {
          const address = present.get(disk.id);
          if (address === undefined) continue;
          for await (const id of chunksOn(client.chunksOf({ ...disk, address }))) {
            if (idTimeMs(id.blobId) > youngMs) continue;
            const key = `${id.blobId}/${id.index}`;
            const held = holders.get(key) ?? { id, disks: [] };
            held.disks.push(disk.id);
            holders.set(key, held);
          }
        }
        const blobIds = new Set([...holders.values()].map(({ id }) => id.blobId));
        const live = new Set<BlobId>();
        for (const [shard, ids] of Map.groupBy(blobIds, homeShardOf))
          for (let from = 0; from < ids.length; from += BLOBS_AT_ONCE) {
            const some = ids.slice(from, from + BLOBS_AT_ONCE);
            const reply = await metadata.query({ shard }, 'get-blobs', { blobIds: some });
            if (reply.kind !== 'done') throw new Error(`shard ${shard}: ${reply.kind}`);
            for (const [at, blob] of reply.value.blobs.entries())
              if (blob !== null && blob.condemnedAtMs === undefined) live.add(must(some[at], 'an id'));
          }
        const { alive = [], dead = [] } = Object.groupBy(holders.values(), ({ id }) =>
          live.has(id.blobId) ? 'alive' : 'dead',
        );
        return { ...count(map, alive), deadByDisk: countByDisk(dead) };
      } finally {
        stopping.abort();
        await client.close();
      }
    },
  );
}

/**
 * Resolves with ms until every chunk lies on its owners, as many as there should be, and nowhere else. Rejects with what is
 * wrong after `withinMs`.
 */
export async function untilWhole(config: Config, withinMs = WHOLE_WITHIN_MS): Promise<number> {
  const sinceMs = performance.now();
  for (;;) {
    const found = await findCopies(config).catch((error: unknown) => String(error));
    if (typeof found !== 'string' && isWhole(found)) return Math.round(performance.now() - sinceMs);
    if (performance.now() - sinceMs > withinMs) {
      if (typeof found === 'string') throw new Error(found);
      const { byOwners, misplacedCount } = found;
      throw new Error(`not whole: ${JSON.stringify({ byOwners, misplacedCount })}`);
    }
    await sleep(LOOK_AGAIN_MS);
  }
}

/** But for copies of writes that were answered before their stand-in was: nobody knows of them before the sweep (R32). */
export function isWhole({ map, byOwners, misplacedCount }: Copies): boolean {
  const isEachOwned = Object.keys(byOwners).every((count) => Number(count) === map.copies);
  return isEachOwned && misplacedCount <= LATE_COPIES_MAX;
}

async function* chunksOn(disk: DiskChunks): AsyncGenerator<ChunkId> {
  for (let after: ChunkId | undefined; ; ) {
    const page = await disk.list({ limit: PAGE_CHUNKS, ...(after && { after }) });
    for (const { id } of page) yield id;
    after = page.at(-1)?.id;
    if (page.length < PAGE_CHUNKS) return;
  }
}

interface Held {
  id: ChunkId;
  disks: string[];
}

function countByDisk(chunks: readonly Held[]): Map<string, number> {
  const byDisk = new Map<string, number>();
  for (const { disks } of chunks) for (const disk of disks) byDisk.set(disk, (byDisk.get(disk) ?? 0) + 1);
  return byDisk;
}

function count(map: PlacementMap, chunks: readonly Held[]): Omit<Copies, 'deadByDisk'> {
  const copies = {
    map,
    chunkCount: chunks.length,
    copyCount: 0,
    byOwners: {} as Record<number, number>,
    misplacedCount: 0,
    byDisk: countByDisk(chunks),
  };
  for (const { id, disks } of chunks) {
    const owners = ownersOf(map, id);
    const owning = disks.filter((disk) => owners.includes(disk)).length;
    copies.copyCount += disks.length;
    copies.misplacedCount += disks.length - owning;
    copies.byOwners[owning] = (copies.byOwners[owning] ?? 0) + 1;
  }
  return copies;
}
