// Writes the copies of one chunk (R35): to its owners at once; an owner that is unhealthy, fails or is late gets a
// stand-in. Two synced copies on two nodes are enough, in two zones as long as two are up; the others have a short time,
// and then continue after the answer (late-copies.ts). A disk that hangs is waited for once, for a bounded time
// (hanging-disks.ts); where no other disk is left the write is refused. A failed write leaves copies that the sweep finds
// (R32).

import type { ChunkId } from '../../ports/chunks.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { DiskDirectory } from '../../ports/disk-chunks.ts';
import type { DiskId, PlacedDisk, PlacementMap } from '../../ports/placement.ts';
import { DiskBusy, OtherBytes, StaleMap } from '../../types/chunk-refusals.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import { othersOf, placedOwners, standIn } from './candidates.ts';
import type { DiskHealth } from './disk-health.ts';
import { type CopyAttempt, type HangingDisks, hasBecomeLate, isLate } from './hanging-disks.ts';
import type { LateCopies } from './late-copies.ts';
import { areEnough, type NeededCopies, neededCopies, nodeCountOf } from './write-needs.ts';

export interface WriteParts {
  directory: DiskDirectory;
  health: DiskHealth;
  hanging: HangingDisks;
  late: LateCopies;
  clock: ClockPort;
}

export interface ChunkToWrite {
  id: ChunkId;
  bytes: Uint8Array;
  checksum: number;
  map: PlacementMap;
  /** Disks that have it already. */
  synced: ReadonlySet<DiskId>;
  /** Looks at its copies, after which it is given up. */
  looksMax: number;
}

/** The reason given to cancelled attempts. One for all: an exception with its stack costs more than a copy. */
const FINISHED = new Error('the write has its outcome');
const GIVEN_UP = new Error('the write was given up');

/** One write; it begins at once. */
export class CopyWrite {
  /**
   * Resolves when enough copies are synced. Rejects with StaleMap, OtherBytes, or AppError: InsufficientStorage when disks of
   * too few nodes have room, SlowDown or ServiceUnavailable when those of too few answer.
   */
  readonly done: Promise<void>;
  readonly #parts: WriteParts;
  readonly #chunk: ChunkToWrite;
  /** Owners first. */
  readonly #disks: readonly PlacedDisk[];
  readonly #needed: NeededCopies;
  readonly #untried: Set<PlacedDisk>;
  readonly #pending = new Map<PlacedDisk, CopyAttempt>();
  readonly #synced = new Set<PlacedDisk>();
  readonly #failures: unknown[] = [];
  readonly #full = new Set<PlacedDisk>();
  readonly #attempts: Promise<void>[] = [];
  readonly #outcome = Promise.withResolvers<void>();
  /** Cancels the attempts. */
  readonly #giveUp = new AbortController();
  /** Ends the waits. */
  readonly #finished = new AbortController();
  readonly #stopLooking: () => void;
  #lookCount = 0;
  #isPatient = false;

