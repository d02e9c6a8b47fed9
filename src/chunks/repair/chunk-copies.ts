// What the disks have said of some chunks, by one map and in one epoch: the only ground on which copies are made or
// dropped. Answers are not kept beyond that (R38).
import { must } from '../../base/assert.ts';
import type { ChunkId } from '../../ports/chunks.ts';
import type { DiskDirectory } from '../../ports/disk-chunks.ts';
import type { InspectedChunk, Order } from '../../ports/disk-orders.ts';
import type { DiskId, PlacementMap } from '../../ports/placement.ts';
import { OldFence, OwnedHere, StaleMap } from '../../types/chunk-refusals.ts';
import { LIMITS } from '../../types/limits.ts';
import { disksById, ownersOf, partitionOf } from '../placement/placement.ts';
import type { DiskRests } from './disk-rests.ts';

export interface AskParts {
  directory: DiskDirectory;
  rests: DiskRests;
}

export type Said = InspectedChunk | { kind: 'silent' };

export class ChunkCopies {
  readonly id: ChunkId;
  readonly owners: readonly DiskId[];
  /** Disks of this map that were known to have it when that was noted. */
  readonly known: readonly DiskId[];
  /** Who may have it beside its owners. */
  readonly hints: readonly DiskId[];
  readonly said = new Map<DiskId, Said>();
  /** Disks that keep a copy aside that did not verify. */
  readonly aside = new Set<DiskId>();

  constructor(map: PlacementMap, id: ChunkId, holders: readonly DiskId[] = []) {
    const disks = disksById(map);
    this.id = id;
    this.owners = ownersOf(map, id);
    const previous = must(map.previous[partitionOf(id)], 'a map has all partitions');
    this.known = [...new Set(holders)].filter((disk) => disks.has(disk));
    const others = [...previous, ...this.known].filter((disk) => !this.owners.includes(disk));
    this.hints = [...new Set(others)].filter((disk) => disks.has(disk));
  }

  is(disk: DiskId, kind: Said['kind']): boolean {
    return this.said.get(disk)?.kind === kind;
  }

  /** In the order in which they were asked: owners first. */
  whole(): DiskId[] {
    return [...this.said.keys()].filter((disk) => this.is(disk, 'whole'));
  }

  /** It has none that can be read. What could not be read may be there: it is no ground to call a chunk lost. */
  lacks(disk: DiskId): boolean {
    return this.is(disk, 'missing') || this.is(disk, 'unread');
  }

  isWholeAtOwners(): boolean {
    return this.owners.length > 0 && this.owners.every((disk) => this.is(disk, 'whole'));
  }

  /** Who has it and does not own it, readable or not. */
  misplaced(): DiskId[] {
    const having = [...this.said.keys()].filter((disk) => this.is(disk, 'whole') || this.is(disk, 'unread'));
    return having.filter((disk) => !this.owners.includes(disk));
  }

  hear(disk: DiskId, said: Said): void {
    this.said.set(disk, said);
    if (said.kind === 'missing' && said.isAside) this.aside.add(disk);
  }
}

export interface Inquiry {
  map: PlacementMap;
  order: Order;
  signal: AbortSignal;
}

/** With the bytes read, a request is bounded by what a disk reads in its time. */
const READ_BATCH = 16;

/** Asks each disk once for all of its chunks. Rejects with StaleMap and OldFence alone. */
export async function askDisks(
  { directory, rests }: AskParts,
  { map, order, signal }: Inquiry,
  wanted: { chunks: readonly ChunkCopies[]; of(chunk: ChunkCopies): readonly DiskId[]; readBytes: boolean },
): Promise<void> {
  const { chunks, of, readBytes } = wanted;
  const byDisk = new Map<DiskId, ChunkCopies[]>();
  for (const chunk of chunks) {
    for (const disk of of(chunk)) {
      const its = byDisk.get(disk);
      if (its === undefined) byDisk.set(disk, [chunk]);
      else its.push(chunk);
    }
  }
  const disks = disksById(map);
  const batchSize = readBytes ? READ_BATCH : LIMITS.chunkBatchIdsMax;
  const askOne = async (disk: DiskId, its: readonly ChunkCopies[]) => {
    for (const chunk of its) chunk.hear(disk, { kind: 'silent' });
    const port = directory.chunksOf(must(disks.get(disk), 'only disks of the map are asked'));
    for (let from = 0; from < its.length; from += batchSize) {
      signal.throwIfAborted();
      if (rests.isResting(disk, 'ask')) return;
      const some = its.slice(from, from + batchSize);
      const ids = some.map(({ id }) => id);
      const said = await attempt(rests, disk, () => port.inspect(ids, order, { readBytes, signal }));
      if (said === undefined) return;
      for (const [at, chunk] of some.entries()) chunk.hear(disk, must(said[at], 'an answer for each'));
    }
  };
  await allOf([...byDisk].map(([disk, its]) => askOne(disk, its)));
}

/** undefined: the disk did not answer, and rests. Rejects where it refuses. */
export async function attempt<T>(
  rests: DiskRests,
  disk: DiskId,
  act: () => Promise<T>,
): Promise<T | undefined> {
  try {
    const answer = await act();
    rests.worked(disk, 'ask');
    return answer;
  } catch (error) {
    if (isRefusal(error)) throw error;
    rests.failed(disk, 'ask');
    return undefined;
  }
}

/** Waits for all of them, also when one has failed: nothing goes on behind the caller's back. */
export async function allOf(actions: readonly Promise<void>[]): Promise<void> {
  const settled = await Promise.allSettled(actions);
  for (const one of settled) if (one.status === 'rejected') throw one.reason;
}

export function isRefusal(error: unknown): boolean {
  return error instanceof StaleMap || error instanceof OldFence || error instanceof OwnedHere;
}
