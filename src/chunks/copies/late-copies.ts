// Copies still being written when their write has been answered: they go on, as long as all of them together hold no more
// memory than they may; beyond that the oldest are given up, and the chunk has the copies that it has.
import { LIMITS } from '../../types/limits.ts';

export interface LateCopy {
  sizeBytes: number;
  /** Resolves when it has ended, however. */
  ended: Promise<unknown>;
  giveUp(): void;
}

export interface LateCopies {
  add(copy: LateCopy): void;
  /** Gives all up, and resolves when they have ended. */
  close(): Promise<void>;
}

export function createLateCopies(): LateCopies {
  /** In the order of their coming. */
  const copies = new Set<LateCopy>();
  let heldBytes = 0;
  return {
    add(copy) {
      copies.add(copy);
      heldBytes += copy.sizeBytes;
      copy.ended.then(() => {
        copies.delete(copy);
        heldBytes -= copy.sizeBytes;
      });
      let excessBytes = heldBytes - LIMITS.lateCopiesBytesMax;
      for (const oldest of copies) {
        if (excessBytes <= 0) return;
        excessBytes -= oldest.sizeBytes;
        oldest.giveUp();
      }
    },
    async close() {
      for (const copy of copies) copy.giveUp();
      await Promise.all([...copies].map(({ ended }) => ended));
    },
  };
}
