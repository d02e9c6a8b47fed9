// The store as the replicas of a node write to it: nothing of theirs is refused because too much waits already. What is in
// the memory of a replica must come to be on its disk, and in order: an entry that was left out would be a hole in its
// log. What waits is bounded where it arises: entries of others by log-store.ts, own ones by the overlay.
import type { KvPort } from '../../ports/kv.ts';
import { forwardKv } from './forward-kv.ts';

export function boundedKv(kv: KvPort): KvPort {
  return forwardKv(kv, { commit: (rows, options) => kv.commit(rows, { ...options, isBounded: true }) });
}
