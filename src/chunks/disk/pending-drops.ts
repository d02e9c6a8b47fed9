// Drops that were ordered and have not ended. An answer that such a chunk is stored waits for them: a copy that is about to
// go must not be counted (R38).

import type { ChunkId } from '../../ports/chunks.ts';
import { chunkName } from '../../types/names.ts';

export class PendingDrops {
  /** For each chunk: settles when all drops ordered so far have ended. */
  readonly #drops = new Map<string, Promise<unknown>>();

  has(id: ChunkId): boolean {
    return this.#drops.has(chunkName(id));
  }

  /** Resolves when the drops ordered so far have ended, whether or not they failed; undefined: no drop is pending. */
  ended(ids: readonly ChunkId[]): Promise<unknown> | undefined {
    if (this.#drops.size === 0) return undefined;
    return Promise.allSettled(ids.map((id) => this.#drops.get(chunkName(id))));
  }

  /** Tracks `drop` until it ends. */
  async track(ids: readonly ChunkId[], drop: Promise<void>): Promise<void> {
    const names = new Set(ids.map(chunkName));
    // An earlier drop of the same chunks may end later than this one.
    const all = Promise.allSettled([this.ended(ids), drop]).then(() => {
      for (const name of names) if (this.#drops.get(name) === all) this.#drops.delete(name);
    });
    for (const name of names) this.#drops.set(name, all);
    await drop;
  }
}
