// The highest fence that a disk has seen for each shard (R21). An order with an older fence is refused, also after a
// restart.
import { assert } from '../../base/assert.ts';
import type { ChunkId, Fence } from '../../ports/chunks.ts';
import type { KvPort, KvPut } from '../../ports/kv.ts';
import { OldFence } from '../../types/chunk-refusals.ts';
import { homeShardOf } from '../../types/names.ts';
import { decodeFence, encodeFence, fenceKey } from './keyspace.ts';

export class Fences {
  readonly #kv: Pick<KvPort, 'getMany'>;
  /** For each shard the highest fence that is known to be durable. */
  readonly #kept = new Map<number, Fence>();

  constructor(kv: Pick<KvPort, 'getMany'>) {
    this.#kv = kv;
  }

  isKept(fence: Fence): boolean {
    const kept = this.#kept.get(fence.shard);
    return kept !== undefined && compareFences(fence, kept) === 0;
  }

  /**
   * The rows that make `fence` durable; none if it is already. Rejects with OldFence. One order at a time; the caller calls
   * `kept` after the commit.
   */
  async rowsOf(fence: Fence): Promise<KvPut[]> {
    const key = fenceKey(fence.shard);
    const [seen] = await this.#kv.getMany('index', [key]);
    const order = seen === undefined ? 1 : compareFences(fence, decodeFence(seen));
    if (order < 0) throw new OldFence();
    return order > 0 ? [{ column: 'index', key, value: encodeFence(fence) }] : [];
  }

  /** The rows are synced. */
  kept(fence: Fence): void {
    this.#kept.set(fence.shard, fence);
  }
}

/** An order of one shard may not name chunks of another. */
export function assertOfHome(ids: readonly ChunkId[], { shard }: Fence): void {
  assert(
    ids.every(({ blobId }) => homeShardOf(blobId) === shard),
    'orders are given by the home of the chunk',
  );
}

function compareFences(
  a: Pick<Fence, 'incarnation' | 'epoch'>,
  b: Pick<Fence, 'incarnation' | 'epoch'>,
): number {
  return a.incarnation - b.incarnation || a.epoch - b.epoch;
}
