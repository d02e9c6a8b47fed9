// A look at who has some chunks, which changes nothing (R39). What a silent disk has is unknown, and holds up nothing;
// but where owners have just changed it is owed, so that the owners before may be forgotten once all has been looked at,
// and in the look that a change of owners asked for: a disk that has joined the others has replaced nobody, and is missed
// by none of them.
import { must } from '../../base/assert.ts';
import type { ChunkId } from '../../ports/chunks.ts';
import type { ChunkState } from '../../ports/home-disks.ts';
import type { DiskId, PlacementMap } from '../../ports/placement.ts';
import { COPIES_UNKNOWN } from '../../types/debts.ts';
import { partitionOf } from '../placement/placement.ts';
import { type AskParts, askDisks, ChunkCopies, type Inquiry } from './chunk-copies.ts';
import { owedBy } from './mend-chunks.ts';

/** In the order of `ids`. `disks`: asks these alone. Rejects with StaleMap, OldFence, or as `signal` aborts. */
export async function lookAtChunks(
  parts: AskParts,
  inquiry: Inquiry,
  look: { ids: readonly ChunkId[]; disks: ReadonlySet<DiskId> | undefined; owesSilence: boolean },
): Promise<ChunkState[]> {
  const { ids, disks, owesSilence } = look;
  const chunks = ids.map((id) => new ChunkCopies(inquiry.map, id));
  const of = ({ owners, hints }: ChunkCopies) =>
    disks === undefined ? [...owners, ...hints] : owners.filter((disk) => disks.has(disk));
  await askDisks(parts, inquiry, { chunks, of, readBytes: false });
  if (disks !== undefined) return chunks.map(stateAtSome);
  return chunks.map((chunk) => stateOf(chunk, owesSilence || isChanging(inquiry.map, chunk)));
}

function isChanging(map: PlacementMap, { id }: ChunkCopies): boolean {
  return must(map.previous[partitionOf(id)], 'a map has all partitions').length > 0;
}

function stateOf(chunk: ChunkCopies, owesSilence: boolean): ChunkState {
  const isMissing = chunk.owners.some((disk) => chunk.lacks(disk));
  if (isMissing || chunk.misplaced().length > 0) return owedBy(chunk.whole());
  if (chunk.isWholeAtOwners()) return { kind: 'whole' };
  return owesSilence ? owedBy(chunk.whole()) : { kind: 'unknown' };
}

/** Of the others nothing is known. */
function stateAtSome(chunk: ChunkCopies): ChunkState {
  const said = [...chunk.said.keys()];
  const missing = said.filter((disk) => chunk.lacks(disk));
  if (missing.length > 0) {
    const copies = Math.min(chunk.owners.length - missing.length, COPIES_UNKNOWN);
    return { kind: 'owed', copies, holders: chunk.whole() };
  }
  return said.some((disk) => chunk.is(disk, 'silent')) ? { kind: 'unknown' } : { kind: 'whole' };
}
