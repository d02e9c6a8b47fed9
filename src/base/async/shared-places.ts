// Places that are held one by one (by connections, say) and shared among tenants by fair-share.ts. Every caller is let in:
// where the share or all places are used up, an idle holder makes room: of the largest of the widest groups, of the largest
// within it, and so on, the one that has been idle longest of the narrowest group with most idle ones. Only where nobody is
// idle is the new connection one too many.
import { must } from '../assert.ts';
import { createFairShare, type SharePath } from './fair-share.ts';

export interface SharedPlacesOptions<T> {
  /** Places of all together. */
  readonly limit: number;
  /** As in fair-share.ts; paths have as many groups. */
  readonly weights: readonly number[];
  /** Called for a holder that makes room, when it has its place no more. Must not call back. */
  end(holder: T, path: SharePath): void;
}

export interface SharedPlaces<T> {
  /** Places that are held. */
  readonly count: number;
  /**
   * Takes a place; the holder is idle at first. False when it is one too many: its share is used up, and nobody idle could
   * make room. It holds a place all the same, until `remove`.
   */
  add(holder: T, path: SharePath): boolean;
  /** Counts the holder in other groups from here on. The answer is that of `add`. */
  move(holder: T, path: SharePath): boolean;
  /** Who is idle may have to make room. Telling it again makes it the one that is idle since now. */
  setIdle(holder: T, isIdle: boolean): void;
  /** Gives the place back. Nothing happens to one that has none. */
  remove(holder: T): void;
}

/** Who may have to go for one new connection. */
const YIELDS_MAX = 4;

interface Group<T> {
  held: number;
  idleCount: number;
  readonly groups: Map<string, Group<T>>;
  /** The narrowest ones that are in it. */
  readonly byIdle: Ranking<Group<T>>;
  /** Of a narrowest one: in the order in which they became so. */
  readonly idle: Set<T>;
}

interface Place<T> {
  path: SharePath;
  /** From the group of all to the narrowest one. */
  groups: Group<T>[];
}

/** Shares places among tenants, as this file's head says. */
export function createSharedPlaces<T>(options: SharedPlacesOptions<T>): SharedPlaces<T> {
  const share = createFairShare(options);
  const all = newGroup<T>();
  const places = new Map<T, Place<T>>();

  function enter(holder: T, path: SharePath, isIdle: boolean): void {
    let group = all;
    const groups = [all];
    for (const name of path) {
      const within = group.groups.get(name) ?? newGroup<T>();
      group.groups.set(name, within);
      groups.push(within);
      group = within;
    }
    for (const each of groups) each.held++;
    share.take(path, 1);
    places.set(holder, { path, groups });
    if (isIdle) setIdle(holder, true);
  }

  function leave(holder: T): void {
    const { path, groups } = must(places.get(holder), 'it holds a place');
    setIdle(holder, false);
    places.delete(holder);
    share.giveBack(path, 1);
    for (const each of groups) each.held--;
    for (const [depth, name] of path.entries())
      if (groups[depth + 1]?.held === 0) groups[depth]?.groups.delete(name);
  }

  function setIdle(holder: T, isIdle: boolean): void {
    const groups = places.get(holder)?.groups;
    const narrowest = groups?.at(-1);
    if (groups === undefined || narrowest === undefined) return;
    const before = narrowest.idle.size;
    narrowest.idle.delete(holder);
    if (isIdle) narrowest.idle.add(holder);
    const change = narrowest.idle.size - before;
    if (change === 0) return;
    for (const each of groups) each.idleCount += change;
    groups.at(-2)?.byIdle.move(narrowest, before, narrowest.idle.size);
  }

  /** False when nobody has to make room for this path. */
  function makeRoom(path: SharePath): boolean {
    let around: Group<T> | undefined = all;
    let own: Group<T> | undefined = all;
    for (let depth = 0; around !== undefined && around.byIdle.first() === undefined; depth++) {
      own = own?.groups.get(path[depth] ?? '');
      around = largestIdle(around.groups.values(), own);
    }
    const [oldest] = around?.byIdle.first()?.idle ?? [];
    if (oldest === undefined) return false;
    const place = must(places.get(oldest), 'the idle hold places');
    leave(oldest);
    options.end(oldest, place.path);
    return true;
  }

  function hasRoom(path: SharePath): boolean {
    for (let yielded = 0; !share.mayTake(path, 1); yielded++) {
      if (yielded === YIELDS_MAX || !makeRoom(path)) return false;
    }
    return true;
  }

  return {
    get count() {
      return places.size;
    },
    add(holder, path) {
      const isWelcome = hasRoom(path);
      enter(holder, path, true);
      return isWelcome;
    },
    move(holder, path) {
      const { groups } = must(places.get(holder), 'it holds a place');
      const isIdle = groups.at(-1)?.idle.has(holder) === true;
      leave(holder);
      const isWelcome = hasRoom(path);
      enter(holder, path, isIdle);
      return isWelcome;
    },
    setIdle,
    remove(holder) {
      if (places.has(holder)) leave(holder);
    },
  };
}

function newGroup<T>(): Group<T> {
  return { held: 0, idleCount: 0, groups: new Map(), byIdle: new Ranking(), idle: new Set() };
}

/** The largest one of those with idle holders; none that is smaller than one's own. */
function largestIdle<T>(groups: Iterable<Group<T>>, own: Group<T> | undefined): Group<T> | undefined {
  let largest = own !== undefined && own.idleCount > 0 ? own : undefined;
  for (const group of groups) {
    const isLarger = group.held > (largest?.held ?? (own?.held ?? 0) - 1);
    if (isLarger && group.idleCount > 0) largest = group;
  }
  return largest;
}

/** Finds the one with the largest number, where numbers change by one at a time. */
class Ranking<T> {
  /** By number, from 1 on. */
  readonly #ranks: Set<T>[] = [];
  #top = 0;

  move(one: T, from: number, to: number): void {
    this.#ranks[from]?.delete(one);
    if (to > 0) {
      this.#ranks[to] ??= new Set();
      this.#ranks[to].add(one);
    }
    this.#top = Math.max(this.#top, to);
    while (this.#top > 0 && (this.#ranks[this.#top]?.size ?? 0) === 0) this.#top--;
    // What a crowd has left behind is not kept.
    this.#ranks.length = Math.min(this.#ranks.length, this.#top + 1);
  }

  first(): T | undefined {
    const [one] = this.#ranks[this.#top] ?? [];
    return one;
  }
}
