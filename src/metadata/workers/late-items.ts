// What a command of the server left out because others held it (`leavesBusy`): it is done by a command of its own, which waits
// its turn and holds nothing else meanwhile. The worker goes on.

/** Of one shard. What is beyond is found again in the next round. */
const AT_ONCE = 8;

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
