// Fetches of chunks from other disks (R39): one at a time for each chunk, only into free room, and never beside a drop.

import type { ChunkId } from '../../ports/chunks.ts';
import type { InspectedChunk } from '../../ports/disk-orders.ts';
import type { DiskReservePort } from '../../ports/disk-reserve.ts';
import { AppError } from '../../types/errors.ts';
import { chunkName } from '../../types/names.ts';
import { assertSame, type Checksum, refuseDropped } from './chunk-checks.ts';
import type { PendingDrops } from './pending-drops.ts';

export interface ChunkFillsDeps {
  drops: PendingDrops;
  reserve: DiskReservePort;
  verify(id: ChunkId): Promise<InspectedChunk>;
  /** `isAnew`: fetch it even though a row says that it is stored. */
  put(id: ChunkId, bytes: Uint8Array, how: { crc32: number; isAnew: boolean }): Promise<unknown>;
}

type Fill = Checksum & { isDropped: boolean };
type Fetch = () => Promise<Uint8Array | undefined>;

export class ChunkFills {
  readonly #deps: ChunkFillsDeps;
  /** Fetches under way. */
  readonly #fills = new Map<string, Fill & { done: Promise<boolean> }>();

  constructor(deps: ChunkFillsDeps) {
    this.#deps = deps;
  }

  /** See `ChunkStore`. */
  async fill(id: ChunkId, expected: Checksum, fetch: Fetch): Promise<boolean> {
    const { drops } = this.#deps;
    const name = chunkName(id);
    while (drops.has(id)) await drops.ended([id]);
    const underWay = this.#fills.get(name);
    if (underWay !== undefined) {
      assertSame(id, underWay, expected);
      return underWay.done;
    }
    const fill = { ...expected, isDropped: false };
    const done = this.#fill(id, fill, fetch).finally(() => this.#fills.delete(name));
    this.#fills.set(name, Object.assign(fill, { done }));
    return done;
  }

  /** Cancels the fetch under way. */
  wasDropped(name: string): void {
    const fill = this.#fills.get(name);
    if (fill !== undefined) fill.isDropped = true;
  }

  async #fill(id: ChunkId, fill: Fill, fetch: Fetch): Promise<boolean> {
    const { reserve, verify, put } = this.#deps;
    const present = await verify(id);
    if (present.kind === 'whole') {
      assertSame(id, { sizeBytes: present.sizeBytes, crc32: present.checksum }, fill);
      refuseDropped(fill);
      return true;
    }
    const hold = await reserve.hold(fill.sizeBytes);
    if (hold === undefined) throw new AppError('InsufficientStorage');
    const bytes = await fetch().finally(() => hold.release());
    refuseDropped(fill);
    if (bytes === undefined) return false;
    await put(id, bytes, { crc32: fill.crc32, isAnew: present.kind === 'unread' });
    refuseDropped(fill);
    return true;
  }
}
