// Repairs some chunks (R38, R39): asks who has them, fetches what owners lack, and drops copies elsewhere once all owners
// have proven theirs. All requests and orders use one map, in one epoch; when a node knows a newer map the repair starts
// again.
import { must } from '../../base/assert.ts';
import type { InspectedChunk } from '../../ports/disk-orders.ts';
import type { ChunkState, ChunkToRepair } from '../../ports/home-disks.ts';
import type { DiskId } from '../../ports/placement.ts';
import type { Logger, TelemetryPort } from '../../ports/telemetry.ts';
import { OtherBytes, OwnedHere, StaleMap } from '../../types/chunk-refusals.ts';
import { AppError } from '../../types/errors.ts';
import { COPIES_UNKNOWN } from '../../types/repair-entries.ts';
import { disksById } from '../placement/placement.ts';
import {
  type AskParts,
  allOf,
  askDisks,
  attempt,
  ChunkCopies,
  type Inquiry,
  isRefusal,
} from './chunk-copies.ts';
import type { RepairThrottle } from './repair-throttle.ts';

export interface RepairParts extends AskParts {
  gate: RepairThrottle;
  log: Logger;
  telemetry: TelemetryPort;
}

type WholeCopy = Extract<InspectedChunk, { kind: 'whole' }>;

/** In the order of `chunks`. Rejects with StaleMap, OldFence, or when `signal` aborts. */
export async function repairChunks(
  parts: RepairParts,
  inquiry: Inquiry,
  chunks: readonly ChunkToRepair[],
): Promise<ChunkState[]> {
  const repair = new ChunkRepair(parts, inquiry);
  return repair.run(chunks);
}

class ChunkRepair {
  readonly #parts: RepairParts;
  readonly #inquiry: Inquiry;
  readonly #diskIds: DiskId[];
  /** Chunks of which a disk would not drop its copy yet. */
  readonly #kept = new Set<ChunkCopies>();
  /** Disks from which another could not fetch what it could fetch elsewhere: they are tried last. */
  readonly #poor = new Set<DiskId>();

  constructor(parts: RepairParts, inquiry: Inquiry) {
    this.#parts = parts;
    this.#inquiry = inquiry;
    this.#diskIds = inquiry.map.disks.map(({ id }) => id);
  }

  async run(chunks: readonly ChunkToRepair[]): Promise<ChunkState[]> {
    const { map } = this.#inquiry;
    const disks = disksById(map);
    const all = chunks.map(({ id, holders, quarantinedAt = [] }) => {
      const chunk = new ChunkCopies(map, id, holders);
      for (const disk of quarantinedAt) if (disks.has(disk)) chunk.quarantinedAt.add(disk);
      return chunk;
    });
    const hopeful = all.filter((chunk, at) => !this.#mustWait(chunk, chunks[at]?.copies));
    await this.#ask(hopeful, ({ owners, hints, quarantinedAt }) => [
      ...new Set([...owners, ...hints, ...quarantinedAt]),
    ]);
    await this.#search(hopeful.filter((chunk) => !chunk.isWholeAtOwners() && chunk.whole().length === 0));
    await allOf(hopeful.flatMap((chunk) => this.#fill(chunk)));
    await this.#tidy(hopeful);
    return all.map((chunk) => (chunk.answers.size === 0 ? { kind: 'unknown' } : this.#stateOf(chunk)));
  }

  /** All owners that lack it are backed off: asking the others does not help. */
  #mustWait({ owners, known }: ChunkCopies, copies = known.length): boolean {
    // Not all of the recorded holders have it any more.
    if (copies < known.length) return false;
    const awake = owners.filter((disk) => !this.#parts.backoffs.isBackedOff(disk, 'take'));
    return awake.length < owners.length && awake.every((disk) => known.includes(disk));
  }

  #ask(
    chunks: readonly ChunkCopies[],
    of: (chunk: ChunkCopies) => readonly DiskId[],
    readBytes = false,
  ): Promise<void> {
    return askDisks(this.#parts, this.#inquiry, { chunks, of, readBytes });
  }

  /** Asks all other disks: any may have been a stand-in. */
  #search(chunks: readonly ChunkCopies[]): Promise<void> {
    return this.#ask(chunks, ({ answers }) => this.#diskIds.filter((disk) => !answers.has(disk)));
  }

  #fill(chunk: ChunkCopies): Promise<void>[] {
    const { gate, backoffs } = this.#parts;
    const { signal } = this.#inquiry;
    const sources = chunk.whole();
    const [first] = sources;
    const copy = first === undefined ? undefined : chunk.answers.get(first);
    if (copy?.kind !== 'whole') return [];
    const lacking = chunk.owners.filter((disk) => chunk.lacks(disk));
    return lacking.map((to) =>
      gate.run(copy.sizeBytes, signal, async () => {
        // The disk may have failed while this waited for its turn.
        if (!backoffs.isBackedOff(to, 'take')) await this.#fetch(chunk, to, new Set(sources));
      }),
    );
  }

  /** Tries one source after the other. */
  async #fetch(chunk: ChunkCopies, to: DiskId, untried: Set<DiskId>): Promise<void> {
    const failed: DiskId[] = [];
    while (untried.size > 0) {
      const [any] = untried;
      const from = [...untried].find((disk) => !this.#poor.has(disk)) ?? must(any, 'a source');
      untried.delete(from);
      const copy = chunk.answers.get(from);
      // Another fetch may have found that the source does not have it.
      if (copy?.kind !== 'whole') continue;
      const outcome = await this.#pull(chunk, { to, from, copy });
      if (outcome === 'stored') {
        // The taker works, so the failed sources are at fault.
        for (const disk of failed) this.#poor.add(disk);
        return chunk.record(to, copy);
      }
      if (outcome === 'absent') chunk.record(from, { kind: 'missing', isQuarantined: false });
      else if (outcome === 'full') return;
      else failed.push(from);
    }
    // Source or taker may be at fault; the taker is backed off.
    if (failed.length > 0) this.#parts.backoffs.failed(to, 'take');
  }

  async #pull(
    { id }: ChunkCopies,
    { to, from, copy }: { to: DiskId; from: DiskId; copy: WholeCopy },
  ): Promise<'stored' | 'absent' | 'failed' | 'full'> {
    const { directory, backoffs, telemetry } = this.#parts;
    const { map, order, signal } = this.#inquiry;
    const disks = disksById(map);
    const [taker, source] = [must(disks.get(to), 'a disk'), must(disks.get(from), 'a disk')];
    const { sizeBytes, checksum } = copy;
    const chunk = { id, sizeBytes, checksum, from: { diskId: from, address: source.address } };
    try {
      const outcome = await directory.chunksOf(taker).pull(chunk, order, signal);
      backoffs.worked(to, 'take');
      if (outcome === 'stored') {
        telemetry.count('holdfast_repair_copies_total');
        telemetry.count('holdfast_repair_bytes_total', {}, sizeBytes);
      }
      return outcome;
    } catch (error) {
      if (isRefusal(error) || signal.aborted) throw error;
      return this.#noteFailure(to, id, error);
    }
  }

