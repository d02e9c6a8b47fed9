// What a command of the server left out because others held it (`leavesBusy`): it is done by a command of its own, which waits
// its turn and holds nothing else meanwhile. The worker goes on.

/** Of one shard. What is beyond is found again in the next round. */
const AT_ONCE = 8;

/**
 * Where the worker may not go on before all are done, as they stand in no queue that is looked at again: does them a few at a
 * time. Rejects with the first failure once all have had their turn.
 */
export async function finishLeft<Item>(
  items: Iterable<Item>,
  doOne: (item: Item) => Promise<unknown>,
): Promise<void> {
  const failures: unknown[] = [];
  const rest = items[Symbol.iterator]();
  const goOn = async () => {
    for (let next = rest.next(); next.done !== true; next = rest.next()) {
      await doOne(next.value).catch((error: unknown) => failures.push(error));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, goOn));
  if (failures.length > 0) throw failures[0];
}

export interface LateItems<Item> {
  /** Begins what is not under way; `doOne` may reject: it is found again. */
  begin(shard: number, items: readonly Item[], doOne: (item: Item) => Promise<unknown>): void;
}

export function createLateItems<Item>(nameOf: (item: Item) => string): LateItems<Item> {
  const underWay = new Map<number, Set<string>>();

  async function finish(shard: number, name: string, doing: Promise<unknown>): Promise<void> {
    await doing.catch(() => {});
    const names = underWay.get(shard);
    names?.delete(name);
    if (names?.size === 0) underWay.delete(shard);
  }

  return {
    begin(shard, items, doOne) {
      for (const item of items) {
        const names = underWay.get(shard) ?? new Set();
        const name = nameOf(item);
        if (names.size >= AT_ONCE) return;
        if (names.has(name)) continue;
        underWay.set(shard, names.add(name));
        void finish(shard, name, doOne(item));
      }
    },
  };
}
