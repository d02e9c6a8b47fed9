// Shares a resource of fixed size among tenants, so that none of them can take it away from the others. The rule is the
// dynamic threshold of shared-memory switches (Choudhury and Hahne, "Dynamic Queue Length Thresholds for Shared-Memory
// Packet Switches", 1998): a tenant may hold at most `weight` times what is free. One tenant alone gets
// weight / (weight + 1) of the resource, n greedy ones weight / (n * weight + 1) each, and some of it is always free for
// the next. No tenant has to be known beforehand, and nothing is set aside for those that are away.
//
// A tenant is a path of groups, the widest first (an account, a key of it, an address that uses the key). Each group on
// the path may hold `weight` times what is free of the part that the group around it may have: what the account may take
// yet is shared by its keys as the whole is by accounts. So neither one address nor many of a key take the account's part.
import { assert } from '../assert.ts';

/** Names of groups, the widest first. Equal names within one group are one group. */
export type SharePath = readonly string[];

/** What is used up: the share of the tenant who asks, or the whole resource. */
export type ShareName = 'tenant' | 'all';

export interface FairShareOptions {
  /** Size of the resource, in units of the caller's choice (bytes, connections, requests). */
  readonly limit: number;
  /** By depth of the path: how many times what is free around it a group may hold. Whole numbers. */
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
  /** Units that each group on the path holds, the widest first. */
  heldAlong(path: SharePath): number[];
}

/** Orders what `heldAlong` gives: who holds most comes first, and of equals who holds most within it. */
export function compareHeld(a: readonly number[], b: readonly number[]): number {
  for (const [depth, held] of a.entries()) {
    const difference = (b[depth] ?? 0) - held;
    if (difference !== 0) return difference;
  }
  return 0;
}

interface Group {
  held: number;
  readonly groups: Map<string, Group>;
}

const newGroup = (): Group => ({ held: 0, groups: new Map() });

export function createFairShare(options: FairShareOptions): FairShare {
  const { limit, weights } = options;
  /** Groups that hold nothing are forgotten. */
  const all = newGroup();

  function add(path: SharePath, units: number): void {
    assert(path.length <= weights.length, 'every depth has a weight');
    all.held += units;
    assert(all.held >= 0, 'no more is given back than was taken');
    let around = all;
    for (const name of path) {
      const group = around.groups.get(name) ?? newGroup();
      group.held += units;
      assert(group.held >= 0, 'no more is given back than was taken');
      if (group.held === 0) around.groups.delete(name);
      else if (group.held === units) around.groups.set(name, group);
      around = group;
    }
  }

  /** Whether every group of the path would be within its share if it held `units` more. */
  function isWithinShare(path: SharePath, units: number): boolean {
    // What the group around may take yet is `free / scale`: so all numbers are whole, and nothing is rounded.
    let free = limit - all.held - units;
    let scale = 1;
    if (free < 0) return false;
    let group: Group | undefined = all;
    for (const [depth, name] of path.entries()) {
      group = group.groups.get(name);
      // Who holds nothing may take what is free: a resource of few units would otherwise shut small tenants out.
      if (group === undefined) return true;
      const weight = weights[depth] as number;
      // It may hold so much that the rest of the part, when it has taken that, is a `weight`-th of it.
      free = weight * free - (group.held + units) * scale;
      if (free < 0) return false;
      scale *= weight + 1;
    }
    return true;
  }

  function heldAlong(path: SharePath): number[] {
    let group: Group | undefined = all;
    return path.map((name) => {
      group = group?.groups.get(name);
      return group?.held ?? 0;
    });
  }

  return {
    get used() {
      return all.held;
    },
    mayTake: isWithinShare,
    usedUp: (units) => (all.held + units <= limit ? 'tenant' : 'all'),
    isOverShare: (path) => !isWithinShare(path, 0),
    take: (path, units) => add(path, units),
    giveBack: (path, units) => add(path, -units),
    usedBy: (path) => heldAlong(path).at(-1) ?? 0,
    heldAlong,
  };
}
