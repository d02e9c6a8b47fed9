// Finds out who has some chunks, and changes nothing (R39). What a silent disk has is unknown, and delays nothing. But
// where owners have just changed its copy counts as missing, so that previous owners can be forgotten once everything was
// inspected; the same holds for an audit that a change of owners started.
import { must } from '../../base/assert.ts';
import type { ChunkId } from '../../ports/chunks.ts';
import type { ChunkState } from '../../ports/home-disks.ts';
import type { DiskId, PlacementMap } from '../../ports/placement.ts';
import { COPIES_UNKNOWN } from '../../types/repair-entries.ts';
import { partitionOf } from '../placement/placement.ts';
import { type AskParts, askDisks, ChunkCopies, type Inquiry } from './chunk-copies.ts';
import { incompleteWith } from './repair-chunks.ts';

/** In the order of `ids`. `disks`: asks these only. Rejects with StaleMap, OldFence, or when `signal` aborts. */
export async function inspectChunks(
  parts: AskParts,
  inquiry: Inquiry,
  look: { ids: readonly ChunkId[]; disks: ReadonlySet<DiskId> | undefined; countsSilentAsMissing: boolean },
): Promise<ChunkState[]> {
  const { ids, disks, countsSilentAsMissing } = look;
  const chunks = ids.map((id) => new ChunkCopies(inquiry.map, id));
  const of = ({ owners, hints }: ChunkCopies) =>
    disks === undefined ? [...owners, ...hints] : owners.filter((disk) => disks.has(disk));
  await askDisks(parts, inquiry, { chunks, of, readBytes: false });
  if (disks !== undefined) return chunks.map(stateAtSome);
  return chunks.map((chunk) => stateOf(chunk, countsSilentAsMissing || isChanging(inquiry.map, chunk)));
}

function isChanging(map: PlacementMap, { id }: ChunkCopies): boolean {
  return must(map.previous[partitionOf(id)], 'a map has all partitions').length > 0;
}

function stateOf(chunk: ChunkCopies, countsSilentAsMissing: boolean): ChunkState {
  const isMissing = chunk.owners.some((disk) => chunk.lacks(disk));
  if (isMissing || chunk.misplaced().length > 0) return incompleteWith(chunk.whole());
  if (chunk.isWholeAtOwners()) return { kind: 'whole' };
  return countsSilentAsMissing ? incompleteWith(chunk.whole()) : { kind: 'unknown' };
}

/** By some of the owners: nothing is known of the others. */
function stateAtSome(chunk: ChunkCopies): ChunkState {
  const answering = [...chunk.answers.keys()];
  const missing = answering.filter((disk) => chunk.lacks(disk));
  if (missing.length > 0) {
    const copies = Math.min(chunk.owners.length - missing.length, COPIES_UNKNOWN);
    return { kind: 'incomplete', copies, holders: chunk.whole() };
  }
  return answering.some((disk) => chunk.is(disk, 'silent')) ? { kind: 'unknown' } : { kind: 'whole' };
}
