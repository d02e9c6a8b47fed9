// Hands whole partitions to disks: keeps what lies well, gives what lacks an owner to who lacks most, then moves single
// copies from disks with too many to disks with too few, if need be by way of others. Deterministic; made for changes
// that are rare, not for requests.
import { assert, must } from '../lib/assert.ts';
import { LIMITS } from '../model/limits.ts';
import type { DiskId, PlacedDisk } from '../ports/placement.ts';
import type { Spread } from './placement-shares.ts';

const PARTITIONS = LIMITS.partitionCount;
/** Shares are fractions with an error far below it. */
const EPSILON = 1e-6;

interface Disk {
  readonly id: DiskId;
  readonly zone: number;
  readonly node: number;
  /** Fewer are too few, and more too many. */
  readonly least: number;
  readonly most: number;
  readonly share: number;
  readonly partitions: Set<number>;
}

export interface SpreadOptions {
  disks: readonly PlacedDisk[];
  spread: Spread;
  shares: ReadonlyMap<DiskId, number>;
  /** Owners up to now; disks that are no more are left out. */
  before: readonly (readonly DiskId[])[];
}

/** Owners by partition. */
export function spreadCopies(options: SpreadOptions): DiskId[][] {
  return new CopySpreader(options).spread();
}

class CopySpreader {
  readonly #spread: Spread;
  readonly #disks: readonly Disk[];
  readonly #owners: Disk[][];
  readonly #zoneLacks = new Map<number, number>();
  readonly #nodeLacks = new Map<number, number>();

