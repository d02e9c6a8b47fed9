// Writes the copies of one chunk (R35): to its owners at once; who is not well, fails or is late has a stand-in. Enough is
// two synced on two nodes, in two zones as long as two are up; the rest has a little patience, and then goes on behind the
// answer (late-copies.ts). Who hangs is waited for a bounded time, and then by nobody for a while: where nobody else is left
// the write is refused. What fails leaves copies that the sweep finds (R32).

import { OtherBytes, StaleMap } from '../model/chunk-refusals.ts';
import { AppError } from '../model/errors.ts';
import { LIMITS } from '../model/limits.ts';
import type { ChunkId } from '../ports/chunks.ts';
import type { ClockPort } from '../ports/clock.ts';
import type { DiskDirectory } from '../ports/disk-chunks.ts';
import type { DiskId, PlacedDisk, PlacementMap } from '../ports/placement.ts';
import { othersOf, placedOwners, standIn } from './candidates.ts';
import type { DiskHealth } from './disk-health.ts';
import type { LateCopies } from './late-copies.ts';
import { areEnough, type NeededCopies, neededCopies, nodeCountOf } from './write-needs.ts';

export interface WriteParts {
  directory: DiskDirectory;
  health: DiskHealth;
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
}

/** Why attempts and waits end: one for all, because an exception with its stack costs more than they do. */
const SETTLED = new Error('the write has its outcome');
const GIVEN_UP = new Error('the write was given up');

interface Attempt {
  readonly sinceMs: number;
  isLate: boolean;
  /** It is waited for no more. */
  isHung: boolean;
}

