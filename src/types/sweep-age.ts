// From which age on the reverse sweep asks after a chunk (R32): no request may be under way any more that could claim it. A
// guess by the wall clock, which may be wrong: what decides is the committed time of its home (R25).
import { LIMITS } from './limits.ts';
import { type BlobId, idTimeMs } from './names.ts';

/** Whether its id was made long enough ago. */
export function isOfSweepAge({ blobId }: { blobId: BlobId }, nowMs: number): boolean {
  return nowMs - idTimeMs(blobId) > LIMITS.sweepAfterMs;
}

/** By two clocks, that of who made the id and that of the disk that received the chunk: one of them may be wrong. */
export function mayBeOrphan(
  { id, receivedAtMs }: { id: { blobId: BlobId }; receivedAtMs: number },
  nowMs: number,
): boolean {
  return nowMs - receivedAtMs > LIMITS.sweepAfterMs && isOfSweepAge(id, nowMs);
}
