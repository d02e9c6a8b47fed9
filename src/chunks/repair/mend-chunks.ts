// Repair of some chunks (R38, R39): who has them, what their owners lack is fetched, and once all owners have proven that
// they have them, copies elsewhere are dropped. Everything is asked and ordered by one map, in one epoch; when a node knows
// of a newer one, nothing of this counts any more, and it begins anew.
import { must } from '../../base/assert.ts';
import type { InspectedChunk } from '../../ports/disk-orders.ts';
import type { ChunkState, ChunkToMend } from '../../ports/home-disks.ts';
import type { DiskId } from '../../ports/placement.ts';
import type { Logger, TelemetryPort } from '../../ports/telemetry.ts';
import { OtherBytes, OwnedHere, StaleMap } from '../../types/chunk-refusals.ts';
import { COPIES_UNKNOWN } from '../../types/debts.ts';
import { AppError } from '../../types/errors.ts';
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

export interface MendParts extends AskParts {
  gate: RepairThrottle;
  log: Logger;
  telemetry: TelemetryPort;
}

type WholeCopy = Extract<InspectedChunk, { kind: 'whole' }>;

/** In the order of `owed`. Rejects with StaleMap, OldFence, or as `signal` aborts. */
export async function mendChunks(
  parts: MendParts,
  inquiry: Inquiry,
  owed: readonly ChunkToMend[],
): Promise<ChunkState[]> {
  const mend = new Mend(parts, inquiry);
  return mend.run(owed);
}

class Mend {
  readonly #parts: MendParts;
  readonly #inquiry: Inquiry;
  readonly #diskIds: DiskId[];
  /** Of which a disk would not drop its copy yet. */
  readonly #kept = new Set<ChunkCopies>();
  /** From which a disk could not take what it could from another: they are tried last. */
  readonly #poor = new Set<DiskId>();

  constructor(parts: MendParts, inquiry: Inquiry) {
    this.#parts = parts;
    this.#inquiry = inquiry;
    this.#diskIds = inquiry.map.disks.map(({ id }) => id);
  }

