// Whether disks may go for good (R36, R40): once former owners are forgotten, debts alone know who has a chunk, and a disk that
// is removed is never asked for it again.

import type { DebtPlace } from '../../ports/debt-calls.ts';
import type { DiskId } from '../../ports/placement.ts';
import { COPIES_UNKNOWN } from '../../types/debts.ts';
import { LIMITS } from '../../types/limits.ts';
import type { AskPrimary } from '../status/ask-primary.ts';

/** Debts with copies enough elsewhere come and go all the time: of more than these it is not known whom they name. */
const PAGES_MAX = 25;

/** Why these disks may be needed by what is owed, as a sentence; undefined: they are not. */
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
  let after: DebtPlace | undefined;
  for (let page = 0; page < PAGES_MAX; page++) {
    const query = { limit: LIMITS.debtPageMax, ...(after && { after }) };
    const found = await ask(shard, 'list-debts', query);
    if (found === undefined) return `shard ${shard} does not say what it is owed`;
    for (const { debt } of found.debts) {
      // Whoever is not known to have it may be one of these.
      if (debt.copies < LIMITS.copiesSyncedMin || debt.copies === COPIES_UNKNOWN)
        return `shard ${shard} is owed copies of chunks that fewer than ${LIMITS.copiesSyncedMin} others are known to have`;
      if (debt.ranges.some(({ holders }) => holders.some((holder) => disks.has(holder))))
        return `shard ${shard} is owed copies of chunks that these disks have`;
      // Nobody is named where it was not known, and not all where there were many.
      if (debt.ranges.some(({ holders }) => holders.length === 0 || holders.length >= LIMITS.debtHoldersMax))
        return `shard ${shard} is owed copies of chunks of which it does not know all that have them`;
    }
    if (found.next === undefined) return undefined;
    after = found.next;
  }
  return `shard ${shard} is owed too many copies to say whether these disks have them`;
}
