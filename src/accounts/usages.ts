// Usage of accounts and of their buckets by day, out of the records of all shards.
import type { MetadataPort } from '../ports/metadata/port.ts';
import type { BucketDay } from '../ports/metadata/usage.ts';
import { AT, isAccountTraffic, METERED } from '../types/metered.ts';
import type { AccountId, BucketId } from '../types/names.ts';
import { requireDone } from '../types/require-done.ts';
import {
  DAY_MS,
  METERED_NOTHING,
  type UsageDay,
  type UsageFigures,
  type UsageReader,
} from '../types/usage.ts';

/** Buckets of one page of the present. */
const PAGE = 1000;

export interface Usages extends UsageReader {
  /** Of each bucket and closed day, in order of days. Both ends inclusive. */
  byBucket(accountId: AccountId, range: { fromDay: number; toDay: number }): Promise<UsageDay[]>;
  /** Of each bucket, and of requests without one, as it is now: in a record of today that is not closed. */
  current(accountId: AccountId): Promise<UsageDay[]>;
}

/** Throws ServiceUnavailable while a shard cannot answer. */
export function createUsages(metadata: MetadataPort): Usages {
  const shards = Array.from({ length: metadata.shardCount }, (_, shard) => shard);

  async function listOf(shard: number, accountId: AccountId, range: { fromDay: number; toDay: number }) {
    const found: BucketDay[] = [];
    for (let fromDay: number | undefined = range.fromDay; fromDay !== undefined; ) {
      const query = { accountId, fromDay, toDay: range.toDay };
      const page: { days: BucketDay[]; nextDay?: number } = requireDone(
        await metadata.query({ shard }, 'list-usages', query),
      );
      found.push(...page.days);
      fromDay = page.nextDay;
    }
    return found;
  }

  /** Of each bucket, and of requests without one. */
  async function all(accountId: AccountId, range: { fromDay: number; toDay: number }) {
    const pages = await Promise.all(shards.map((shard) => listOf(shard, accountId, range)));
    const days = pages.flat().map((day) => usageDay(accountId, day, { isClosed: true }));
    return days.sort((a, b) => a.day - b.day || compareIds(a.bucketId, b.bucketId));
  }

  return {
    byBucket: async (accountId, range) => (await all(accountId, range)).filter(isOfBucket),
    async byAccount(accountIds, range) {
      const found: UsageDay[] = [];
      for (const accountId of accountIds) {
        const days = Map.groupBy(await all(accountId, range), ({ day }) => day);
        for (const [day, ofDay] of days)
          found.push({
            ...ofDay.reduce<UsageFigures>(addFigures, METERED_NOTHING),
            day,
            accountId,
            isClosed: true,
          });
      }
      return found.sort((a, b) => a.day - b.day);
    },
    async lastClosedDay() {
      const days = await Promise.all(
        shards.map(async (shard) => requireDone(await metadata.query({ shard }, 'get-usage-closed', {})).day),
      );
      const known = days.flatMap((day) => (day === null ? [] : [day]));
      return known.length < days.length ? undefined : Math.min(...known);
    },
    async current(accountId) {
      const found: UsageDay[] = [];
      for (const shard of shards) {
        let after: BucketId | undefined;
        do {
          const query = { accountId, limit: PAGE, ...(after !== undefined && { after }) };
          const page = requireDone(await metadata.query({ shard }, 'list-current-usages', query));
          found.push(...page.days.map((day) => usageDay(accountId, day, { isClosed: false })));
          after = page.next;
        } while (after !== undefined);
      }
      return found;
    },
  };
}

function usageDay(accountId: AccountId, found: BucketDay, { isClosed }: { isClosed: boolean }): UsageDay {
  const { day, figures, deletedDay } = found;
  const bucket = !isAccountTraffic({ accountId, ...found }) && {
    bucketId: found.bucketId,
    bucketName: found.bucketName,
  };
  const named = Object.fromEntries(METERED.map((field) => [field, figures[AT[field]] ?? 0]));
  return {
    ...METERED_NOTHING,
    ...named,
    day,
    accountId,
    ...bucket,
    isClosed,
    ...(deletedDay !== undefined && { bucketDeletedAtMs: deletedDay * DAY_MS }),
  };
}

function isOfBucket({ bucketId }: UsageDay): boolean {
  return bucketId !== undefined;
}

function addFigures(sums: UsageFigures, more: UsageFigures): UsageFigures {
  const fields = Object.keys(METERED_NOTHING) as (keyof UsageFigures)[];
  return Object.fromEntries(
    fields.map((field) => [field, sums[field] + more[field]]),
  ) as unknown as UsageFigures;
}

function compareIds(a = '', b = ''): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
