// Orders of home shards to one disk (R38, R39). The map and the fence of an order are made durable first, and older ones
// are refused.
import { createByteGate } from '../../base/async/byte-gate.ts';
import type { ServedDisk, ServedDisks } from '../../ports/chunk-server.ts';
import type { ChunkId } from '../../ports/chunks.ts';
import type { DiskOrders, FetchChunk, InspectedChunk, KnownOwners, Order } from '../../ports/disk-orders.ts';
import type { DiskId } from '../../ports/placement.ts';
import type { Logger } from '../../ports/telemetry.ts';
import { OwnedHere, StaleMap } from '../../types/chunk-refusals.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import type { ChunkStore } from './chunk-store.ts';

export interface DiskOrdersDeps {
  diskId: DiskId;
  store: ChunkStore;
  /** Of the disk. */
  node: Pick<ServedDisks, 'mapVersion' | 'adopt'>;
  owners: KnownOwners;
  fetch: FetchChunk;
  log: Logger;
}

type PulledChunk = Parameters<DiskOrders['pull']>[0];

export function createDiskOrders({ diskId, store, node, owners, fetch, log }: DiskOrdersDeps): DiskOrders {
  const pulls = createByteGate(LIMITS.chunkPullsMax);

  async function admit(ids: readonly ChunkId[], { fence, mapVersion }: Order): Promise<void> {
    const announced = Math.max(mapVersion, owners.version());
    if (announced > node.mapVersion()) await node.adopt(announced);
    if (mapVersion < node.mapVersion()) throw new StaleMap(node.mapVersion());
    await store.obey(fence, ids);
  }

  /** R38 b, checked at the moment of the drop itself. */
  function assertMisplaced(ids: readonly ChunkId[], { mapVersion }: Order): void {
    const announced = Math.max(node.mapVersion(), owners.version());
    // Neither the sender's map nor the disk's may be behind.
    if (mapVersion < announced || owners.version() < announced) throw new StaleMap(announced);
    if (ids.some((id) => owners.owns(diskId, id))) throw new OwnedHere();
  }

  /** undefined: the other disk has no intact copy. */
  async function fetchIntact(
    { id, sizeBytes, checksum, from }: PulledChunk,
    signal: AbortSignal,
  ): Promise<Uint8Array | undefined> {
    const read = await fetch(from, id, signal);
    if (read.kind !== 'found') return undefined;
    // The bytes match the checksum of what was sent, which may be another chunk's.
    if (read.bytes.length === sizeBytes && read.checksum === checksum) return read.bytes;
    log.error({ ...id, from: from.diskId }, 'pulled-chunk-differs');
    return undefined;
  }

  return {
    async inspect(ids, order, { readBytes, signal }) {
      await admit(ids, order);
      if (!readBytes) return store.lookUp(ids);
      const found: InspectedChunk[] = [];
      for (const id of ids) {
        assertWanted(signal);
        found.push(await store.verify(id));
      }
      return found;
    },
    async pull(chunk, order, signal) {
      const { id, sizeBytes, checksum } = chunk;
      await admit([id], order);
      await pulls.enter(1);
      try {
        assertWanted(signal);
        const isStored = await store.fill(id, { sizeBytes, crc32: checksum }, async () => {
          const bytes = await fetchIntact(chunk, signal);
          // The sender may have been replaced by now, and the blob deleted.
          await admit([id], order);
          return bytes;
        });
        return isStored ? 'stored' : 'absent';
      } finally {
        pulls.leave(1);
      }
    },
    async dropMisplaced(ids, order) {
      await admit(ids, order);
      await store.dropIf(ids, order.fence, () => assertMisplaced(ids, order));
    },
    async dropQuarantined(ids, order) {
      await admit(ids, order);
      await store.dropQuarantined(ids, order.fence);
    },
    listQuarantined: (options) => store.listQuarantined(options),
    listOf: (options) => store.listOf(options),
  };
}

/** The disk as other nodes reach it. */
export function serveDisk(store: ChunkStore, orders: DiskOrders): ServedDisk {
  return {
    ...orders,
    put: (id, bytes, checksum) => store.put(id, bytes, checksum),
    get: (id, how) => store.get(id, how),
    have: (ids) => store.have(ids),
    drop: (ids, fence) => store.drop(ids, fence),
    list: (options) => store.list(options),
    usage: () => store.usage(),
    recount: () => store.recount(),
  };
}

function assertWanted(signal: AbortSignal): void {
  if (signal.aborted) throw new AppError('ServiceUnavailable', { cause: signal.reason });
}
