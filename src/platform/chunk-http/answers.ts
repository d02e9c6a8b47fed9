// Validates the answers of a node to batches before they are used: a member may have a bug, or be another's by now. An
// impossible size or id would mislead its user: hold up all repair, or walk a disk without end.

import type { ChunkId, ChunkPort, StoredChunk } from '../../ports/chunks.ts';
import type { InspectedChunk } from '../../ports/disk-orders.ts';
import { AppError } from '../../types/errors.ts';
import { compareChunkIds } from '../../types/names.ts';
import { CHUNK_BODY_BYTES_MAX, isChunkId, isIndex } from './wire.ts';

/** A kind that is not known here is of a newer node, and no ground for anything. Throws AppError. */
export function toInspected(answer: unknown): InspectedChunk {
  const { kind, isAside, ...rest } = toObject(answer);
  if (kind === 'missing' && typeof isAside === 'boolean') return { kind, isQuarantined: isAside };
  if (kind === 'whole') return { kind, ...toStored(rest) };
  return kind === 'missing' ? refuse() : { kind: 'unread' };
}

/** On the wire a quarantined copy is `isAside`, and their number `asideCount`. */
export function fromInspected(chunk: InspectedChunk): unknown {
  return chunk.kind === 'missing' ? { kind: chunk.kind, isAside: chunk.isQuarantined } : chunk;
}

type Usage = Awaited<ReturnType<ChunkPort['usage']>>;

export function fromUsage({ quarantinedCount, ...usage }: Usage): unknown {
  return { ...usage, ...(quarantinedCount !== undefined && { asideCount: quarantinedCount }) };
}

export function toUsage(answer: unknown): Usage {
  const { asideCount, ...usage } = toObject(answer) as Omit<Usage, 'quarantinedCount'> & {
    asideCount?: number;
  };
  return { ...usage, ...(asideCount !== undefined && { quarantinedCount: asideCount }) };
}

export function toStored(answer: unknown): StoredChunk {
  const { sizeBytes, checksum, receivedAtMs } = toObject(answer);
  const isOne = isSize(sizeBytes) && isIndex(checksum) && typeof receivedAtMs === 'number';
  return isOne ? { sizeBytes, checksum, receivedAtMs } : refuse();
}

/** Chunks of a page, which lie behind `after` and in their order. */
export function toPage<Row>(
  answer: unknown,
  { after, limit, idOf }: { after: ChunkId | undefined; limit: number; idOf(row: Row): unknown },
): Row[] {
  if (!Array.isArray(answer) || answer.length > limit) return refuse();
  let last = after;
  for (const row of answer as Row[]) last = toNext(idOf(row), last);
  return answer as Row[];
}

export function toNext(answer: unknown, after: ChunkId | undefined): ChunkId {
  if (!isChunkId(answer)) return refuse();
  return after === undefined || compareChunkIds(answer, after) > 0 ? answer : refuse();
}

function isSize(value: unknown): value is number {
  return isIndex(value) && value <= CHUNK_BODY_BYTES_MAX;
}

export function toObject(answer: unknown): Record<string, unknown> {
  return typeof answer === 'object' && answer !== null ? (answer as Record<string, unknown>) : refuse();
}

function refuse(): never {
  throw new AppError('ServiceUnavailable', { cause: new Error('an answer that cannot be') });
}
