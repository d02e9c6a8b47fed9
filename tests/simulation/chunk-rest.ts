// Whether chunks lie where they should: on their owners, all of them, and at rest nowhere else (I16).
import { ownersOf, partitionOf } from '../../src/chunks/placement/placement.ts';
import { isPending } from '../../src/chunks/placement/placement-changes.ts';
import type { ChunkId } from '../../src/ports/chunks.ts';
import type { DiskId, PlacementMap } from '../../src/ports/placement.ts';
import { LIMITS } from '../../src/types/limits.ts';
import { SimulatedHost } from './clock.ts';
import type { SimulatedDisk } from './disk.ts';
import type { DiskOperators } from './disk-operators.ts';
import type { LiveBlobs } from './live-blobs.ts';
import type { PlacementBoard } from './placement-board.ts';
import { type Scheduler, SimulationFailure } from './scheduler.ts';
import { StorageSite } from './storage-site.ts';
import { chunkOf, nameOf, type StoredCopies } from './stored-copies.ts';

/** Clocks that are right differ by less. */
const CLOCKS_DIFFER_MS = 1000;

export interface ChunkRestParts {
  scheduler: Scheduler;
  board: PlacementBoard;
  operators: DiskOperators;
  blobs: LiveBlobs;
  copies: StoredCopies;
  /** Whether a body may still be committed that was under way at this time. */
  mayBeCreated(atMs: number): boolean;
}

export class ChunkRest {
  readonly #parts: ChunkRestParts;
  #beganAtMs = Number.POSITIVE_INFINITY;

  constructor(parts: ChunkRestParts) {
    this.#parts = parts;
  }

  /** From now on nothing goes wrong, and all clocks are right. */
  begin(): void {
    this.#beganAtMs = SimulatedHost.trueWallMs(this.#parts.scheduler);
  }

  areAllUp(): boolean {
    const { staying } = this.#parts.operators;
    return staying.every(({ node, failedCount }) => node !== undefined && failedCount === 0);
  }

  /**
   * Every chunk that lives lies on its owners, and none that may live yet has lost a copy: a second loss while one body is
   * under way is more than its two synced copies stand for.
   */
  isLevel(): boolean {
    const { board, blobs, copies, mayBeCreated } = this.#parts;
    const { map } = board;
    // What went is seen when the store is opened again.
    if (map === undefined || !this.areAllUp()) return false;
    const diskOf = this.#diskOf();
    let isLevel = true;
    for (const id of blobs.chunks()) {
      const disks = copies.disksOf(id);
      const isWhole = ownersOf(map, id).every((owner) => {
        const disk = diskOf.get(owner);
        return disk !== undefined && disks.has(disk);
      });
      if (isWhole) copies.noteWhole(id);
      else isLevel = false;
    }
    return isLevel && !copies.short().some(({ id, atMs }) => !blobs.isGone(id.blobId) && mayBeCreated(atMs));
  }

