// What operators do with storage nodes while clients work: one joins, one is drained and removed for good, one is drained
// and kept after all. The map is changed as their tools change it; everything else is the cluster's to do.

import { changePlacement } from '../../src/chunks/placement/placement.ts';
import { holdings, isPending, retireDisks, withLeave } from '../../src/chunks/placement/placement-changes.ts';
import type { DiskId, PlacementMap } from '../../src/ports/placement.ts';
import type { Chance } from './chance.ts';
import type { PlacementBoard } from './placement-board.ts';
import type { Ground } from './sites.ts';
import { StorageSite } from './storage-site.ts';

/** Of the seeds with chunks. */
const JOINED_SHARE = 0.5;
const DRAINED_SHARE = 0.7;
/** Of drains. */
const KEPT_SHARE = 0.4;
const FROM_MS = 2000;
const TO_MS = 22_000;
const LOOK_EVERY_MS = 700;
const KEPT_MIN_MS = 1000;
const KEPT_MAX_MS = 9000;

const BRANCHES = {
  joined: 'chunks: node joined',
  drained: 'chunks: drain begun',
  kept: 'chunks: drain taken back',
  removed: 'chunks: node removed',
};

export const OPERATOR_BRANCHES: readonly string[] = Object.values(BRANCHES);

export class DiskOperators {
  readonly #ground: Ground;
  readonly #chance: Chance;
  readonly #board: PlacementBoard;
  readonly #sites: readonly StorageSite[];
  readonly #isEmpty: (site: StorageSite) => boolean;
  readonly #onRemoved: (site: StorageSite) => void;
  /** Starts when it joins. */
  readonly #joiningDisk: StorageSite;
  readonly #removed = new Set<StorageSite>();
  #draining: StorageSite | undefined;
  #hasJoined = false;

  constructor(
    ground: Ground,
    options: {
      chance: Chance;
      board: PlacementBoard;
      sites: readonly StorageSite[];
      joiningDisk: StorageSite;
      isEmpty(site: StorageSite): boolean;
      onRemoved(site: StorageSite): void;
    },
  ) {
    this.#ground = ground;
    this.#chance = options.chance;
    this.#board = options.board;
    this.#sites = options.sites;
    this.#joiningDisk = options.joiningDisk;
    this.#isEmpty = options.isEmpty;
    this.#onRemoved = options.onRemoved;
  }

  /** Those that are there, and will be. */
  get staying(): StorageSite[] {
    // Also while it is down.
    const all = this.#hasJoined ? [...this.#sites, this.#joiningDisk] : this.#sites;
    return all.filter((site) => !this.#removed.has(site));
  }

  begin(): void {
    const at = (name: string, run: () => void) =>
      this.#ground.scheduler.after(this.#chance.between(FROM_MS, TO_MS), { name, run });
    if (this.#chance.happens(JOINED_SHARE)) at('a storage node joins', () => this.#join());
    if (this.#chance.happens(DRAINED_SHARE)) at('a storage node is drained', () => void this.#drain());
  }

  #join(): void {
    this.#ground.counts.add(BRANCHES.joined);
    this.#hasJoined = true;
    this.#joiningDisk.startSoon(0);
  }

  async #drain(): Promise<void> {
    const { scheduler, counts } = this.#ground;
    const site = this.#chance.pick(this.#sites);
    const ids = this.#idsOf(site);
    const { map } = this.#board;
    if (map === undefined || ids.size === 0) return;
    this.#draining = site;
    counts.add(BRANCHES.drained);
    this.#leave(map, ids, 'draining');
    if (this.#chance.happens(KEPT_SHARE)) {
      await scheduler.sleep(this.#chance.between(KEPT_MIN_MS, KEPT_MAX_MS), 'a drain is taken back');
      counts.add(BRANCHES.kept);
      this.#draining = undefined;
      if (this.#board.map !== undefined) this.#leave(this.#board.map, ids, undefined);
      return;
    }
    // Nothing may be left on it: chunks of uploads under way have no repair entry before they are committed.
    while (!this.#mayRemove(ids) || !this.#isEmpty(site)) {
      await scheduler.sleep(LOOK_EVERY_MS, 'a drain goes on');
      this.#drainReplaced(site, ids);
    }
    counts.add(BRANCHES.removed);
    if (this.#board.map !== undefined) this.#board.put(retireDisks(this.#board.map, ids));
    this.#removed.add(site);
    this.#draining = undefined;
    site.keepDown();
    site.kill();
    this.#onRemoved(site);
  }

  /** The node that is drained now. At rest a drain that has begun comes to its end. */
  get draining(): StorageSite | undefined {
    return this.#draining;
  }

  /** A disk that was replaced meanwhile joins as another one: it is drained as well. */
  #drainReplaced(site: StorageSite, ids: Set<DiskId>): void {
    const { map } = this.#board;
    const here = this.#idsOf(site);
    const replaced = map?.disks.filter(({ id, leave }) => leave === undefined && here.has(id)) ?? [];
    if (map === undefined || replaced.length === 0) return;
    for (const { id } of replaced) ids.add(id);
    this.#leave(map, new Set(replaced.map(({ id }) => id)), 'draining');
  }

  #leave(map: PlacementMap, ids: ReadonlySet<DiskId>, leave: 'draining' | undefined): void {
    this.#board.put(changePlacement(map, { disks: withLeave(map.disks, ids, leave) }));
  }

  #mayRemove(ids: ReadonlySet<DiskId>): boolean {
    const { map } = this.#board;
    if (map === undefined || isPending(map)) return false;
    const held = holdings(map);
    return [...ids].every((id) => {
      const { ownedCount = 0, pendingCount = 0 } = held.get(id) ?? {};
      return ownedCount + pendingCount === 0;
    });
  }

  #idsOf(site: StorageSite): Set<DiskId> {
    const known = new Set(this.#board.map?.disks.map(({ id }) => id));
    const ids = site.disks.flatMap((disk) => StorageSite.idOf(disk) ?? []);
    return new Set(ids.filter((id) => known.has(id)));
  }
}