  constructor({ disks, spread, shares, before }: SpreadOptions) {
    const zones = numbered(disks.map(({ zone }) => zone));
    const nodes = numbered(disks.map(({ nodeId }) => nodeId));
    this.#spread = spread;
    this.#disks = disks.map((disk) => {
      const share = must(shares.get(disk.id), 'each disk has a share');
      const zone = must(zones.get(disk.zone), 'a zone');
      const node = must(nodes.get(disk.nodeId), 'a node');
      const bounds = { least: Math.floor(share + EPSILON), most: Math.ceil(share - EPSILON) };
      return { id: disk.id, zone, node, share, ...bounds, partitions: new Set<number>() };
    });
    for (const { zone, node, share } of this.#disks) {
      this.#zoneLacks.set(zone, (this.#zoneLacks.get(zone) ?? 0) + share);
      this.#nodeLacks.set(node, (this.#nodeLacks.get(node) ?? 0) + share);
    }
    const byId = new Map(this.#disks.map((disk) => [disk.id, disk]));
    this.#owners = Array.from({ length: PARTITIONS }, () => []);
    for (const [partition, ids] of before.entries()) {
      this.#keep(
        partition,
        ids.flatMap((id) => byId.get(id) ?? []),
      );
    }
  }

  /** Where not all can stay, because more can be kept apart now, those stay that lack most. */
  #keep(partition: number, owners: readonly Disk[]): void {
    for (const disk of owners.toSorted((a, b) => lackOf(b) - lackOf(a))) {
      if (this.#fits(this.#ownersOf(partition), disk)) this.#give(partition, disk);
    }
  }

  spread(): DiskId[][] {
    for (let at = 0; at < PARTITIONS; at++) {
      const partition = shuffled(at);
      while (this.#ownersOf(partition).length < this.#spread.copies)
        this.#give(partition, this.#neediest(partition));
    }
    this.#level();
    return this.#owners.map((owners) => owners.map(({ id }) => id));
  }

  /** Whether a partition of these owners can still become as distinct as it should with `disk` among them. */
  #fits(owners: readonly Disk[], disk: Disk): boolean {
    if (owners.includes(disk)) return false;
    const { copies, zones, nodes } = this.#spread;
    const left = copies - owners.length - 1;
    if (left < 0) return false;
    return countOf(owners, disk, 'zone') + left >= zones && countOf(owners, disk, 'node') + left >= nodes;
  }

  /** Zones and nodes by how many copies they lack, for else they end with more than can be kept apart. */
  #neediest(partition: number): Disk {
    const owners = this.#ownersOf(partition);
    let best: Disk | undefined;
    let bestChance = 0;
    for (const [at, disk] of this.#disks.entries()) {
      if (!this.#fits(owners, disk)) continue;
      // Neighbours on one disk have their other copies on many.
      const chance = scrambled(partition * 8191 + at);
      const order = best === undefined ? 1 : this.#compareNeeds(disk, best) || chance - bestChance;
      if (order <= 0) continue;
      best = disk;
      bestChance = chance;
    }
    return must(best, 'there are as many disks as copies');
  }

  #compareNeeds(a: Disk, b: Disk): number {
    const ofGroups = (lacks: ReadonlyMap<number, number>, one: number, other: number) =>
      one === other ? 0 : wholeOf(lacks.get(one)) - wholeOf(lacks.get(other));
    return (
      ofGroups(this.#zoneLacks, a.zone, b.zone) ||
      ofGroups(this.#nodeLacks, a.node, b.node) ||
      lackOf(a) - lackOf(b)
    );
  }

  #level(): void {
    const count = ({ partitions }: Disk) => partitions.size;
    // Who has too many gives to anyone with room, then who has too few takes from anyone who can spare one.
    this.#moveAll(
      (disk) => count(disk) > disk.most,
      (disk) => count(disk) < disk.most,
    );
    this.#moveAll(
      (disk) => count(disk) > disk.least,
      (disk) => count(disk) < disk.least,
    );
  }

  #moveAll(gives: (disk: Disk) => boolean, takes: (disk: Disk) => boolean): void {
    const movesMax = this.#spread.copies * PARTITIONS;
    for (let moves = 0; moves < movesMax; moves++) if (!this.#moveOne(gives, takes)) return;
  }

  /** One copy from a disk that gives to one that takes, by the fewest moves: a search over disks. */
  #moveOne(gives: (disk: Disk) => boolean, takes: (disk: Disk) => boolean): boolean {
    const reachedBy = new Map<Disk, { from: Disk; partition: number } | undefined>();
    const excess = (disk: Disk) => disk.partitions.size - disk.share;
    const queue = this.#disks.filter(gives).sort((a, b) => excess(b) - excess(a));
    for (const disk of queue) reachedBy.set(disk, undefined);
    for (const from of queue) {
      // Those that take first: most moves need no detour.
      const open = this.#disks.filter((disk) => !reachedBy.has(disk)).sort((a, b) => excess(a) - excess(b));
      for (const to of open) {
        const partition = this.#movable(from, to);
        if (partition === undefined) continue;
        reachedBy.set(to, { from, partition });
        if (takes(to)) {
          this.#movePath(to, reachedBy);
          return true;
        }
        queue.push(to);
      }
    }
    return false;
  }

  #movable(from: Disk, to: Disk): number | undefined {
    for (const partition of from.partitions) {
      const others = this.#ownersOf(partition).filter((owner) => owner !== from);
      if (this.#fits(others, to)) return partition;
    }
    return undefined;
  }

  #movePath(end: Disk, reachedBy: ReadonlyMap<Disk, { from: Disk; partition: number } | undefined>): void {
    for (let to = end, step = reachedBy.get(to); step !== undefined; step = reachedBy.get(to)) {
      const { from, partition } = step;
      const owners = this.#ownersOf(partition);
      assert(owners.includes(from) && !owners.includes(to), 'a copy moves from an owner to another disk');
      owners[owners.indexOf(from)] = to;
      from.partitions.delete(partition);
      to.partitions.add(partition);
      to = from;
    }
  }

  #give(partition: number, disk: Disk): void {
    this.#ownersOf(partition).push(disk);
    disk.partitions.add(partition);
    this.#zoneLacks.set(disk.zone, (this.#zoneLacks.get(disk.zone) ?? 0) - 1);
    this.#nodeLacks.set(disk.node, (this.#nodeLacks.get(disk.node) ?? 0) - 1);
  }

  #ownersOf(partition: number): Disk[] {
    return must(this.#owners[partition], 'a partition');
  }
}

function countOf(owners: readonly Disk[], disk: Disk, key: 'zone' | 'node'): number {
  let count = 1;
  for (const [at, owner] of owners.entries()) {
    let isNew = owner[key] !== disk[key];
    for (let before = 0; before < at; before++) isNew &&= owners[before]?.[key] !== owner[key];
    if (isNew) count++;
  }
  return count;
}

/** As a part of its share. */
function lackOf({ share, partitions }: Disk): number {
  return (share - partitions.size) / Math.max(share, 1);
}

function wholeOf(lack: number | undefined): number {
  return Math.ceil((lack ?? 0) - EPSILON);
}

function numbered(names: readonly string[]): Map<string, number> {
  return new Map([...new Set(names)].sort().map((name, at) => [name, at]));
}

/** Each partition once, in no order. */
function shuffled(at: number): number {
  return (at * 1597) % PARTITIONS;
}

/** A number that has nothing to do with its neighbours' (the finalizer of MurmurHash3). */
function scrambled(value: number): number {
  let mixed = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}
