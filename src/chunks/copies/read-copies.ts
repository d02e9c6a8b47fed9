// Reads one chunk from a disk that has it (R37): near owners, other owners, previous owners, each next one as soon as the
// last has no copy or is slow; then all other disks. Copies that do not verify are skipped. A chunk is missing only when
// every disk has answered that.

import type { ChunkId, ChunkPart, ChunkRead } from '../../ports/chunks.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { DiskDirectory } from '../../ports/disk-chunks.ts';
import type { PlacedDisk, PlacementMap } from '../../ports/placement.ts';
import type { Logger } from '../../ports/telemetry.ts';
import { ChunkUnread } from '../../types/chunk-refusals.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import { chunkName } from '../../types/names.ts';
import { othersOf, readingOrder, type Whereabouts } from './candidates.ts';
import type { DiskHealth } from './disk-health.ts';

export interface ReadParts {
  directory: DiskDirectory;
  health: DiskHealth;
  near: Whereabouts;
  clock: ClockPort;
  log: Logger;
}

export interface ChunkToRead {
  id: ChunkId;
  isProven: boolean;
  part?: ChunkPart | undefined;
  map: PlacementMap;
}

/** The reason given to cancelled attempts. One for all: an exception with its stack costs more than a read. */
const FINISHED = new Error('another copy was sooner');

/** Rejects with AppError ServiceUnavailable when no copy was found and not every disk has answered. */
export function readCopies(parts: ReadParts, chunk: ChunkToRead): Promise<ChunkRead> {
  return new CopyRead(parts, chunk).done;
}

class CopyRead {
  readonly done: Promise<ChunkRead>;
  readonly #parts: ReadParts;
  readonly #chunk: ChunkToRead;
  /** Includes previous owners of a pending change. */
  readonly #owners: PlacedDisk[];
  readonly #others: PlacedDisk[];
  /** In the order in which they were asked. */
  readonly #pending = new Set<PlacedDisk>();
  readonly #failures: unknown[] = [];
  readonly #outcome = Promise.withResolvers<ChunkRead>();
  /** Cancels the other attempts and the waits. */
  readonly #finished = new AbortController();
  #hasDamage = false;

  constructor(parts: ReadParts, chunk: ChunkToRead) {
    const { map, id } = chunk;
    this.#parts = parts;
    this.#chunk = chunk;
    this.done = this.#outcome.promise;
    this.#owners = readingOrder(map, id, parts);
    const first = new Set(this.#owners);
    this.#others = othersOf(map, id).filter((disk) => !first.has(disk));
    // Without any known disk no disk has answered that the chunk is missing.
    if (map.disks.length === 0) this.#failures.push(new Error('no placement is known'));
    this.#askNext();
    void this.#hedge();
  }

  #askNext(): void {
    const owner = this.#owners.shift();
    if (owner !== undefined) {
      this.#ask(owner);
      return;
    }
    while (this.#pending.size < LIMITS.copySearchDisksMax) {
      const other = this.#others.shift();
      if (other === undefined) break;
      this.#ask(other);
    }
    if (this.#pending.size === 0) this.#conclude();
  }

  #ask(disk: PlacedDisk): void {
    const { directory, health } = this.#parts;
    const { id, isProven, part } = this.#chunk;
    this.#pending.add(disk);
    health.asked(disk.id, 'read');
    const get = async () =>
      directory.chunksOf(disk).get(id, { isProven, part, signal: this.#finished.signal });
    get().then(
      (read) => this.#hasAnswered(disk, read),
      (error: unknown) => this.#hasFailed(disk, error),
    );
  }

  #hasAnswered(disk: PlacedDisk, read: ChunkRead): void {
    const { health, log } = this.#parts;
    health.answered(disk.id, 'read');
    if (this.#finished.signal.aborted) return;
    if (read.kind === 'found') {
      for (const earlier of this.#pending) {
        if (earlier === disk) break;
        health.wasSlow(earlier.id, 'read');
      }
      this.#finish(() => this.#outcome.resolve(read));
      return;
    }
    this.#pending.delete(disk);
    if (read.kind === 'damaged') {
      this.#hasDamage = true;
      log.error({ ...this.#chunk.id, disk: disk.id }, 'copy-damaged');
    }
    this.#askNext();
  }

  #hasFailed(disk: PlacedDisk, error: unknown): void {
    if (this.#finished.signal.aborted) return;
    const { health } = this.#parts;
    this.#pending.delete(disk);
    if (error instanceof ChunkUnread) health.couldNotRead(disk.id, chunkName(this.#chunk.id));
    else if (!(error instanceof AppError && error.code === 'SlowDown')) health.failed(disk.id);
    this.#failures.push(error);
    this.#askNext();
  }

  /** Asks the next disk when the last one is slow; rejects when all have been slow for too long. */
  async #hedge(): Promise<void> {
    const { clock } = this.#parts;
    const endMs = clock.monotonicMs() + LIMITS.copyReadMaxMs;
    while (!this.#finished.signal.aborted) {
      await clock.sleep(LIMITS.copyReadHedgeMs, this.#finished.signal);
      if (this.#finished.signal.aborted) return;
      if (clock.monotonicMs() >= endMs) {
        this.#failures.push(new Error(`${this.#pending.size} disks do not answer`));
        this.#conclude();
        return;
      }
      this.#askNext();
    }
  }

  #conclude(): void {
    if (this.#failures.length > 0) {
      const { id } = this.#chunk;
      const silentCount = this.#failures.length;
      this.#parts.log.error({ ...id, silentCount, err: this.#failures[0] }, 'chunk-found-nowhere');
      const cause = new AggregateError(this.#failures, 'not every disk has answered');
      this.#finish(() => this.#outcome.reject(new AppError('ServiceUnavailable', { cause })));
      return;
    }
    this.#finish(() => this.#outcome.resolve({ kind: this.#hasDamage ? 'damaged' : 'missing' }));
  }

  #finish(report: () => void): void {
    this.#finished.abort(FINISHED);
    report();
  }
}