  /**
   * What is not as it must be when nothing is under way; empty when all is well. `hasAudited`: days have passed, in which
   * everything was looked at (R39), and what a clock that was ahead had dated has become old.
   */
  unrest({ hasAudited }: { hasAudited: boolean }): string[] {
    const { board, operators, blobs, copies } = this.#parts;
    const { map } = board;
    if (map === undefined) return ['no map'];
    const live = new Set(blobs.chunks().map(nameOf));
    const mayStay = (disk: SimulatedDisk, name: string) =>
      !hasAudited && !live.has(name) && this.#isLeftByTheSweep(disk, name);
    const isHeldUp = operators.draining?.disks.some((disk) =>
      [...copies.on(disk)].some((name) => mayStay(disk, name)),
    );
    const unrest = [
      ...(isPending(map) ? [`map ${map.version} is pending`] : []),
      ...(operators.draining === undefined || isHeldUp === true ? [] : ['a node is drained']),
      ...(blobs.repairCount > 0 ? [`${blobs.repairCount} debts`] : []),
      ...(this.areAllUp() ? [] : ['not all disks work']),
    ];
    if (unrest.length > 0) return unrest;
    const diskOf = this.#diskOf();
    unrest.push(...this.#lackingBy(map));
    for (const [id, disk] of diskOf)
      for (const name of copies.on(disk))
        if (live.has(name)) {
          if (id === undefined || !ownersOf(map, chunkOf(name)).includes(id))
            unrest.push(`${name} on ${id}, which does not own it`);
        } else if (!mayStay(disk, name)) unrest.push(`stray ${name} on ${id}`);
    return unrest;
  }

  /** Live chunks that are not on all of their owners. */
  lacking(): string[] {
    const { map } = this.#parts.board;
    return map === undefined ? ['no map'] : this.#lackingBy(map);
  }

  /**
   * R39: a previous owner of a chunk may be forgotten when the chunk is on all of its owners, or has a repair entry; but
   * for what a fault has taken since. Throws {@link SimulationFailure}.
   */
  checkForgotten(before: PlacementMap, after: PlacementMap): void {
    const { blobs, copies } = this.#parts;
    const diskOf = this.#diskOf();
    const count = (map: PlacementMap, id: ChunkId) => map.previous[partitionOf(id)]?.length ?? 0;
    for (const id of blobs.chunks()) {
      if (count(before, id) === 0 || count(after, id) > 0) continue;
      if (blobs.isIncomplete(id.blobId) || copies.lostOf(id) > 0) continue;
      const lacking = lackingOwners(after, { id, stored: copies.disksOf(id), diskOf });
      if (lacking.length > 0)
        throw new SimulationFailure(
          `R39: former owners of ${nameOf(id)} are forgotten, and ${lacking.join(' ')} lacks it, owed to nobody`,
        );
    }
  }

  /** How far ahead of now the latest date is by which a disk has received a chunk; below 0: behind. */
  datedAheadMs(): number {
    const { operators, copies, scheduler } = this.#parts;
    let latestMs = Number.NEGATIVE_INFINITY;
    for (const { disks } of operators.staying)
      for (const disk of disks)
        for (const name of copies.on(disk))
          latestMs = Math.max(latestMs, StorageSite.receivedAtMsOf(disk, chunkOf(name)) ?? latestMs);
    return latestMs - SimulatedHost.trueWallMs(scheduler);
  }

  #lackingBy(map: PlacementMap): string[] {
    const { blobs, copies } = this.#parts;
    const diskOf = this.#diskOf();
    return blobs.chunks().flatMap((id) => {
      const lacking = lackingOwners(map, { id, stored: copies.disksOf(id), diskOf });
      return lacking.length > 0 ? [`no ${nameOf(id)} on ${lacking.join(' ')}`] : [];
    });
  }

  #diskOf(): Map<string | undefined, SimulatedDisk> {
    return new Map(
      this.#parts.operators.staying.flatMap(({ disks }) =>
        disks.map((disk) => [StorageSite.idOf(disk), disk]),
      ),
    );
  }

  /**
   * By its date too young to be swept (R32), because its disk's clock was ahead: what was dated in the days that the clock
   * skipped, or in those to come. What came at rest was dated rightly, and is not orphaned.
   */
  #isLeftByTheSweep(disk: SimulatedDisk, name: string): boolean {
    const receivedAtMs = StorageSite.receivedAtMsOf(disk, chunkOf(name));
    if (receivedAtMs === undefined) return false;
    const nowMs = SimulatedHost.trueWallMs(this.#parts.scheduler);
    if (receivedAtMs <= nowMs - LIMITS.sweepAfterMs - CLOCKS_DIFFER_MS) return false;
    return receivedAtMs < this.#beganAtMs - CLOCKS_DIFFER_MS || receivedAtMs > nowMs + CLOCKS_DIFFER_MS;
  }
}

function lackingOwners(
  map: PlacementMap,
  at: {
    id: ChunkId;
    /** Which disks have it. */
    stored: ReadonlySet<SimulatedDisk>;
    diskOf: ReadonlyMap<string | undefined, SimulatedDisk>;
  },
): DiskId[] {
  const { id, stored, diskOf } = at;
  return ownersOf(map, id).filter((owner) => {
    const disk = diskOf.get(owner);
    return disk === undefined || !stored.has(disk);
  });
}
