// Committed rows of buckets in memory, because every query about a bucket is checked against its row first (R45).
// Exact: an entry that writes such a row drops it here before its answer leaves. Commands do not look here, they read
// with the overlay.
import { must } from '../lib/assert.ts';
import { latin1Key } from '../lib/bytes.ts';
import type { KvPort, KvPut } from '../ports/kv.ts';
import type { BucketGuard } from '../ports/state-machine.ts';
import { rowKey } from './row-keys.ts';

const KEPT_MAX = 10_000;

export class BucketRows {
  readonly #shard: number;
  readonly #kv: KvPort;
  readonly #guard: BucketGuard;
  readonly #rows = new Map<string, Uint8Array | undefined>();
  /** Raised with every change, so that a read from before it is not kept. */
  #changeCount = 0;

  constructor(shard: number, deps: { kv: KvPort; guard: BucketGuard }) {
    this.#shard = shard;
    this.#kv = deps.kv;
    this.#guard = deps.guard;
  }

  async read(bucketId: string): Promise<Uint8Array | undefined> {
    const { table, key } = this.#guard.address(bucketId);
    const stored = rowKey(this.#shard, table, key);
    const name = latin1Key(stored);
    const kept = this.#rows.get(name);
    if (kept !== undefined || this.#rows.has(name)) return kept;
    const changeCount = this.#changeCount;
    const [row] = await this.#kv.getMany(table.column, [stored]);
    if (changeCount === this.#changeCount) {
      if (this.#rows.size >= KEPT_MAX) this.#rows.delete(must(this.#rows.keys().next().value, 'a row'));
      this.#rows.set(name, row);
    }
    return row;
  }

  /** Rows of an entry that is now in the state. */
  onCommitted(rows: readonly KvPut[]): void {
    this.#changeCount++;
    if (this.#rows.size > 0) for (const { key } of rows) this.#rows.delete(latin1Key(key));
  }
}
