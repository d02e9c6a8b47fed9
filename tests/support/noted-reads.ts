// How much the largest read of a store has given at once, for tests of what is bounded in bytes.
import type { KvPort, KvRow } from '../../src/ports/kv.ts';

export interface NotedReads {
  /** Of one range or one step of a cursor, keys and values. */
  largestBytes(): number;
  /** Forgets those so far. */
  forget(): void;
}

export function noteReads(kv: KvPort): NotedReads {
  const { cursor, range } = kv;
  let largestBytes = 0;
  const note = (rows: KvRow[]) => {
    const sizeBytes = rows.reduce((sum, { key, value }) => sum + key.length + value.length, 0);
    largestBytes = Math.max(largestBytes, sizeBytes);
    return rows;
  };
  kv.range = async (bounds) => note(await range(bounds));
  kv.cursor = (bounds) => {
    const opened = cursor(bounds);
    return { ...opened, next: async (count) => note(await opened.next(count)) };
  };
  return {
    largestBytes: () => largestBytes,
    forget() {
      largestBytes = 0;
    },
  };
}
