// Chunks over the disks of a cluster, as one chunk port (R34, R35, R37 in their simple form): each chunk is on its owners
// or on stand-ins, and a reader asks until it is found. Repair entries, repair and misplaced copies are not handled here.
import { within } from '../../base/async/within.ts';
import { crc32 } from '../../base/crypto/crc32.ts';
import type {
  ChunkHolders,
  ChunkId,
  ChunkPort,
  ChunkRead,
  ChunkReadOptions,
  Fence,
  StoredChunk,
} from '../../ports/chunks.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { DiskChunks, DiskDirectory } from '../../ports/disk-chunks.ts';
import type { DiskId, PlacedDisk, PlacementMap, PlacementPort } from '../../ports/placement.ts';
import type { Logger } from '../../ports/telemetry.ts';
import { OldFence, OtherBytes, StaleMap } from '../../types/chunk-refusals.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import { chunkName } from '../../types/names.ts';
import { mergeChunkPages, sumRecounts, sumUsages } from '../placement/merge-answers.ts';
import { expectedDisks, ownersOf } from '../placement/placement.ts';
import type { Whereabouts } from './candidates.ts';
import { createDiskHealth } from './disk-health.ts';
import { HangingDisks } from './hanging-disks.ts';
import { createLateCopies } from './late-copies.ts';
import { type ReadParts, readCopies } from './read-copies.ts';
import { CopyWrite, type WriteParts } from './write-copies.ts';

export interface ReplicatedChunksDeps {
  placement: PlacementPort;
  directory: DiskDirectory;
  clock: ClockPort;
  log: Logger;
  /** Where this process is. */
  near?: Whereabouts;
  /** Takes back the memory of a written chunk when no request uses it any more. */
  onReleased?: (buffer: ArrayBuffer) => void;
}

export interface ReplicatedChunks extends ChunkPort {
  /** Of each disk that answers soon. Rejects when none does. */
  usages(): Promise<Awaited<ReturnType<ChunkPort['usage']>>[]>;
  /** Whether recent writes show that it takes chunks; undefined: there were none. */
  takesWrites(disk: PlacedDisk): boolean | undefined;
  /** Gives up copies that are still being written after their put was answered. */
  close(): Promise<void>;
}

/** If the map changes more often than this during one call, the call fails. */
const MAPS_PER_CALL_MAX = 4;

export function createReplicatedChunks(deps: ReplicatedChunksDeps): ReplicatedChunks {
  return new ChunksOverDisks(deps);
}

interface PutUnderWay {
  sizeBytes: number;
  checksum: number;
  done: Promise<ChunkHolders>;
}

class ChunksOverDisks implements ReplicatedChunks {
  readonly #deps: ReplicatedChunksDeps;
  readonly #parts: WriteParts & ReadParts;
  /** Disks that a drop waited for in vain, with the time until which they are left out. */
  readonly #hanging = new Map<DiskId, number>();
  /** Two puts of one chunk at the same time share one write. */
  readonly #puts = new Map<string, PutUnderWay>();