  constructor(parts: WriteParts, chunk: ChunkToWrite) {
    const { map, id, synced } = chunk;
    this.#parts = parts;
    this.#chunk = chunk;
    this.done = this.#outcome.promise;
    const owners = placedOwners(map, id);
    this.#disks = [...owners, ...othersOf(map, id)];
    this.#untried = new Set(this.#disks.filter((disk) => !synced.has(disk.id)));
    for (const disk of this.#disks) if (synced.has(disk.id)) this.#synced.add(disk);
    this.#needed = neededCopies(map.disks, map.copies);
    for (const owner of owners) if (this.#untried.has(owner) && this.#isWell(owner)) this.#send(owner);
    while (this.#underWay() < owners.length && this.#sendStandIn()) {}
    this.#stopLooking = parts.hanging.watch(() => this.#onLook());
    this.#decide();
  }

  /** Disks that have certainly synced the chunk. */
  syncedDisks(): DiskId[] {
    return [...this.#synced].map(({ id }) => id);
  }

  get lookCount(): number {
    return this.#lookCount;
  }

  /** Resolves when nothing uses the bytes any more. */
  async ended(): Promise<void> {
    await this.done.catch(() => {});
    await Promise.all(this.#attempts);
  }

  #underWay(): number {
    return this.#synced.size + this.#pending.size;
  }

  #isWell(disk: PlacedDisk): boolean {
    const { health, hanging } = this.#parts;
    return health.isWell(disk.id, 'write') && !hanging.isSpared(disk);
  }

  #send(disk: PlacedDisk): void {
    const { directory, health, hanging } = this.#parts;
    const { id, bytes, checksum, map } = this.#chunk;
    this.#untried.delete(disk);
    const attempt = hanging.asked(disk);
    this.#pending.set(disk, attempt);
    health.asked(disk.id, 'write');
    const how = { checksum, mapVersion: map.version, signal: this.#giveUp.signal };
    const put = async () => directory.chunksOf(disk).put(id, bytes, how);
    const done = put().then(
      () => this.#hasSynced(attempt),
      (error: unknown) => this.#hasFailed(attempt, error),
    );
    this.#attempts.push(done);
  }

  /**
   * Sends a copy to a stand-in; false if there is none. Unhealthy disks are used only where there would be too few copies
   * otherwise, hanging disks never.
   */
  #sendStandIn(): boolean {
    const beside = [...this.#synced, ...this.#pending.keys()];
    const hopeful = [...this.#pending].flatMap(([disk, attempt]) => (isLate(attempt) ? [] : [disk]));
    const expected = [...this.#synced, ...hopeful];
    const isNeeded = !this.#areEnough(expected);
    // Where only a second node is missing, one more copy on the same node does not help.
    const isOfUse = ({ nodeId }: PlacedDisk) =>
      !isNeeded ||
      expected.length < this.#needed.copies ||
      expected.every((other) => other.nodeId !== nodeId);
    const untried = this.#disks.filter((disk) => this.#untried.has(disk) && isOfUse(disk));
    const well = untried.filter((disk) => this.#isWell(disk));
    const inNeed = () => untried.filter((disk) => !this.#parts.hanging.isHanging(disk));
    const disk = standIn(well, beside) ?? (isNeeded ? standIn(inNeed(), beside) : undefined);
    if (disk === undefined) return false;
    this.#send(disk);
    return true;
  }

  #hasSynced(attempt: CopyAttempt): void {
    const { health, hanging } = this.#parts;
    const { disk } = attempt;
    this.#pending.delete(disk);
    this.#synced.add(disk);
    health.answered(disk.id, 'write');
    hanging.ended(attempt, 'answered');
    this.#decide();
  }

  #hasFailed(attempt: CopyAttempt, error: unknown): void {
    const { disk } = attempt;
    this.#pending.delete(disk);
    if (this.#giveUp.signal.aborted) {
      this.#parts.hanging.ended(attempt, 'dropped');
      return;
    }
    this.#noteFailure(attempt, error);
    if (this.#finished.signal.aborted) return;
    if (error instanceof StaleMap || error instanceof OtherBytes) {
      // This write will not use that disk any more.
      this.#giveUp.abort(GIVEN_UP);
      this.#reject(error);
      return;
    }
    this.#failures.push(error);
    if (isCode(error, 'InsufficientStorage')) this.#full.add(disk);
    if (this.#underWay() < this.#chunk.map.copies) this.#sendStandIn();
    this.#decide();
  }

  #noteFailure(attempt: CopyAttempt, error: unknown): void {
    const { health, hanging } = this.#parts;
    const { id } = attempt.disk;
    if (error instanceof StaleMap || error instanceof OtherBytes) {
      health.answered(id, 'write');
      hanging.ended(attempt, 'answered');
    } else if (isCode(error, 'InsufficientStorage')) {
      health.isFull(id);
      hanging.ended(attempt, 'answered');
    } else if (isCode(error, 'SlowDown')) {
      // A request that was not sent, because too many wait here, is no answer.
      hanging.ended(attempt, error instanceof DiskBusy ? 'busy' : 'dropped');
    } else {
      health.failed(id);
      hanging.ended(attempt, 'failed');
    }
  }

  /** After each event: there are enough copies, or no more can come, or one more is needed. */
  #decide(): void {
    if (this.#finished.signal.aborted) return;
    if (this.#isEnough()) {
      // Disks that are already late are not waited for.
      if ([...this.#pending.values()].every(isLate)) this.#resolve();
      else void this.#wait();
      return;
    }
    const isHopeful = () =>
      [...this.#pending].some(([disk, attempt]) => !isLate(attempt) && this.#helps(disk));
    while (!isHopeful() && this.#sendStandIn()) {}
    if ([...this.#pending.values()].every(({ isHung }) => isHung)) this.#end();
  }

  /** No more copies will come: two copies in one zone are better than none. */
  #end(): void {
    if (this.#areEnough([...this.#synced])) this.#resolve();
    else this.#reject(this.#failure());
  }

  /** In two zones, as long as a second zone can still take a copy. */
  #isEnough(): boolean {
    return this.#areEnough([...this.#synced]) && (this.#needed.copies < 2 || !this.#canSpread());
  }

  #areEnough(disks: readonly PlacedDisk[]): boolean {
    return areEnough(disks, this.#needed);
  }

  /** Whether all copies so far are in one zone while a disk of another may still take one. */
  #canSpread(): boolean {
    const zones = new Set([...this.#synced].map(({ zone }) => zone));
    if (zones.size > 1) return false;
    return this.#disks.some((disk) => !zones.has(disk.zone) && this.#mayStillTake(disk));
  }

  #mayStillTake(disk: PlacedDisk): boolean {
    const pending = this.#pending.get(disk);
    if (pending !== undefined) return !isLate(pending);
    // A copy on a leaving disk will move again, and improves nothing.
    return disk.leave === undefined && this.#untried.has(disk) && this.#isWell(disk);
  }

  /** Whether one more copy there brings the write nearer to its end. */
  #helps(disk: PlacedDisk): boolean {
    if (this.#synced.size < this.#needed.copies) return true;
    const key = this.#canSpread() ? 'zone' : 'nodeId';
    return ![...this.#synced].some((other) => other[key] === disk[key]);
  }

  /** R35: a short wait for the last copy. */
  async #wait(): Promise<void> {
    if (this.#isPatient) return;
    this.#isPatient = true;
    await this.#parts.clock.sleep(LIMITS.lastCopyPatienceMs, this.#finished.signal);
    this.#resolve();
  }

  /** Late disks get stand-ins; in the end the write is given up. */
  #onLook(): void {
    this.#lookCount++;
    if (this.#lookCount >= this.#chunk.looksMax) {
      this.#end();
      return;
    }
    for (const [disk, attempt] of this.#pending) {
      if (!hasBecomeLate(attempt)) continue;
      this.#parts.health.wasSlow(disk.id, 'write');
      this.#sendStandIn();
    }
    this.#decide();
  }

  #failure(): AppError {
    const nodeCount = nodeCountOf([...this.#synced]);
    const hungCount = this.#disks.filter((disk) => this.#parts.hanging.isHanging(disk)).length;
    const cause = new AggregateError(
      this.#failures,
      `${this.#synced.size} of ${this.#needed.copies} copies, on ${nodeCount} of ${this.#needed.nodes} nodes; ${hungCount} disks hang`,
    );
    // Disks that were given up are not waited for.
    const present = this.#disks.filter(({ leave }) => leave !== 'absent');
    const mayHaveRoom = present.filter((disk) => !this.#full.has(disk));
    if (this.#full.size > 0 && !this.#areEnough(mayHaveRoom))
      return new AppError('InsufficientStorage', { cause });
    const isBusy = this.#failures.some((error) => isCode(error, 'SlowDown'));
    return new AppError(isBusy ? 'SlowDown' : 'ServiceUnavailable', { cause });
  }

  #resolve(): void {
    if (this.#finish()) this.#outcome.resolve();
  }

  #reject(error: unknown): void {
    if (this.#finish()) this.#outcome.reject(error);
  }

  /** Attempts continue even after a refused write: the answer shows that a hanging disk has recovered. */
  #finish(): boolean {
    if (this.#finished.signal.aborted) return false;
    this.#finished.abort(FINISHED);
    this.#stopLooking();
    if (this.#pending.size > 0 && !this.#giveUp.signal.aborted) {
      this.#parts.late.add({
        sizeBytes: this.#chunk.bytes.length,
        ended: Promise.all(this.#attempts),
        giveUp: () => this.#giveUpLate(),
      });
    }
    return true;
  }

  /**
   * Under many writes a hanging disk loses every race before a request to it fails; it must become unhealthy all the same.
   */
  #giveUpLate(): void {
    for (const { id } of this.#pending.keys()) this.#parts.health.wasSlow(id, 'write');
    this.#giveUp.abort(GIVEN_UP);
  }
}

function isCode(error: unknown, code: AppError['code']): boolean {
  return error instanceof AppError && error.code === code;
}
