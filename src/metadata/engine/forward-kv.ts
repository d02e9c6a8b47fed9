// A store by which some calls go another way. Its methods are not its own properties, so a spread would lose them.
import type { KvPort } from '../../ports/kv.ts';

/** `kv`, but for the calls in `instead`. */
export function forwardKv(kv: KvPort, instead: Partial<KvPort>): KvPort {
  return {
    failed: kv.failed,
    getMany: (column, keys) => kv.getMany(column, keys),
    range: (range) => kv.range(range),
    cursor: (bounds) => kv.cursor(bounds),
    commit: (rows, options) => kv.commit(rows, options),
    clear: (range) => kv.clear(range),
    usage: () => kv.usage(),
    turnOver: (signal) => kv.turnOver(signal),
    close: () => kv.close(),
    ...instead,
  };
}