  async run(owed: readonly ChunkToMend[]): Promise<ChunkState[]> {
    const { map } = this.#inquiry;
    const disks = disksById(map);
    const all = owed.map(({ id, holders, asideAt = [] }) => {
      const chunk = new ChunkCopies(map, id, holders);
      for (const disk of asideAt) if (disks.has(disk)) chunk.aside.add(disk);
      return chunk;
    });
    const hopeful = all.filter((chunk, at) => !this.#mustWait(chunk, owed[at]?.copies));
    await this.#ask(hopeful, ({ owners, hints, aside }) => [...new Set([...owners, ...hints, ...aside])]);
    await this.#search(hopeful.filter((chunk) => !chunk.isWholeAtOwners() && chunk.whole().length === 0));
    await allOf(hopeful.flatMap((chunk) => this.#fill(chunk)));
    await this.#tidy(hopeful);
    return all.map((chunk) => (chunk.said.size === 0 ? { kind: 'unknown' } : this.#stateOf(chunk)));
  }

  /** All that is known to lack it rests: asking the others brings nothing. */
  #mustWait({ owners, known }: ChunkCopies, copies = known.length): boolean {
    // Of the holders that were noted one after the other not all have it still.
    if (copies < known.length) return false;
    const awake = owners.filter((disk) => !this.#parts.rests.isResting(disk, 'take'));
    return awake.length < owners.length && awake.every((disk) => known.includes(disk));
  }

  #ask(
    chunks: readonly ChunkCopies[],
    of: (chunk: ChunkCopies) => readonly DiskId[],
    readBytes = false,
  ): Promise<void> {
    return askDisks(this.#parts, this.#inquiry, { chunks, of, readBytes });
  }

  /** Any disk may have stood in. */
  #search(chunks: readonly ChunkCopies[]): Promise<void> {
    return this.#ask(chunks, ({ said }) => this.#diskIds.filter((disk) => !said.has(disk)));
  }

  #fill(chunk: ChunkCopies): Promise<void>[] {
    const { gate, rests } = this.#parts;
    const { signal } = this.#inquiry;
    const sources = chunk.whole();
    const [first] = sources;
    const copy = first === undefined ? undefined : chunk.said.get(first);
    if (copy?.kind !== 'whole') return [];
    const lacking = chunk.owners.filter((disk) => chunk.lacks(disk));
    return lacking.map((to) =>
      gate.run(copy.sizeBytes, signal, async () => {
        // Found out while it waited for its turn.
        if (!rests.isResting(to, 'take')) await this.#fetch(chunk, to, new Set(sources));
      }),
    );
  }

  /** From one source after the other. */
  async #fetch(chunk: ChunkCopies, to: DiskId, untried: Set<DiskId>): Promise<void> {
    const failed: DiskId[] = [];
    while (untried.size > 0) {
      const [any] = untried;
      const from = [...untried].find((disk) => !this.#poor.has(disk)) ?? must(any, 'a source');
      untried.delete(from);
      const copy = chunk.said.get(from);
      // Another owner may have found meanwhile that it is not there.
      if (copy?.kind !== 'whole') continue;
      const outcome = await this.#pull(chunk, { to, from, copy });
      if (outcome === 'stored') {
        // It takes from others: those are the ones that do not give.
        for (const disk of failed) this.#poor.add(disk);
        return chunk.hear(to, copy);
      }
      if (outcome === 'absent') chunk.hear(from, { kind: 'missing', isAside: false });
      else if (outcome === 'full') return;
      else failed.push(from);
    }
    // Whichever of them it was: the one that takes is the one to wait for.
    if (failed.length > 0) this.#parts.rests.failed(to, 'take');
  }

  async #pull(
    { id }: ChunkCopies,
    { to, from, copy }: { to: DiskId; from: DiskId; copy: WholeCopy },
  ): Promise<'stored' | 'absent' | 'failed' | 'full'> {
    const { directory, rests, telemetry } = this.#parts;
    const { map, order, signal } = this.#inquiry;
    const disks = disksById(map);
    const [taker, source] = [must(disks.get(to), 'a disk'), must(disks.get(from), 'a disk')];
    const { sizeBytes, checksum } = copy;
    const chunk = { id, sizeBytes, checksum, from: { diskId: from, address: source.address } };
    try {
      const outcome = await directory.chunksOf(taker).pull(chunk, order, signal);
      rests.worked(to, 'take');
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
    const { rests, log } = this.#parts;
    if (error instanceof OtherBytes) log.error({ ...id, diskId: disk, err: error }, 'chunk-differs');
    if (!(error instanceof AppError) || error.code !== 'InsufficientStorage') return 'failed';
    rests.wasFull(disk);
    log.warn({ diskId: disk }, 'repair-disk-full');
    return 'full';
  }

  /** R38 b, R40: what lies elsewhere or is kept aside goes once every owner has read its copy. */
  async #tidy(chunks: readonly ChunkCopies[]): Promise<void> {
    const spare = chunks.filter(
      (chunk) => chunk.isWholeAtOwners() && (chunk.misplaced().length > 0 || chunk.aside.size > 0),
    );
    if (spare.length === 0) return;
    await this.#ask(spare, ({ owners }) => owners, true);
    const proven = spare.filter((chunk) => chunk.isWholeAtOwners());
    await this.#drop(proven, (chunk) => chunk.misplaced(), 'dropMisplaced');
    await this.#drop(proven, ({ aside }) => [...aside], 'dropAside');
  }

  async #drop(
    chunks: readonly ChunkCopies[],
    at: (chunk: ChunkCopies) => readonly DiskId[],
    how: 'dropMisplaced' | 'dropAside',
  ): Promise<void> {
    const { directory, rests, telemetry } = this.#parts;
    const { map, order, signal } = this.#inquiry;
    const disks = disksById(map);
    const dropAt = async (disk: DiskId) => {
      signal.throwIfAborted();
      const its = chunks.filter((chunk) => at(chunk).includes(disk));
      const ids = its.map(({ id }) => id);
      const port = directory.chunksOf(must(disks.get(disk), 'a disk'));
      try {
        // What is left by one that does not answer is found again: by the sweep, or by the next look at what is aside.
        const isDone = await attempt(rests, disk, () => port[how](ids, order).then(() => true));
        if (isDone) telemetry.count(DROP_METRICS[how], {}, ids.length);
      } catch (error) {
        if (!this.#isForLater(error)) throw error;
        for (const chunk of its) this.#kept.add(chunk);
      }
    };
    await allOf([...new Set(chunks.flatMap(at))].map(dropAt));
  }

  /** The disk does not know this map yet, or knows a newer one than its node says. */
  #isForLater(error: unknown): boolean {
    if (error instanceof StaleMap) return error.version <= this.#inquiry.map.version;
    return error instanceof OwnedHere;
  }

  #stateOf(chunk: ChunkCopies): ChunkState {
    if (chunk.isWholeAtOwners() && !this.#kept.has(chunk)) return { kind: 'whole' };
    const holders = chunk.whole();
    const isLost = holders.length === 0 && this.#diskIds.every((disk) => chunk.is(disk, 'missing'));
    return isLost ? { kind: 'lost' } : owedBy(holders);
  }
}

const DROP_METRICS = {
  dropMisplaced: 'holdfast_repair_dropped_copies_total',
  dropAside: 'holdfast_damaged_chunks_repaired_total',
} as const;

export function owedBy(holders: DiskId[]): ChunkState {
  return { kind: 'owed', copies: Math.min(holders.length, COPIES_UNKNOWN), holders };
}