/** Begins at once. */
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
  readonly #pending = new Map<PlacedDisk, Attempt>();
  readonly #synced = new Set<PlacedDisk>();
  readonly #failures: unknown[] = [];
  readonly #full = new Set<PlacedDisk>();
  readonly #attempts: Promise<void>[] = [];
  readonly #outcome = Promise.withResolvers<void>();
  /** Ends the attempts. */
  readonly #giveUp = new AbortController();
  /** Ends the waits. */
  readonly #settled = new AbortController();
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
    this.#look();
    void this.#watch();
  }

  /** Disks that have the chunk for certain. */
  syncedDisks(): DiskId[] {
    return [...this.#synced].map(({ id }) => id);
  }

  /** Resolves when nobody uses the bytes any more. */
  async ended(): Promise<void> {
    await this.done.catch(() => {});
    await Promise.all(this.#attempts);
  }

  #underWay(): number {
    return this.#synced.size + this.#pending.size;
  }

  #isWell({ id }: PlacedDisk): boolean {
    return this.#parts.health.isWell(id, 'write');
  }

  #send(disk: PlacedDisk): void {
    const { directory, health, clock } = this.#parts;
    const { id, bytes, checksum, map } = this.#chunk;
    this.#untried.delete(disk);
    this.#pending.set(disk, { sinceMs: clock.monotonicMs(), isLate: false, isHung: false });
    health.asked(disk.id, 'write');
    const how = { checksum, mapVersion: map.version, signal: this.#giveUp.signal };
    const put = async () => directory.chunksOf(disk).put(id, bytes, how);
    const attempt = put().then(
      () => this.#hasSynced(disk),
      (error: unknown) => this.#hasFailed(disk, error),
    );
    this.#attempts.push(attempt);
  }

  /**
   * False when there is none. Disks that are not well stand in only where too few would be written otherwise, and not those
   * that hang.
   */
  #sendStandIn(): boolean {
    const beside = [...this.#synced, ...this.#pending.keys()];
    const hopeful = [...this.#pending].flatMap(([disk, { isLate }]) => (isLate ? [] : [disk]));
    const expected = [...this.#synced, ...hopeful];
    const isNeeded = !this.#areEnough(expected);
    // Where only another node is lacking one more copy on those that have some brings nothing nearer.
    const isOfUse = ({ nodeId }: PlacedDisk) =>
      !isNeeded ||
      expected.length < this.#needed.copies ||
      expected.every((other) => other.nodeId !== nodeId);
    const untried = this.#disks.filter((disk) => this.#untried.has(disk) && isOfUse(disk));
    const well = untried.filter((disk) => this.#isWell(disk));
    const inNeed = () => untried.filter(({ id }) => !this.#parts.health.isHanging(id));
    const disk = standIn(well, beside) ?? (isNeeded ? standIn(inNeed(), beside) : undefined);
    if (disk === undefined) return false;
    this.#send(disk);
    return true;
  }

  #hasSynced(disk: PlacedDisk): void {
    this.#pending.delete(disk);
    this.#synced.add(disk);
    this.#parts.health.answered(disk.id, 'write');
    this.#look();
  }

  #hasFailed(disk: PlacedDisk, error: unknown): void {
    const nowMs = this.#parts.clock.monotonicMs();
    const tookMs = nowMs - (this.#pending.get(disk)?.sinceMs ?? nowMs);
    this.#pending.delete(disk);
    if (this.#giveUp.signal.aborted) return;
    this.#noteFailure(disk, error, tookMs);
    if (this.#settled.signal.aborted) return;
    if (error instanceof StaleMap || error instanceof OtherBytes) {
      this.#reject(error);
      return;
    }
    this.#failures.push(error);
    if (isCode(error, 'InsufficientStorage')) this.#full.add(disk);
    if (this.#underWay() < this.#chunk.map.copies) this.#sendStandIn();
    this.#look();
  }

  #noteFailure({ id }: PlacedDisk, error: unknown, tookMs: number): void {
    const { health } = this.#parts;
    if (error instanceof StaleMap || error instanceof OtherBytes) health.answered(id, 'write');
    else if (isCode(error, 'InsufficientStorage')) health.isFull(id);
    else if (!isCode(error, 'SlowDown')) health.failed(id, tookMs);
  }

  /** What has happened may be enough, or the end; or it takes one more. */
  #look(): void {
    if (this.#settled.signal.aborted) return;
    if (this.#isEnough()) {
      // Nobody waits for disks that are late already.
      if ([...this.#pending.values()].every(({ isLate }) => isLate)) this.#resolve();
      else void this.#wait();
      return;
    }
    const isHopeful = () => [...this.#pending].some(([disk, { isLate }]) => !isLate && this.#helps(disk));
    while (!isHopeful() && this.#sendStandIn()) {}
    if ([...this.#pending.values()].every(({ isHung }) => isHung)) this.#end();
  }

  /** Nothing more will come: then two copies in one zone are better than none. */
  #end(): void {
    if (this.#areEnough([...this.#synced])) this.#resolve();
    else this.#reject(this.#failure());
  }

  /** In two zones, as long as a disk that is up could make it two. */
  #isEnough(): boolean {
    return this.#areEnough([...this.#synced]) && (this.#needed.copies < 2 || !this.#canSpread());
  }

  #areEnough(disks: readonly PlacedDisk[]): boolean {
    return areEnough(disks, this.#needed);
  }

  /** Whether all copies so far are of one zone, while a disk of another may still take one. */
  #canSpread(): boolean {
    const zones = new Set([...this.#synced].map(({ zone }) => zone));
    if (zones.size > 1) return false;
    return this.#disks.some((disk) => !zones.has(disk.zone) && this.#mayStillTake(disk));
  }

  #mayStillTake(disk: PlacedDisk): boolean {
    const pending = this.#pending.get(disk);
    if (pending !== undefined) return !pending.isLate;
    // What is put on a disk that leaves has to leave it again: it spreads nothing.
    return disk.leave === undefined && this.#untried.has(disk) && this.#isWell(disk);
  }

  /** Whether one more copy there brings the write nearer to its end. */
  #helps(disk: PlacedDisk): boolean {
    if (this.#synced.size < this.#needed.copies) return true;
    const key = this.#canSpread() ? 'zone' : 'nodeId';
    return ![...this.#synced].some((other) => other[key] === disk[key]);
  }

  /** R35: a little patience for the last copy. */
  async #wait(): Promise<void> {
    if (this.#isPatient) return;
    this.#isPatient = true;
    await this.#parts.clock.sleep(LIMITS.lastCopyPatienceMs, this.#settled.signal);
    this.#resolve();
  }

  /** Late disks get stand-ins; in the end the write is given up. */
  async #watch(): Promise<void> {
    const { clock, health } = this.#parts;
    const endMs = clock.monotonicMs() + LIMITS.copiesAttemptMaxMs;
    while (!this.#settled.signal.aborted) {
      await clock.sleep(LIMITS.copyLateMs, this.#settled.signal);
      if (this.#settled.signal.aborted) return;
      const nowMs = clock.monotonicMs();
      if (nowMs >= endMs) {
        this.#end();
        return;
      }
      for (const [disk, attempt] of this.#pending) {
        if (attempt.isLate || nowMs - attempt.sinceMs < LIMITS.copyLateMs) continue;
        attempt.isLate = true;
        health.wasSlow(disk.id, 'write');
        this.#sendStandIn();
      }
      this.#noteHung(nowMs);
      this.#look();
    }
  }

  #noteHung(nowMs: number): void {
    const { health } = this.#parts;
    for (const [disk, attempt] of this.#pending) {
      const ofNode = this.#disks.filter(({ nodeId }) => nodeId === disk.nodeId);
      const asked = ofNode.filter((one) => this.#pending.has(one));
      const isNodeSilent = asked.length > 1 && this.#isSilent(asked, ofNode, nowMs);
      const isSilent = isNodeSilent || this.#isSilent([disk], [disk], nowMs);
      if (isSilent) for (const { id } of isNodeSilent ? ofNode : [disk]) health.hangs(id);
      const sinceMs = health.hungSinceMs(disk.id);
      // Another write may have found it.
      if (isSilent || (sinceMs !== undefined && sinceMs >= attempt.sinceMs)) attempt.isHung = true;
    }
  }

  /** One that works, however slowly, answers other writes meanwhile. */
  #isSilent(asked: readonly PlacedDisk[], answering: readonly PlacedDisk[], nowMs: number): boolean {
    const { health } = this.#parts;
    const sinceMs = Math.min(...asked.flatMap((disk) => this.#pending.get(disk)?.sinceMs ?? []));
    const answeredMs = answering.map(({ id }) => health.answeredWriteMs(id) ?? sinceMs);
    return nowMs - Math.max(sinceMs, ...answeredMs) >= LIMITS.copySilentMaxMs;
  }

  #failure(): AppError {
    const nodeCount = nodeCountOf([...this.#synced]);
    const hungCount = this.#disks.filter(({ id }) => this.#parts.health.isHanging(id)).length;
    const cause = new AggregateError(
      this.#failures,
      `${this.#synced.size} of ${this.#needed.copies} copies, on ${nodeCount} of ${this.#needed.nodes} nodes; ${hungCount} disks hang`,
    );
    // Those that were given up are not what it waits for.
    const present = this.#disks.filter(({ leave }) => leave !== 'absent');
    const mayHaveRoom = present.filter((disk) => !this.#full.has(disk));
    if (this.#full.size > 0 && !this.#areEnough(mayHaveRoom))
      return new AppError('InsufficientStorage', { cause });
    const isBusy = this.#failures.some((error) => isCode(error, 'SlowDown'));
    return new AppError(isBusy ? 'SlowDown' : 'ServiceUnavailable', { cause });
  }

  #resolve(): void {
    if (this.#settled.signal.aborted) return;
    this.#settled.abort(SETTLED);
    if (this.#pending.size > 0) {
      this.#parts.late.add({
        sizeBytes: this.#chunk.bytes.length,
        ended: Promise.all(this.#attempts),
        giveUp: () => this.#giveUpLate(),
      });
    }
    this.#outcome.resolve();
  }

  /** Where much is written a disk that hangs is outrun like this before any request to it fails: it must be spared all the same. */
  #giveUpLate(): void {
    for (const { id } of this.#pending.keys()) this.#parts.health.wasSlow(id, 'write');
    this.#giveUp.abort(GIVEN_UP);
  }

  #reject(error: unknown): void {
    if (this.#settled.signal.aborted) return;
    this.#settled.abort(SETTLED);
    this.#giveUp.abort(GIVEN_UP);
    this.#outcome.reject(error);
  }
}

function isCode(error: unknown, code: AppError['code']): boolean {
  return error instanceof AppError && error.code === code;
}
