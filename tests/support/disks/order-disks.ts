// Disks that obey home shards as real ones do, by the map and the epoch that they know, and can be made to fail: what
// repair, audit and sweep are tested against.

import { ownersOf } from '../../../src/chunks/placement/placement.ts';
import type { ChunkId, Fence } from '../../../src/ports/chunks.ts';
import type { DiskDirectory } from '../../../src/ports/disk-chunks.ts';
import type { DiskOrders, InspectedChunk, Order } from '../../../src/ports/disk-orders.ts';
import type { DiskId, PlacementMap } from '../../../src/ports/placement.ts';
import { ChunkUnread, OldFence, OtherBytes, OwnedHere, StaleMap } from '../../../src/types/chunk-refusals.ts';
import { AppError } from '../../../src/types/errors.ts';
import { chunkName, homeShardOf } from '../../../src/types/names.ts';
import { FakeDisk } from './fake-disks.ts';

export const nameOf = chunkName;

function idOf(name: string): ChunkId {
  const [blobId = '', index] = name.split('.');
  return { blobId: blobId as ChunkId['blobId'], index: Number(index) };
}

export class OrderDisk extends FakeDisk implements DiskOrders {
  readonly id: DiskId;
  /** Bytes that nobody has read since they went bad. */
  readonly rotten = new Set<string>();
  /** Quarantined copies. */
  readonly quarantined = new Set<string>();
  /** Stored ones that cannot be read, as it knows by now. */
  readonly unread = new Set<string>();
  readonly receivedAtMs = new Map<string, number>();
  /** Called in the midst of an order. */
  onOrder: (what: string) => void = () => {};
  #epoch = 0;
  #mapVersion = 0;
  readonly #world: { mapOf(disk: DiskId): PlacementMap; diskOf(id: DiskId): OrderDisk };

  constructor(id: DiskId, world: { mapOf(disk: DiskId): PlacementMap; diskOf(id: DiskId): OrderDisk }) {
    super();
    this.id = id;
    this.#world = world;
  }

  receive(id: ChunkId, atMs: number): void {
    this.stored.set(nameOf(id), Uint8Array.of(7));
    this.receivedAtMs.set(nameOf(id), atMs);
  }

  override inspect = async (
    ids: readonly ChunkId[],
    order: Order,
    { readBytes }: { readBytes: boolean },
  ): Promise<InspectedChunk[]> => {
    await this.#admit('inspect', order);
    return ids.map((id) => this.#look(nameOf(id), readBytes));
  };

  #look(name: string, readBytes: boolean): InspectedChunk {
    if (readBytes && this.rotten.delete(name)) {
      this.stored.delete(name);
      this.quarantined.add(name);
    }
    const bytes = this.stored.get(name);
    if (bytes === undefined) return { kind: 'missing', isQuarantined: this.quarantined.has(name) };
    if (this.unread.has(name)) return { kind: 'unread' };
    return { kind: 'whole', sizeBytes: bytes.length, checksum: bytes[0] ?? 0, receivedAtMs: 0 };
  }

  override pull = async (
    chunk: Parameters<DiskOrders['pull']>[0],
    order: Order,
  ): Promise<'stored' | 'absent'> => {
    await this.#admit('pull', order);
    if (this.mood === 'full') throw new AppError('InsufficientStorage');
    const source = this.#world.diskOf(chunk.from.diskId);
    if (source.mood === 'dead') throw new AppError('ServiceUnavailable');
    const name = nameOf(chunk.id);
    if (source.rotten.delete(name)) {
      source.stored.delete(name);
      source.quarantined.add(name);
    }
    const bytes = source.stored.get(name);
    if (bytes === undefined) return 'absent';
    if (source.unread.has(name)) throw new ChunkUnread('unread');
    const own = this.stored.get(name);
    if (own !== undefined && own[0] !== bytes[0]) throw new OtherBytes(name);
    this.stored.set(name, bytes);
    this.unread.delete(name);
    return 'stored';
  };

  override dropMisplaced = async (ids: readonly ChunkId[], order: Order): Promise<void> => {
    await this.#admit('dropMisplaced', order);
    const map = this.#world.mapOf(this.id);
    if (map.version !== order.mapVersion) throw new StaleMap(Math.max(map.version, order.mapVersion));
    if (ids.some((id) => ownersOf(map, id).includes(this.id))) throw new OwnedHere();
    for (const id of ids) {
      this.stored.delete(nameOf(id));
      this.unread.delete(nameOf(id));
    }
  };

  override dropQuarantined = async (ids: readonly ChunkId[], order: Order): Promise<void> => {
    await this.#admit('dropQuarantined', order);
    for (const id of ids) this.quarantined.delete(nameOf(id));
  };

  override listQuarantined = async ({
    homes,
    after,
    limit,
  }: Parameters<DiskOrders['listQuarantined']>[0]): Promise<ChunkId[]> => {
    await this.begin('listQuarantined');
    return pageOf([...this.quarantined, ...this.unread], { homes, after, limit });
  };

  override listOf = async ({
    homes,
    after,
    limit,
  }: Parameters<DiskOrders['listOf']>[0]): ReturnType<DiskOrders['listOf']> => {
    await this.begin('listOf');
    const ids = pageOf(this.stored.keys(), { homes, after, limit });
    const chunks = ids.map((id) => ({
      id,
      sizeBytes: 1,
      receivedAtMs: this.receivedAtMs.get(nameOf(id)) ?? 0,
    }));
    const last = ids.length === limit ? ids.at(-1) : undefined;
    return { chunks, ...(last && { next: last }) };
  };

  override async drop(ids: readonly ChunkId[], fence: Fence): Promise<void> {
    await this.begin('drop');
    this.#obey(fence);
    this.fences.push(fence);
    for (const id of ids) {
      this.stored.delete(nameOf(id));
      this.quarantined.delete(nameOf(id));
    }
  }

  async #admit(what: string, { fence, mapVersion }: Order): Promise<void> {
    await this.begin(what);
    this.onOrder(what);
    const known = Math.max(this.#mapVersion, this.#world.mapOf(this.id).version);
    this.#mapVersion = Math.max(known, mapVersion);
    if (mapVersion < this.#mapVersion) throw new StaleMap(this.#mapVersion);
    this.#obey(fence);
  }

  #obey({ epoch }: Fence): void {
    if (epoch < this.#epoch) throw new OldFence();
    this.#epoch = epoch;
  }
}

function pageOf(
  names: Iterable<string>,
  { homes, after, limit }: { homes: readonly number[]; after?: ChunkId | undefined; limit: number },
): ChunkId[] {
  const from = after === undefined ? '' : nameOf(after);
  const mine = [...names].filter((name) => name > from && homes.includes(homeShardOf(idOf(name).blobId)));
  return mine.sort().slice(0, limit).map(idOf);
}

export interface OrderDisks extends DiskDirectory {
  of(id: DiskId): OrderDisk;
}

/** `mapOf`: the newest map that a disk's node knows. */
export function createOrderDisks(mapOf: (disk: DiskId) => PlacementMap): OrderDisks {
  const disks = new Map<DiskId, OrderDisk>();
  const diskOf = (id: DiskId) => {
    const disk = disks.get(id) ?? new OrderDisk(id, { mapOf, diskOf });
    disks.set(id, disk);
    return disk;
  };
  return { of: diskOf, chunksOf: ({ id }) => diskOf(id) };
}
