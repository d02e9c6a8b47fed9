// Shares a resource of fixed size among tenants, so that none of them can take it away from the others. The rule is the
// dynamic threshold of shared-memory switches (Choudhury and Hahne, "Dynamic Queue Length Thresholds for Shared-Memory
// Packet Switches", 1998): a tenant may hold at most `weight` times what is free. One tenant alone gets
// weight / (weight + 1) of the resource, n greedy ones weight / (n * weight + 1) each, and some of it is always free for
// the next. No tenant has to be known beforehand, and nothing is set aside for those that are away.
//
// A tenant is a path of groups, the widest first (an account, then an address that uses it). The rule holds for each
// group on the path with its own weight, so that one address cannot take an account's whole share either.
import { assert } from '../assert.ts';

/** Names of groups, the widest first. Equal names at one depth are one group. */
export type SharePath = readonly string[];

/** What is used up: the share of the tenant who asks, or the whole resource. */
export type ShareName = 'tenant' | 'all';

export interface FairShareOptions {
  /** Size of the resource, in units of the caller's choice (bytes, connections, requests). */
  readonly limit: number;
  /** By depth of the path: how many times what is free a group may hold. Smaller ones for narrower groups. */
  readonly weights: readonly number[];
}

export interface FairShare {
  /** Units that are held by all together. */
  readonly used: number;
  /** Whether `units` more keep every group of the path within its share. Takes nothing. */
  mayTake(path: SharePath, units: number): boolean;
  /** For a path that may not take `units`: what is used up. A path that holds nothing is refused only when everything is. */
  usedUp(units: number): ShareName;
  /** Whether the path holds more than its share by now: it is to yield when others wait. */
  isOverShare(path: SharePath): boolean;
  /** Counts `units` as held, whether or not there was room for them. */
  take(path: SharePath, units: number): void;
  /** Gives back what was taken. */
  giveBack(path: SharePath, units: number): void;
  /** Units that the group at the end of the path holds. */
  usedBy(path: SharePath): number;
}

export function createFairShare(options: FairShareOptions): FairShare {
  const { limit, weights } = options;
  /** By depth: what each group holds. Groups that hold nothing are forgotten. */
  const groups: Map<string, number>[] = weights.map(() => new Map());
  let used = 0;

  function add(path: SharePath, units: number): void {
    assert(path.length <= groups.length, 'every depth has a weight');
    used += units;
    assert(used >= 0, 'no more is given back than was taken');
    path.forEach((name, depth) => {
      const group = groups[depth] as Map<string, number>;
      const held = (group.get(name) ?? 0) + units;
      assert(held >= 0, 'no more is given back than was taken');
      if (held === 0) group.delete(name);
      else group.set(name, held);
    });
  }

  /** Whether every group of the path would be within its share if it held `units` more. */
  function isWithinShare(path: SharePath, units: number): boolean {
    const free = limit - used - units;
    if (free < 0) return false;
    return path.every((name, depth) => {
      const held = groups[depth]?.get(name) ?? 0;
      // Who holds nothing may take what is free: a resource of few units would otherwise shut small tenants out.
      return held === 0 || held + units <= (weights[depth] as number) * free;
    });
  }

  return {
    get used() {
      return used;
    },
    mayTake: isWithinShare,
    usedUp: (units) => (used + units <= limit ? 'tenant' : 'all'),
    isOverShare: (path) => !isWithinShare(path, 0),
    take: (path, units) => add(path, units),
    giveBack: (path, units) => add(path, -units),
    usedBy: (path) => groups[path.length - 1]?.get(path.at(-1) ?? '') ?? 0,
  };
}