  #noteFailure(disk: DiskId, id: ChunkCopies['id'], error: unknown): 'failed' | 'full' {
    const { backoffs, log } = this.#parts;
    if (error instanceof OtherBytes) log.error({ ...id, diskId: disk, err: error }, 'chunk-differs');
    if (!(error instanceof AppError) || error.code !== 'InsufficientStorage') return 'failed';
    backoffs.wasFull(disk);
    log.warn({ diskId: disk }, 'repair-disk-full');
    return 'full';
  }

  /** R38 b, R40: misplaced and quarantined copies are dropped once every owner has read its copy. */
  async #tidy(chunks: readonly ChunkCopies[]): Promise<void> {
    const spare = chunks.filter(
      (chunk) => chunk.isWholeAtOwners() && (chunk.misplaced().length > 0 || chunk.quarantinedAt.size > 0),
    );
    if (spare.length === 0) return;
    await this.#ask(spare, ({ owners }) => owners, true);
    const proven = spare.filter((chunk) => chunk.isWholeAtOwners());
    await this.#drop(proven, (chunk) => chunk.misplaced(), 'dropMisplaced');
    await this.#drop(proven, ({ quarantinedAt }) => [...quarantinedAt], 'dropQuarantined');
  }

  async #drop(
    chunks: readonly ChunkCopies[],
    at: (chunk: ChunkCopies) => readonly DiskId[],
    how: 'dropMisplaced' | 'dropQuarantined',
  ): Promise<void> {
    const { directory, backoffs, telemetry } = this.#parts;
    const { map, order, signal } = this.#inquiry;
    const disks = disksById(map);
    const dropAt = async (disk: DiskId) => {
      signal.throwIfAborted();
      const its = chunks.filter((chunk) => at(chunk).includes(disk));
      const ids = its.map(({ id }) => id);
      const port = directory.chunksOf(must(disks.get(disk), 'a disk'));
      try {
        // Copies on a disk that does not answer are found again, by the sweep or the next look at quarantined chunks.
        const isDone = await attempt(backoffs, disk, () => port[how](ids, order).then(() => true));
        if (isDone) telemetry.count(DROP_METRICS[how], {}, ids.length);
      } catch (error) {
        if (!this.#isForLater(error)) throw error;
        for (const chunk of its) this.#kept.add(chunk);
      }
    };
    await allOf([...new Set(chunks.flatMap(at))].map(dropAt));
  }

  /** The disk does not know this map yet, or knows a newer one than its node reported. */
  #isForLater(error: unknown): boolean {
    if (error instanceof StaleMap) return error.version <= this.#inquiry.map.version;
    return error instanceof OwnedHere;
  }

  #stateOf(chunk: ChunkCopies): ChunkState {
    if (chunk.isWholeAtOwners() && !this.#kept.has(chunk)) return { kind: 'whole' };
    const holders = chunk.whole();
    const isLost = holders.length === 0 && this.#diskIds.every((disk) => chunk.is(disk, 'missing'));
    return isLost ? { kind: 'lost' } : incompleteWith(holders);
  }
}

const DROP_METRICS = {
  dropMisplaced: 'holdfast_repair_dropped_copies_total',
  dropQuarantined: 'holdfast_damaged_chunks_repaired_total',
} as const;

export function incompleteWith(holders: DiskId[]): ChunkState {
  return { kind: 'incomplete', copies: Math.min(holders.length, COPIES_UNKNOWN), holders };
}
