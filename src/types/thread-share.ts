// What is bounded for a whole process, where several threads of it serve clients: each has an equal share.

/**
 * The share of one of `threads`. `least`: what one request needs to find room at all; then the shares together may be more
 * than the bound.
 */
export function shareOfThread(
  bound: number,
  { threads = 1, least = 1 }: { threads?: number | undefined; least?: number },
): number {
  return threads === 1 ? bound : Math.max(least, Math.floor(bound / threads));
}
