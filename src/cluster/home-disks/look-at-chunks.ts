// A look at who has some chunks, which changes nothing (R39). What a silent disk has is unknown, and holds up nothing;
// but where owners have just changed it is owed, so that the owners before may be forgotten once all has been looked at.
import { must } from '../../lib/assert.ts';
import { COPIES_UNKNOWN } from '../../model/debts.ts';
import type { ChunkId } from '../../ports/chunks.ts';
import type { ChunkState } from '../../ports/home-disks.ts';
import type { DiskId, PlacementMap } from '../../ports/placement.ts';
import { partitionOf } from '../placement.ts';
import { type AskParts, askDisks, ChunkCopies, type Inquiry } from './chunk-copies.ts';
import { owedBy } from './mend-chunks.ts';

/** In the order of `ids`. `disks`: asks these alone. Rejects with StaleMap, OldFence, or as `signal` aborts. */
export async function lookAtChunks(
  parts: AskParts,
  inquiry: Inquiry,
  { ids, disks }: { ids: readonly ChunkId[]; disks: ReadonlySet<DiskId> | undefined },
): Promise<ChunkState[]> {
  const chunks = ids.map((id) => new ChunkCopies(inquiry.map, id));
  const of = ({ owners, hints }: ChunkCopies) =>
    disks === undefined ? [...owners, ...hints] : owners.filter((disk) => disks.has(disk));
  await askDisks(parts, inquiry, { chunks, of, readBytes: false });
  return chunks.map((chunk) => (disks === undefined ? stateOf(inquiry.map, chunk) : stateAtSome(chunk)));
}

function stateOf(map: PlacementMap, chunk: ChunkCopies): ChunkState {
  const isChanging = must(map.previous[partitionOf(chunk.id)], 'a map has all partitions').length > 0;
  const isMissing = chunk.owners.some((disk) => chunk.is(disk, 'missing'));
  if (isMissing || chunk.misplaced().length > 0) return owedBy(chunk.whole());
  if (chunk.isWholeAtOwners()) return { kind: 'whole' };
  return isChanging ? owedBy(chunk.whole()) : { kind: 'unknown' };
}

/** Of the others nothing is known. */
function stateAtSome(chunk: ChunkCopies): ChunkState {
  const said = [...chunk.said.keys()];
  const missing = said.filter((disk) => chunk.is(disk, 'missing'));
  if (missing.length > 0) {
    const copies = Math.min(chunk.owners.length - missing.length, COPIES_UNKNOWN);
    return { kind: 'owed', copies, holders: chunk.whole() };
  }
  return said.some((disk) => chunk.is(disk, 'silent')) ? { kind: 'unknown' } : { kind: 'whole' };
}
