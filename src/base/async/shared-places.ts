// Places that are held one by one (by connections, say) and shared among tenants by fair-share.ts. Every caller is let in:
// where the share or all places are used up, an idle holder makes room, the one that has been idle longest of the address
// with most idle ones, of the largest tenant. Only where nobody is idle is the new connection one too many.
import { must } from '../assert.ts';
import { createFairShare, type SharePath } from './fair-share.ts';

export interface SharedPlacesOptions<T> {
  /** Places of all together. */
  readonly limit: number;
  /** As in fair-share.ts; paths have two groups. */
  readonly weights: readonly [number, number];
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

/** The narrower group of a path. */
interface Address<T> {
  held: number;
  /** In the order in which they became so. */
  readonly idle: Set<T>;
}

/** The wider one. */
interface Tenant<T> {
  held: number;
  readonly addresses: Map<string, Address<T>>;
  readonly byIdle: Ranking<Address<T>>;
}

interface Place<T> {
  path: SharePath;
  tenant: Tenant<T>;
  address: Address<T>;
}

/** Shares places among tenants, as this file's head says. */
export function createSharedPlaces<T>(options: SharedPlacesOptions<T>): SharedPlaces<T> {
  const share = createFairShare(options);
  const tenants = new Map<string, Tenant<T>>();
  const places = new Map<T, Place<T>>();

  function enter(holder: T, path: SharePath, isIdle: boolean): void {
    const [wide = '', narrow = ''] = path;
    const tenant = tenants.get(wide) ?? { held: 0, addresses: new Map(), byIdle: new Ranking() };
    const address = tenant.addresses.get(narrow) ?? { held: 0, idle: new Set() };
    tenants.set(wide, tenant);
    tenant.addresses.set(narrow, address);
    tenant.held++;
    address.held++;
    share.take(path, 1);
    places.set(holder, { path, tenant, address });
    if (isIdle) setIdle(holder, true);
  }

  function leave(holder: T): void {
    const { path, tenant, address } = must(places.get(holder), 'it holds a place');
    setIdle(holder, false);
    places.delete(holder);
    share.giveBack(path, 1);
    const [wide = '', narrow = ''] = path;
    if (--address.held === 0) tenant.addresses.delete(narrow);
    if (--tenant.held === 0) tenants.delete(wide);
  }

  function setIdle(holder: T, isIdle: boolean): void {
    const place = places.get(holder);
    if (place === undefined) return;
    const { tenant, address } = place;
    const before = address.idle.size;
    address.idle.delete(holder);
    if (isIdle) address.idle.add(holder);
    tenant.byIdle.move(address, before, address.idle.size);
  }

  /** False when nobody has to make room for this path. */
  function makeRoom(path: SharePath): boolean {
    const own = tenants.get(path[0] ?? '');
    const heldByOwn = own?.held ?? 0;
    let largest = own !== undefined && own.byIdle.first() !== undefined ? own : undefined;
    for (const tenant of tenants.values()) {
      const isLarger = tenant.held > (largest?.held ?? heldByOwn - 1);
      if (isLarger && tenant.byIdle.first() !== undefined) largest = tenant;
    }
    const [oldest] = largest?.byIdle.first()?.idle ?? [];
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
      const { address } = must(places.get(holder), 'it holds a place');
      const isIdle = address.idle.has(holder);
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
