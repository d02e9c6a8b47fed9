// Drops that were ordered and have not ended. Who would say of such a chunk that it is there, or has been stored, waits for
// them: a copy that is about to go must not be counted (R38).
import { chunkName } from '../model/names.ts';
import type { ChunkId } from '../ports/chunks.ts';

export class PendingDrops {
  /** Of each chunk the last one. */
  readonly #drops = new Map<string, Promise<void>>();

  has(id: ChunkId): boolean {
    return this.#drops.has(chunkName(id));
  }

  /** Resolves when those that were ordered by now have ended, whichever way; undefined: no drop is pending. */
  ended(ids: readonly ChunkId[]): Promise<unknown> | undefined {
    if (this.#drops.size === 0) return undefined;
    return Promise.allSettled(ids.map((id) => this.#drops.get(chunkName(id))));
  }

  /** `drop` as one of them, until it ends. */
  track(ids: readonly ChunkId[], drop: Promise<void>): Promise<void> {
    const names = new Set(ids.map(chunkName));
    const tracked = drop.finally(() => {
      for (const name of names) if (this.#drops.get(name) === tracked) this.#drops.delete(name);
    });
    for (const name of names) this.#drops.set(name, tracked);
    return tracked;
  }
}
