// Hands whole partitions to disks: keeps good owners, gives each missing copy to the disk that lacks most, then moves
// single copies from disks with too many to disks with too few, over other disks if necessary. Deterministic; for rare
// changes, not for requests.
import { assert, must } from '../../base/assert.ts';
import type { Steps } from '../../base/async/steps.ts';
import type { DiskId, PlacedDisk } from '../../ports/placement.ts';
import { LIMITS } from '../../types/limits.ts';
import type { Spread } from './placement-shares.ts';

const PARTITIONS = LIMITS.partitionCount;
/** Shares are fractions with an error far below this. */
const EPSILON = 1e-6;
/** Comparisons in one step: about a millisecond or two. */
const STEP_COMPARISONS = 20_000;
/** Cost of keeping or ordering the owners of a partition, in comparisons. */
const PARTITION_COMPARISONS = 40;
/** One round of levelling may open moves for the next. */
const ROUNDS_MAX = 8;

interface Disk {
  readonly id: DiskId;
  readonly zone: number;
  readonly node: number;
  /** The disk should own between `least` and `most` partitions. */
  readonly least: number;
  readonly most: number;
  readonly share: number;
  readonly partitions: Set<number>;
  /** Partitions that it did not have before: moving one costs nothing. */
  readonly given: Set<number>;
}

interface Partition {
  /** Previous owners that stay, then new ones. */
  readonly owners: Disk[];
  /** The number of owners that stay even if moving them would be more even. */
  pinnedCount: number;
  /** The number of zones and nodes that they should be on. */
  zones: number;
  nodes: number;
}

export interface SpreadOptions {
  disks: readonly PlacedDisk[];
  spread: Spread;
  shares: ReadonlyMap<DiskId, number>;
  /** Owners so far, the newest last; disks that are not in `disks` are left out. */
  before: readonly (readonly DiskId[])[];
  /** The owners of such a partition stay (R34): evenness alone does not change it. */
  isPinned(partition: number): boolean;
  /** Disks that had the partition and get it back, in place of its newest owner, within their share. */
  returning(partition: number): readonly DiskId[];
}

/** Owners by partition: staying ones in their order, then new ones. */
export function spreadCopies(options: SpreadOptions): Steps<DiskId[][]> {
  return new CopySpreader(options).spread();
}

class CopySpreader {
  readonly #options: SpreadOptions;
  readonly #spread: Spread;
  readonly #disks: readonly Disk[];
  readonly #partitions: readonly Partition[];
  readonly #zoneLacks = new Map<number, number>();
  readonly #nodeLacks = new Map<number, number>();
  #comparisons = 0;

