// The store as the replicas of a node write to it: nothing of theirs is refused because too much waits already. What is in
// the memory of a replica must come to be on its disk, and in order: an entry that was left out would be a hole in its
// log. What waits is bounded where it arises: entries of others by log-store.ts, own ones by the overlay.
import type { KvPort } from '../ports/kv.ts';

export function boundedKv(kv: KvPort): KvPort {
  return {
    failed: kv.failed,
    getMany: (column, keys) => kv.getMany(column, keys),
    range: (range) => kv.range(range),
    cursor: (bounds) => kv.cursor(bounds),
    commit: (rows, options) => kv.commit(rows, { ...options, isBounded: true }),
    clear: (range) => kv.clear(range),
    usage: () => kv.usage(),
    turnOver: (signal) => kv.turnOver(signal),
    close: () => kv.close(),
  };
}