  constructor(deps: ReplicatedChunksDeps) {
    const { directory, clock, log, near = {} } = deps;
    this.#deps = deps;
    this.#parts = {
      directory,
      clock,
      log,
      near,
      health: createDiskHealth(clock),
      hanging: new HangingDisks(clock),
      late: createLateCopies(),
    };
  }

  put(
    id: ChunkId,
    bytes: Uint8Array,
    checksum = crc32(bytes),
    waitMaxMs: number = LIMITS.copiesAttemptMaxMs,
  ): Promise<ChunkHolders> {
    const name = chunkName(id);
    const sizeBytes = bytes.length;
    const underWay = this.#puts.get(name);
    if (underWay !== undefined) {
      const isSame = underWay.sizeBytes === sizeBytes && underWay.checksum === checksum;
      return isSame ? underWay.done : Promise.reject(new OtherBytes(name));
    }
    const done = this.#put(id, bytes, checksum, waitMaxMs).finally(() => this.#puts.delete(name));
    this.#puts.set(name, { sizeBytes, checksum, done });
    return done;
  }

  async #put(id: ChunkId, bytes: Uint8Array, checksum: number, waitMaxMs: number): Promise<ChunkHolders> {
    let looksMax = Math.ceil(Math.min(waitMaxMs, LIMITS.copiesAttemptMaxMs) / LIMITS.copyLookMs);
    const writes: CopyWrite[] = [];
    const synced = new Set<DiskId>();
    try {
      return await this.#withNewestMap(async (map) => {
        const write = new CopyWrite(this.#parts, { id, bytes, checksum, map, synced, looksMax });
        writes.push(write);
        try {
          await write.done;
        } finally {
          for (const disk of write.syncedDisks()) synced.add(disk);
          looksMax -= write.lookCount;
        }
        return holdersBeside(map, id, synced);
      });
    } finally {
      void this.#release(bytes, writes);
    }
  }

  /** Not reused otherwise: the bytes of a refused copy may still be on their way through a socket. */
  async #release({ buffer, byteLength }: Uint8Array, writes: readonly CopyWrite[]): Promise<void> {
    await Promise.all(writes.map((write) => write.ended()));
    if (buffer instanceof ArrayBuffer && byteLength === buffer.byteLength) this.#deps.onReleased?.(buffer);
  }

  /** Tries again with a newer map when a node has one (R34). */
  async #withNewestMap<Result>(act: (map: PlacementMap) => Promise<Result>): Promise<Result> {
    const { placement } = this.#deps;
    let map = placement.current();
    for (let count = 1; ; count++) {
      try {
        return await act(map);
      } catch (error) {
        if (!(error instanceof StaleMap) || count === MAPS_PER_CALL_MAX) throw error;
        placement.noteVersion(error.version);
        map = await this.#mapOf(error.version);
      }
    }
  }

  async #mapOf(version: number): Promise<PlacementMap> {
    const { placement, clock } = this.#deps;
    const hasCome = new AbortController();
    const isLate = new AbortController();
    clock.sleep(LIMITS.placementWaitMaxMs, hasCome.signal).then(() => isLate.abort());
    try {
      return await placement.atLeast(version, isLate.signal);
    } finally {
      hasCome.abort();
    }
  }

  get(id: ChunkId, { isProven, part }: ChunkReadOptions = { isProven: false }): Promise<ChunkRead> {
    const { placement } = this.#deps;
    return this.#withNewestMap(async (map) => {
      const read = await readCopies(this.#parts, { id, isProven, part, map });
      // A newer map may have disks that were not asked.
      const newest = placement.announcedVersion();
      if (read.kind !== 'found' && newest > map.version) throw new StaleMap(newest);
      return read;
    });
  }

  async have(ids: readonly ChunkId[]): Promise<(StoredChunk | null)[]> {
    const { answers, failures } = await this.#askAll(this.#disks, (chunks) => chunks.have(ids));
    const found = ids.map((_, at) => answers.map((answer) => answer[at] ?? null).find(Boolean) ?? null);
    const isUnknown = answers.length === 0 || failures.length > 0;
    if (isUnknown && found.includes(null)) throw silence(failures);
    return found;
  }

  /**
   * Orders the drop on every disk, because any may have been a stand-in. The sweep finds what was unreachable (R31, R32). A
   * disk that hangs is not waited for each time, or nothing would be freed on the others.
   */
  async drop(ids: readonly ChunkId[], fence: Fence): Promise<void> {
    const disks = this.#disks;
    const nowMs = this.#deps.clock.monotonicMs();
    const well = disks.filter(({ id }) => (this.#hanging.get(id) ?? nowMs) <= nowMs);
    const asked = well.length === 0 ? disks : well;
    const { answers, failures } = await this.#askAll(asked, (chunks, { id }) =>
      this.#dropOn(id, () => chunks.drop(ids, fence)),
    );
    const refused = failures.find((error) => error instanceof OldFence);
    if (refused !== undefined) throw refused;
    if (answers.length === 0) throw silence(failures);
    const silentCount = disks.length - answers.length;
    if (silentCount === 0) return;
    this.#deps.log.warn({ chunkCount: ids.length, silentCount, err: failures[0] }, 'drop-not-everywhere');
  }

  async #dropOn(disk: DiskId, drop: () => Promise<void>): Promise<void> {
    const { clock } = this.#deps;
    const beganMs = clock.monotonicMs();
    const rest = () => void this.#hanging.set(disk, clock.monotonicMs() + LIMITS.dropSuspectMs);
    // After its rest only this order tries the disk.
    if (this.#hanging.has(disk)) rest();
    try {
      await drop();
      this.#hanging.delete(disk);
    } catch (error) {
      // A disk that fails at once delays nobody.
      if (clock.monotonicMs() - beganMs < LIMITS.dropSlowMs) this.#hanging.delete(disk);
      else rest();
      throw error;
    }
  }

  /** Rejects when so many disks are silent that they may have all copies of a chunk. */
  async list(options: { after?: ChunkId; limit: number }): ReturnType<ChunkPort['list']> {
    const { answers, failures } = await this.#askAll(this.#disks, (chunks) => chunks.list(options));
    const { copies } = this.#deps.placement.current();
    if (answers.length === 0 || failures.length >= Math.min(LIMITS.copiesSyncedMin, copies))
      throw silence(failures);
    return mergeChunkPages(answers, options.limit);
  }

  /** The sum over disks that answer soon; each copy counts. */
  async usage(): ReturnType<ChunkPort['usage']> {
    return sumUsages(await this.usages());
  }

  async usages(): ReturnType<ReplicatedChunks['usages']> {
    const { clock } = this.#deps;
    const { answers, failures } = await this.#askAll(this.#disks, async (chunks) => {
      const usage = await within(chunks.usage(), LIMITS.usageAnswerMaxMs, clock);
      if (usage === undefined)
        throw new AppError('ServiceUnavailable', { cause: new Error('no answer soon') });
      return usage;
    });
    if (answers.length === 0) throw silence(failures);
    return answers;
  }

  /** The sum over disks that answer, however long it takes. */
  async recount(): ReturnType<ChunkPort['recount']> {
    const { answers, failures } = await this.#askAll(this.#disks, (chunks) => chunks.recount());
    if (answers.length === 0) throw silence(failures);
    return sumRecounts(answers);
  }

  takesWrites(disk: PlacedDisk): boolean | undefined {
    const { hanging, health } = this.#parts;
    if (hanging.hasHungLately(disk)) return false;
    return health.takesWrites(disk.id) ? true : undefined;
  }

  close(): Promise<void> {
    return this.#parts.late.close();
  }

  get #disks(): readonly PlacedDisk[] {
    return expectedDisks(this.#deps.placement.current());
  }

  async #askAll<Answer>(
    disks: readonly PlacedDisk[],
    ask: (chunks: DiskChunks, disk: PlacedDisk) => Promise<Answer>,
  ): Promise<{ answers: Answer[]; failures: unknown[] }> {
    const { directory } = this.#deps;
    const askOne = async (disk: PlacedDisk) => ask(directory.chunksOf(disk), disk);
    const outcomes = await Promise.allSettled(disks.map(askOne));
    return {
      answers: outcomes.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : [])),
      failures: outcomes.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : [])),
    };
  }
}

/** R36: the map version, and the holders unless they are just the owners. */
function holdersBeside(map: PlacementMap, id: ChunkId, synced: ReadonlySet<DiskId>): ChunkHolders {
  const owners = ownersOf(map, id);
  const isWhole = synced.size === owners.length && owners.every((owner) => synced.has(owner));
  return { mapVersion: map.version, ...(!isWhole && { holders: [...synced] }) };
}

function silence(failures: readonly unknown[]): AppError {
  const cause = new AggregateError(failures, `${failures.length} disks do not answer`);
  return new AppError('ServiceUnavailable', { cause });
}
