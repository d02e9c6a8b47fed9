// How much the largest read of a store has given at once, for tests of what is bounded in bytes.
import type { KvPort, KvRow } from '../../../src/ports/kv.ts';

export interface NotedReads {
  /** Of one range, one step of a cursor or rows that are asked for together, keys and values. */
  largestBytes(): number;
  /** Forgets those so far. */
  forget(): void;
}

export function noteReads(kv: KvPort): NotedReads {
  const { cursor, getMany, range } = kv;
  let largestBytes = 0;
  const note = (rows: KvRow[]) => {
    const sizeBytes = rows.reduce((sum, { key, value }) => sum + key.length + value.length, 0);
    largestBytes = Math.max(largestBytes, sizeBytes);
    return rows;
  };
  kv.getMany = async (column, keys) => {
    const values = await getMany(column, keys);
    note(keys.flatMap((key, at) => (values[at] === undefined ? [] : [{ key, value: values[at] }])));
    return values;
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
