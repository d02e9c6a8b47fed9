// The answers of disks about some chunks, by one map and in one epoch: the only basis for making or dropping copies. They
// are not kept longer (R38).
import { must } from '../../base/assert.ts';
import type { ChunkId } from '../../ports/chunks.ts';
import type { DiskDirectory } from '../../ports/disk-chunks.ts';
import type { InspectedChunk, Order } from '../../ports/disk-orders.ts';
import type { DiskId, PlacementMap } from '../../ports/placement.ts';
import { OldFence, OwnedHere, StaleMap } from '../../types/chunk-refusals.ts';
import { LIMITS } from '../../types/limits.ts';
import { disksById, ownersOf, partitionOf } from '../placement/placement.ts';
import type { DiskBackoffs } from './disk-backoffs.ts';

export interface AskParts {
  directory: DiskDirectory;
  backoffs: DiskBackoffs;
}

export type CopyAnswer = InspectedChunk | { kind: 'silent' };

export class ChunkCopies {
  readonly id: ChunkId;
  readonly owners: readonly DiskId[];
  /** Disks of this map that were recorded as holders. */
  readonly known: readonly DiskId[];
  /** Disks that may have it beside its owners. */
  readonly hints: readonly DiskId[];
  readonly answers = new Map<DiskId, CopyAnswer>();
  /** Disks with a quarantined copy. */
  readonly quarantinedAt = new Set<DiskId>();

  constructor(map: PlacementMap, id: ChunkId, holders: readonly DiskId[] = []) {
    const disks = disksById(map);
    this.id = id;
    this.owners = ownersOf(map, id);
    const previous = must(map.previous[partitionOf(id)], 'a map has all partitions');
    this.known = [...new Set(holders)].filter((disk) => disks.has(disk));
    const others = [...previous, ...this.known].filter((disk) => !this.owners.includes(disk));
    this.hints = [...new Set(others)].filter((disk) => disks.has(disk));
  }

  is(disk: DiskId, kind: CopyAnswer['kind']): boolean {
    return this.answers.get(disk)?.kind === kind;
  }

  /** Disks with an intact copy, in the order in which they were asked: owners first. */
  whole(): DiskId[] {
    return [...this.answers.keys()].filter((disk) => this.is(disk, 'whole'));
  }

  /** The disk has no readable copy. An unreadable one may still exist, so it is no reason to call a chunk lost. */
  lacks(disk: DiskId): boolean {
    return this.is(disk, 'missing') || this.is(disk, 'unread');
  }

  isWholeAtOwners(): boolean {
    return this.owners.length > 0 && this.owners.every((disk) => this.is(disk, 'whole'));
  }

  /** Disks that have it, readable or not, and do not own it. */
  misplaced(): DiskId[] {
    const having = [...this.answers.keys()].filter(
      (disk) => this.is(disk, 'whole') || this.is(disk, 'unread'),
    );
    return having.filter((disk) => !this.owners.includes(disk));
  }

  record(disk: DiskId, answer: CopyAnswer): void {
    this.answers.set(disk, answer);
    if (answer.kind === 'missing' && answer.isQuarantined) this.quarantinedAt.add(disk);
  }
}

export interface Inquiry {
  map: PlacementMap;
  order: Order;
  signal: AbortSignal;
}

/** When bytes are read, a request is bounded by what a disk reads in its time. */
const READ_BATCH = 16;

/** Asks each disk once about all of its chunks. Rejects with StaleMap and OldFence only. */
export async function askDisks(
  { directory, backoffs }: AskParts,
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
    for (const chunk of its) chunk.record(disk, { kind: 'silent' });
    const port = directory.chunksOf(must(disks.get(disk), 'only disks of the map are asked'));
    for (let from = 0; from < its.length; from += batchSize) {
      signal.throwIfAborted();
      if (backoffs.isBackedOff(disk, 'ask')) return;
      const some = its.slice(from, from + batchSize);
      const ids = some.map(({ id }) => id);
      const answers = await attempt(backoffs, disk, () => port.inspect(ids, order, { readBytes, signal }));
      if (answers === undefined) return;
      for (const [at, chunk] of some.entries()) chunk.record(disk, must(answers[at], 'an answer for each'));
    }
  };
  await allOf([...byDisk].map(([disk, its]) => askOne(disk, its)));
}

/** undefined: the disk did not answer, and is backed off. Rejects with its refusal. */
export async function attempt<T>(
  backoffs: DiskBackoffs,
  disk: DiskId,
  act: () => Promise<T>,
): Promise<T | undefined> {
  try {
    const answer = await act();
    backoffs.worked(disk, 'ask');
    return answer;
  } catch (error) {
    if (isRefusal(error)) throw error;
    backoffs.failed(disk, 'ask');
    return undefined;
  }
}

/** Waits for all actions even if one fails, so that none continues after the call. */
export async function allOf(actions: readonly Promise<void>[]): Promise<void> {
  const settled = await Promise.allSettled(actions);
  for (const one of settled) if (one.status === 'rejected') throw one.reason;
}

export function isRefusal(error: unknown): boolean {
  return error instanceof StaleMap || error instanceof OldFence || error instanceof OwnedHere;
}
