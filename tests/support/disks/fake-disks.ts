// Disks that do as they are told, for what the cluster does with disks: fast, dead, silent, full, damaged.

import type { ChunkId, ChunkRead, Fence } from '../../../src/ports/chunks.ts';
import type { DiskChunks, DiskDirectory } from '../../../src/ports/disk-chunks.ts';
import type { PlacedDisk } from '../../../src/ports/placement.ts';
import { ChunkUnread, DiskBusy, StaleMap } from '../../../src/types/chunk-refusals.ts';
import { AppError } from '../../../src/types/errors.ts';
import { chunkName as nameOf } from '../../../src/types/names.ts';
import { NoOrders } from './no-orders.ts';

export type Mood =
  | 'well'
  | 'dead'
  | 'silent'
  | 'full'
  | 'busy'
  | 'damaged'
  | 'unread'
  | { staleBefore: number };

export class FakeDisk extends NoOrders implements DiskChunks {
  mood: Mood = 'well';
  readonly stored = new Map<string, Uint8Array>();
  /** What was asked of it, in order. */
  readonly asked: string[] = [];
  abortedCount = 0;
  readonly fences: Fence[] = [];
  #silenced: (() => void)[] = [];

  /** What it was silent about, it does now. */
  answerAgain(): void {
    this.mood = 'well';
    for (const go of this.#silenced.splice(0)) go();
  }

  async put(
    id: ChunkId,
    bytes: Uint8Array,
    { mapVersion, signal }: { mapVersion: number; signal: AbortSignal },
  ): Promise<void> {
    await this.begin('put', signal);
    if (this.mood === 'full') throw new AppError('InsufficientStorage');
    if (typeof this.mood === 'object' && mapVersion < this.mood.staleBefore)
      throw new StaleMap(this.mood.staleBefore);
    this.stored.set(nameOf(id), Uint8Array.from(bytes));
  }

  async get(id: ChunkId, { signal }: { signal: AbortSignal }): Promise<ChunkRead> {
    await this.begin('get', signal);
    if (this.mood === 'unread') throw new ChunkUnread('unread');
    const bytes = this.stored.get(nameOf(id));
    if (bytes === undefined) return { kind: 'missing' };
    return this.mood === 'damaged' ? { kind: 'damaged' } : { kind: 'found', bytes };
  }

  async have(ids: readonly ChunkId[]): ReturnType<DiskChunks['have']> {
    await this.begin('have');
    return ids.map((id) => {
      const bytes = this.stored.get(nameOf(id));
      return bytes === undefined ? null : { sizeBytes: bytes.length, checksum: 0, receivedAtMs: 0 };
    });
  }

  async drop(ids: readonly ChunkId[], fence: Fence): Promise<void> {
    await this.begin('drop');
    this.fences.push(fence);
    for (const id of ids) this.stored.delete(nameOf(id));
  }

  async list(): ReturnType<DiskChunks['list']> {
    await this.begin('list');
    return [];
  }

  async usage(): ReturnType<DiskChunks['usage']> {
    await this.begin('usage');
    const kept = { chunkCount: this.stored.size, liveBytes: 0 };
    return { ...kept, pendingReclaimBytes: 1, diskFreeBytes: 10, diskTotalBytes: 100 };
  }

  async recount(): ReturnType<DiskChunks['recount']> {
    await this.begin('recount');
    const kept = { chunkCount: this.stored.size, liveBytes: 0 };
    return { counted: kept, kept };
  }

  protected async begin(what: string, signal?: AbortSignal): Promise<void> {
    this.asked.push(what);
    if (this.mood === 'dead') throw new AppError('ServiceUnavailable');
    if (this.mood === 'busy') throw new DiskBusy();
    if (this.mood !== 'silent') return;
    await new Promise<void>((resolve, reject) => {
      this.#silenced.push(resolve);
      signal?.addEventListener('abort', () => {
        this.abortedCount++;
        reject(new AppError('ServiceUnavailable'));
      });
    });
  }
}

export interface FakeDisks extends DiskDirectory {
  of(disk: Pick<PlacedDisk, 'id'>): FakeDisk;
}

export function createFakeDisks(): FakeDisks {
  const disks = new Map<string, FakeDisk>();
  const of = ({ id }: Pick<PlacedDisk, 'id'>) => {
    const disk = disks.get(id) ?? new FakeDisk();
    disks.set(id, disk);
    return disk;
  };
  return { of, chunksOf: of };
}
