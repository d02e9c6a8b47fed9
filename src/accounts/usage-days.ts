// Records of usage out of the rows of shards, and their sums.
import type { BucketDay } from '../ports/metadata/usage.ts';
import { AT, isAccountTraffic, METERED } from '../types/metered.ts';
import type { AccountId } from '../types/names.ts';
import { DAY_MS, METERED_NOTHING, type UsageDay, type UsageFigures } from '../types/usage.ts';

/** A record as shards have it, by the names of its figures. */
export function usageDay(
  accountId: AccountId,
  found: BucketDay,
  { isClosed }: { isClosed: boolean },
): UsageDay {
  const { day, figures, deletedDay } = found;
  const bucket = !isAccountTraffic({ accountId, ...found }) && {
    bucketId: found.bucketId,
    bucketName: found.bucketName,
  };
  return {
    ...figuresIn(figures),
    day,
    accountId,
    ...bucket,
    isClosed,
    ...(deletedDay !== undefined && { bucketDeletedAtMs: deletedDay * DAY_MS }),
  };
}

export function figuresIn(figures: readonly number[]): UsageFigures {
  const named = Object.fromEntries(METERED.map((field) => [field, figures[AT[field]] ?? 0]));
  return { ...METERED_NOTHING, ...named };
}

export function addFigures(sums: UsageFigures, more: UsageFigures): UsageFigures {
  const fields = Object.keys(METERED_NOTHING) as (keyof UsageFigures)[];
  return Object.fromEntries(
    fields.map((field) => [field, sums[field] + more[field]]),
  ) as unknown as UsageFigures;
}