  constructor(options: SpreadOptions) {
    const { disks, spread, shares } = options;
    const zones = numbered(disks.map(({ zone }) => zone));
    const nodes = numbered(disks.map(({ nodeId }) => nodeId));
    this.#options = options;
    this.#spread = spread;
    this.#disks = disks.map((disk) => {
      const share = must(shares.get(disk.id), 'each disk has a share');
      const zone = must(zones.get(disk.zone), 'a zone');
      const node = must(nodes.get(disk.nodeId), 'a node');
      const bounds = { least: Math.floor(share + EPSILON), most: Math.ceil(share - EPSILON) };
      const held = { partitions: new Set<number>(), given: new Set<number>() };
      return { id: disk.id, zone, node, share, ...bounds, ...held };
    });
    for (const { zone, node, share } of this.#disks) {
      this.#zoneLacks.set(zone, (this.#zoneLacks.get(zone) ?? 0) + share);
      this.#nodeLacks.set(node, (this.#nodeLacks.get(node) ?? 0) + share);
    }
    const wanted = { zones: spread.zones, nodes: spread.nodes };
    this.#partitions = Array.from({ length: PARTITIONS }, () => ({ owners: [], pinnedCount: 0, ...wanted }));
  }

  *spread(): Steps<DiskId[][]> {
    const { before, returning, isPinned } = this.#options;
    const byId = new Map(this.#disks.map((disk) => [disk.id, disk]));
    const disksOf = (ids: readonly DiskId[] | undefined) => (ids ?? []).flatMap((id) => byId.get(id) ?? []);
    for (let partition = 0; partition < PARTITIONS; partition++) {
      this.#keep(partition, disksOf(before[partition]));
      if (this.#hasStepEnded(PARTITION_COMPARISONS)) yield;
    }
    for (let partition = 0; partition < PARTITIONS; partition++) {
      for (const disk of disksOf(returning(partition))) {
        if (this.#giveBack(partition, disk) || !isPinned(partition)) continue;
        // As distinct as it should be is too much for one step; it is not to become less so.
        this.#pin(partition);
        this.#giveBack(partition, disk);
      }
      if (isPinned(partition)) this.#pin(partition);
      if (this.#hasStepEnded(PARTITION_COMPARISONS)) yield;
    }
    for (let at = 0; at < PARTITIONS; at++) {
      const partition = shuffled(at);
      while (this.#of(partition).owners.length < this.#spread.copies)
        this.#give(partition, this.#neediest(partition), 'given');
      if (this.#hasStepEnded()) yield;
    }
    yield* this.#level();
    const ordered: DiskId[][] = [];
    for (const [partition, { owners }] of this.#partitions.entries()) {
      ordered.push(this.#inOrderOfBefore(owners, partition).map(({ id }) => id));
      if (this.#hasStepEnded(PARTITION_COMPARISONS)) yield;
    }
    return ordered;
  }

  /** If not all can stay, because copies can be kept further apart now, the disks that lack most stay. */
  #keep(partition: number, owners: readonly Disk[]): void {
    if (this.#options.isPinned(partition)) {
      for (const disk of owners.slice(0, this.#spread.copies)) this.#give(partition, disk, 'kept');
      return;
    }
    for (const disk of owners.toSorted((a, b) => lackOf(b) - lackOf(a)))
      if (this.#fits(partition, disk)) this.#give(partition, disk, 'kept');
  }

  /**
   * Replaces the newest owner that can spare it; during a pending change, the newest one. Never one without which the copies
   * would be closer together: all of them could end on one node. Returns false where there is none.
   */
  #giveBack(partition: number, disk: Disk): boolean {
    const { owners } = this.#of(partition);
    if (owners.includes(disk) || disk.partitions.size >= disk.most) return true;
    if (owners.length < this.#spread.copies) {
      if (!this.#fits(partition, disk)) return false;
      this.#give(partition, disk, 'kept');
      return true;
    }
    const newestFirst = this.#inOrderOfBefore(owners, partition).reverse();
    const fitting = newestFirst.filter((owner) => this.#fits(partition, disk, owner));
    const gone = this.#options.isPinned(partition)
      ? fitting[0]
      : (fitting.find(({ partitions, least }) => partitions.size > least) ??
        fitting.sort((a, b) => lackOf(a) - lackOf(b))[0]);
    if (gone === undefined) return false;
    this.#take(partition, gone);
    this.#give(partition, disk, 'kept');
    return true;
  }

  /** All owners stay; the partition becomes as distinct as that allows. */
  #pin(partition: number): void {
    const pinned = this.#of(partition);
    const { copies, zones, nodes } = this.#spread;
    const { owners } = pinned;
    const left = copies - owners.length;
    pinned.pinnedCount = owners.length;
    pinned.zones = Math.min(zones, distinctCount(owners, 'zone') + left);
    pinned.nodes = Math.min(nodes, distinctCount(owners, 'node') + left);
  }

  /** Whether the partition can still become as distinct as it should with `disk` in place of `gone`. */
  #fits(partition: number, disk: Disk, gone?: Disk): boolean {
    const { owners, zones, nodes } = this.#of(partition);
    this.#comparisons++;
    let left = this.#spread.copies - 1;
    let zoneCount = 1;
    let nodeCount = 1;
    for (let at = 0; at < owners.length; at++) {
      const owner = owners[at] as Disk;
      if (owner === gone) continue;
      if (owner === disk) return false;
      left--;
      let isNewZone = owner.zone !== disk.zone;
      let isNewNode = owner.node !== disk.node;
      for (let earlier = 0; earlier < at; earlier++) {
        const other = owners[earlier] as Disk;
        if (other === gone) continue;
        if (other.zone === owner.zone) isNewZone = false;
        if (other.node === owner.node) isNewNode = false;
      }
      if (isNewZone) zoneCount++;
      if (isNewNode) nodeCount++;
    }
    return left >= 0 && zoneCount + left >= zones && nodeCount + left >= nodes;
  }

  /** Orders by what zones and nodes lack, or they would end with more copies than can be kept apart. */
  #neediest(partition: number): Disk {
    let best: Disk | undefined;
    let bestChance = 0;
    for (const [at, disk] of this.#disks.entries()) {
      if (!this.#fits(partition, disk)) continue;
      // Partitions of one disk have their other copies on many disks.
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

  *#level(): Steps<void> {
    const count = ({ partitions }: Disk) => partitions.size;
    for (let round = 0; round < ROUNDS_MAX; round++) {
      // Disks with too many give to any disk with room, then disks with too few take from any disk that can spare one.
      const given = yield* this.#moveAll(
        (disk) => count(disk) > disk.most,
        (disk) => count(disk) < disk.most,
      );
      const taken = yield* this.#moveAll(
        (disk) => count(disk) > disk.least,
        (disk) => count(disk) < disk.least,
      );
      if (given + taken === 0) return;
    }
  }

  *#moveAll(gives: (disk: Disk) => boolean, takes: (disk: Disk) => boolean): Steps<number> {
    const movesMax = this.#spread.copies * PARTITIONS;
    for (let moves = 0; moves < movesMax; moves++) if (!(yield* this.#moveOne(gives, takes))) return moves;
    return movesMax;
  }

  /** Moves one copy from a disk that gives to one that takes, in the fewest steps, by a search over disks. */
  *#moveOne(gives: (disk: Disk) => boolean, takes: (disk: Disk) => boolean): Steps<boolean> {
    if (!this.#disks.some(takes)) return false;
    const reachedBy = new Map<Disk, { from: Disk; partition: number } | undefined>();
    const excess = (disk: Disk) => disk.partitions.size - disk.share;
    const queue = this.#disks.filter(gives).sort((a, b) => excess(b) - excess(a));
    for (const disk of queue) reachedBy.set(disk, undefined);
    for (const from of queue) {
      // Disks that take are tried first: most moves are direct.
      const open = this.#disks.filter((disk) => !reachedBy.has(disk)).sort((a, b) => excess(a) - excess(b));
      this.#comparisons += open.length * 8;
      for (const to of open) {
        const partition = this.#movable(from, to);
        if (this.#hasStepEnded()) yield;
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

  /** Prefers a partition that is new to `from`: its bytes are not there yet. */
  #movable(from: Disk, to: Disk): number | undefined {
    for (const partition of from.given) if (this.#fits(partition, to, from)) return partition;
    for (const partition of from.partitions) {
      const { owners, pinnedCount } = this.#of(partition);
      if (pinnedCount > 0 && owners.indexOf(from) < pinnedCount) continue;
      if (this.#fits(partition, to, from)) return partition;
    }
    return undefined;
  }

  #movePath(end: Disk, reachedBy: ReadonlyMap<Disk, { from: Disk; partition: number } | undefined>): void {
    for (let to = end, step = reachedBy.get(to); step !== undefined; step = reachedBy.get(to)) {
      const { from, partition } = step;
      const { owners } = this.#of(partition);
      assert(owners.includes(from) && !owners.includes(to), 'a copy moves from an owner to another disk');
      owners.splice(owners.indexOf(from), 1);
      owners.push(to);
      from.partitions.delete(partition);
      from.given.delete(partition);
      to.partitions.add(partition);
      to.given.add(partition);
      to = from;
    }
  }

  #give(partition: number, disk: Disk, how: 'kept' | 'given'): void {
    this.#of(partition).owners.push(disk);
    disk.partitions.add(partition);
    if (how === 'given') disk.given.add(partition);
    this.#lack(disk, -1);
  }

  #take(partition: number, disk: Disk): void {
    const { owners } = this.#of(partition);
    owners.splice(owners.indexOf(disk), 1);
    disk.partitions.delete(partition);
    this.#lack(disk, 1);
  }

  #lack({ zone, node }: Disk, more: number): void {
    this.#zoneLacks.set(zone, (this.#zoneLacks.get(zone) ?? 0) + more);
    this.#nodeLacks.set(node, (this.#nodeLacks.get(node) ?? 0) + more);
  }

  /** A returning owner does not count as new. */
  #inOrderOfBefore(owners: readonly Disk[], partition: number): Disk[] {
    const { before, returning } = this.#options;
    const known = [...returning(partition), ...(before[partition] ?? [])];
    const rank = ({ id }: Disk) => (known.includes(id) ? known.lastIndexOf(id) : known.length);
    return owners.toSorted((a, b) => rank(a) - rank(b));
  }

  #of(partition: number): Partition {
    return this.#partitions[partition] as Partition;
  }

  #hasStepEnded(more = 0): boolean {
    this.#comparisons += more;
    if (this.#comparisons < STEP_COMPARISONS) return false;
    this.#comparisons = 0;
    return true;
  }
}

function distinctCount(owners: readonly Disk[], key: 'zone' | 'node'): number {
  return new Set(owners.map((owner) => owner[key])).size;
}

/** As a fraction of its share. */
function lackOf({ share, partitions }: Disk): number {
  return (share - partitions.size) / Math.max(share, 1);
}

function wholeOf(lack: number | undefined): number {
  return Math.ceil((lack ?? 0) - EPSILON);
}

function numbered(names: readonly string[]): Map<string, number> {
  return new Map([...new Set(names)].sort().map((name, at) => [name, at]));
}

/** A permutation of the partitions. */
function shuffled(at: number): number {
  return (at * 1597) % PARTITIONS;
}

/** A number unrelated to its neighbours' (the finalizer of MurmurHash3). */
function scrambled(value: number): number {
  let mixed = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}
