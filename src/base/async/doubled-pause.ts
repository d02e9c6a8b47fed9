// How long to leave alone what has failed again: longer each time, within bounds.

/** ms; `beforeMs`: the last pause, undefined or 0 where it worked before. */
export function doubledPause(
  beforeMs: number | undefined,
  { minMs, maxMs }: { minMs: number; maxMs: number },
): number {
  return Math.min(Math.max(2 * (beforeMs ?? 0), minMs), maxMs);
}
