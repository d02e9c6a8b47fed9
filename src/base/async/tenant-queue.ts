// A queue in which groups take turns: each has its own order, and none waits behind another one's crowd. Groups are those
// of a share path (fair-share.ts): first the widest take turns, then those within them.
import type { SharePath } from './fair-share.ts';

export interface TenantQueue<T> {
  readonly size: number;
  /** Behind what its group has; `isAhead`: before those of its group that are not. */
  add(path: SharePath, item: T, options?: { isAhead?: boolean }): void;
  /** False when it is not there any more. */
  remove(path: SharePath, item: T): boolean;
  /** The first one of its group; it stays. */
  firstOf(path: SharePath): T | undefined;
  /** Takes out the first one of the next group whose first one `mayGo`; the group's next turn comes after the others'. */
  next(mayGo: (item: T) => boolean): T | undefined;
  /** Of no order among groups. */
  [Symbol.iterator](): IterableIterator<T>;
}

interface Lane<T> {
  ahead: T[];
  others: T[];
}

export function createTenantQueue<T>(): TenantQueue<T> {
  /** By the widest group and by the whole path. Maps keep their order: who has had a turn goes to the end. */
  const groups = new Map<string, Map<string, Lane<T>>>();
  let size = 0;

  const keysOf = (path: SharePath) => [path[0] ?? '', path.join('\n')] as const;

  /** `hadTurn`: those within the group come after the others of their kind, unless they have gone. */
  function update(outer: string, inner: string, hadTurn: boolean): void {
    const group = groups.get(outer);
    const lane = group?.get(inner);
    if (group === undefined || lane === undefined) return;
    const isEmpty = lane.ahead.length + lane.others.length === 0;
    if (isEmpty || hadTurn) group.delete(inner);
    if (!isEmpty && hadTurn) group.set(inner, lane);
    if (group.size === 0 || hadTurn) groups.delete(outer);
    if (group.size > 0 && hadTurn) groups.set(outer, group);
  }

  return {
    get size() {
      return size;
    },
    add(path, item, { isAhead = false } = {}) {
      const [outer, inner] = keysOf(path);
      const group = groups.get(outer) ?? new Map<string, Lane<T>>();
      const lane = group.get(inner) ?? { ahead: [], others: [] };
      (isAhead ? lane.ahead : lane.others).push(item);
      group.set(inner, lane);
      groups.set(outer, group);
      size++;
    },
    remove(path, item) {
      const [outer, inner] = keysOf(path);
      const lane = groups.get(outer)?.get(inner);
      const list = lane?.ahead.includes(item) ? lane.ahead : lane?.others;
      const at = list?.indexOf(item) ?? -1;
      if (list === undefined || at === -1) return false;
      list.splice(at, 1);
      size--;
      update(outer, inner, false);
      return true;
    },
    firstOf(path) {
      const [outer, inner] = keysOf(path);
      const lane = groups.get(outer)?.get(inner);
      return lane?.ahead[0] ?? lane?.others[0];
    },
    next(mayGo) {
      for (const [outer, group] of groups) {
        for (const [inner, lane] of group) {
          const list = lane.ahead.length > 0 ? lane.ahead : lane.others;
          if (!mayGo(list[0] as T)) continue;
          const item = list.shift() as T;
          size--;
          update(outer, inner, true);
          return item;
        }
      }
      return undefined;
    },
    *[Symbol.iterator]() {
      for (const group of groups.values())
        for (const { ahead, others } of group.values()) yield* [...ahead, ...others];
    },
  };
}
