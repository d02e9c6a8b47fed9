// Whether disks may be removed for good (R36, R40): once previous owners are forgotten only repair entries know the holders
// of a chunk, and a removed disk is never asked again.

import type { RepairQueuePlace } from '../../ports/metadata/repair.ts';
import type { DiskId } from '../../ports/placement.ts';
import { LIMITS } from '../../types/limits.ts';
import { COPIES_UNKNOWN } from '../../types/repair-entries.ts';
import type { AskPrimary } from '../status/ask-primary.ts';

/** Entries with enough copies elsewhere come and go: beyond this many pages the holders are unknown. */
const PAGES_MAX = 25;

/** Why repair entries may need these disks, as a sentence; undefined: they do not. */
export async function whyNeeded(
  ask: AskPrimary,
  { shardCount, disks }: { shardCount: number; disks: ReadonlySet<DiskId> },
): Promise<string | undefined> {
  const shards = Array.from({ length: shardCount }, (_, shard) => shard);
  const reasons = await Promise.all(shards.map((shard) => whyNeededBy(ask, { shard, disks })));
  return reasons.find((reason) => reason !== undefined);
}

async function whyNeededBy(
  ask: AskPrimary,
  { shard, disks }: { shard: number; disks: ReadonlySet<DiskId> },
): Promise<string | undefined> {
  let after: RepairQueuePlace | undefined;
  for (let page = 0; page < PAGES_MAX; page++) {
    const query = { limit: LIMITS.repairPageMax, ...(after && { after }) };
    const found = await ask(shard, 'list-debts', query);
    if (found === undefined) return `shard ${shard} does not report its missing copies`;
    for (const { debt } of found.debts) {
      // A holder that is not known may be one of these disks.
      if (debt.copies < LIMITS.copiesSyncedMin || debt.copies === COPIES_UNKNOWN)
        return `shard ${shard} lacks copies of chunks that fewer than ${LIMITS.copiesSyncedMin} others are known to have`;
      if (debt.ranges.some(({ holders }) => holders.some((holder) => disks.has(holder))))
        return `shard ${shard} lacks copies of chunks that these disks have`;
      // Holders are not named where they were unknown, and not all of them where there were many.
      if (
        debt.ranges.some(({ holders }) => holders.length === 0 || holders.length >= LIMITS.repairHoldersMax)
      )
        return `shard ${shard} lacks copies of chunks of which it does not know all that have them`;
    }
    if (found.next === undefined) return undefined;
    after = found.next;
  }
  return `shard ${shard} lacks too many copies to show whether these disks have them`;
}
