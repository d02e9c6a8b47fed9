// Drops that were ordered and have not ended. Who would say of such a chunk that it is there, or has been stored, waits for
// them: a copy that is about to go must not be counted (R38).

import type { ChunkId } from '../../ports/chunks.ts';
import { chunkName } from '../../types/names.ts';

export class PendingDrops {
  /** Of each chunk, until all that were ordered by now have ended. */
  readonly #drops = new Map<string, Promise<unknown>>();

  has(id: ChunkId): boolean {
    return this.#drops.has(chunkName(id));
  }

  /** Resolves when those that were ordered by now have ended, whichever way; undefined: no drop is pending. */
  ended(ids: readonly ChunkId[]): Promise<unknown> | undefined {
    if (this.#drops.size === 0) return undefined;
    return Promise.allSettled(ids.map((id) => this.#drops.get(chunkName(id))));
  }

  /** `drop` as one of them, until it ends. */
  async track(ids: readonly ChunkId[], drop: Promise<void>): Promise<void> {
    const names = new Set(ids.map(chunkName));
    // One that was ordered earlier may end later, and its chunks are about to go as well.
    const all = Promise.allSettled([this.ended(ids), drop]).then(() => {
      for (const name of names) if (this.#drops.get(name) === all) this.#drops.delete(name);
    });
    for (const name of names) this.#drops.set(name, all);
    await drop;
  }
}
