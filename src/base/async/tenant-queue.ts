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

/** What stands at the end of a path is in the group itself, before the groups within it. */
interface Group<T> {
  readonly ahead: T[];
  readonly others: T[];
  /** Maps keep their order: who has had a turn goes to the end. */
  readonly groups: Map<string, Group<T>>;
}

export function createTenantQueue<T>(): TenantQueue<T> {
  const all = newGroup<T>();
  let size = 0;

  function find(path: SharePath): Group<T> | undefined {
    let group: Group<T> | undefined = all;
    for (const name of path) group = group?.groups.get(name);
    return group;
  }

  function forgetEmpty(path: SharePath): void {
    for (let depth = path.length; depth > 0; depth--) {
      const group = find(path.slice(0, depth));
      if (group !== undefined && !isEmpty(group)) return;
      find(path.slice(0, depth - 1))?.groups.delete(path[depth - 1] ?? '');
    }
  }

  return {
    get size() {
      return size;
    },
    add(path, item, { isAhead = false } = {}) {
      let group = all;
      for (const name of path) {
        const within = group.groups.get(name) ?? newGroup<T>();
        group.groups.set(name, within);
        group = within;
      }
      (isAhead ? group.ahead : group.others).push(item);
      size++;
    },
    remove(path, item) {
      const group = find(path);
      const list = group?.ahead.includes(item) ? group.ahead : group?.others;
      const at = list?.indexOf(item) ?? -1;
      if (list === undefined || at === -1) return false;
      list.splice(at, 1);
      size--;
      forgetEmpty(path);
      return true;
    },
    firstOf(path) {
      const group = find(path);
      return group?.ahead[0] ?? group?.others[0];
    },
    next(mayGo) {
      const item = takeNext(all, mayGo);
      if (item !== undefined) size--;
      return item;
    },
    [Symbol.iterator]: () => itemsOf(all),
  };
}

function newGroup<T>(): Group<T> {
  return { ahead: [], others: [], groups: new Map() };
}

function isEmpty<T>({ ahead, others, groups }: Group<T>): boolean {
  return ahead.length + others.length + groups.size === 0;
}

function takeNext<T>(group: Group<T>, mayGo: (item: T) => boolean): T | undefined {
  const list = group.ahead.length > 0 ? group.ahead : group.others;
  if (list.length > 0 && mayGo(list[0] as T)) return list.shift();
  for (const [name, within] of group.groups) {
    const item = takeNext(within, mayGo);
    if (item === undefined) continue;
    group.groups.delete(name);
    if (!isEmpty(within)) group.groups.set(name, within);
    return item;
  }
  return undefined;
}

function* itemsOf<T>({ ahead, others, groups }: Group<T>): IterableIterator<T> {
  yield* ahead;
  yield* others;
  for (const group of groups.values()) yield* itemsOf(group);
}
