// Copies that are still being written when their write has been answered. They continue within a common bound of memory;
// beyond it the oldest are given up, and the chunk keeps the copies that it has.
import { LIMITS } from '../../types/limits.ts';

export interface LateCopy {
  sizeBytes: number;
  /** Resolves when the copy has ended, with or without success. */
  ended: Promise<unknown>;
  giveUp(): void;
}

export interface LateCopies {
  add(copy: LateCopy): void;
  /** Gives up all copies, and resolves when they have ended. */
  close(): Promise<void>;
}

export function createLateCopies(): LateCopies {
  /** Oldest first. */
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
