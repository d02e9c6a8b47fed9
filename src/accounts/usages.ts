// Usage of accounts and of their buckets by day, out of the records of all shards.
import { createFairTurns } from '../base/async/fair-turns.ts';
import type { Steps } from '../base/async/steps.ts';
import type { ClockPort } from '../ports/clock.ts';
import type { MetadataPort, QueryOf, ResultOf } from '../ports/metadata/port.ts';
import type { MeteredBucket, UsagePlace } from '../ports/metadata/usage.ts';
import type { AccountId, BucketId } from '../types/names.ts';
import { requireDone } from '../types/require-done.ts';
import { METERED_NOTHING, type UsageDay, type UsageFigures, type UsageReader } from '../types/usage.ts';
import { createPresentUsages, type PresentUsages } from './present-usages.ts';
import { addFigures, figuresIn, usageDay } from './usage-days.ts';

/** Accounts of one page of a walk over all accounts. */
const STORED_PAGE = 1000;
/** Records that are put in order in one turn of the loop. */
const RECORDS_OF_STEP = 1000;

/** Records that a walk over a day asks a shard for, beside its part of those that are wanted. */
const WALKED_MIN = 10;

/** Accounts and days of one question to a shard. */
const SUMMED = 50;
/** Records that one question reads, about. An account may have millions, and each question is to be answered in time. */
const SUMMED_RECORDS = 2000;

export interface DayRange {
  /** Both inclusive. */
  fromDay: number;
  toDay: number;
}

export interface Usages extends UsageReader, PresentUsages {
  /**
   * Of each bucket and closed day, in order of days and buckets. With a number of those buckets alone: no others are read; with
   * `isWanted` no others are kept.
   */
  byBucket(
    accountId: AccountId,
    which: DayRange & { bucketNumber?: number; isWanted?(usage: UsageDay): boolean },
  ): Promise<UsageDay[]>;
  /** Of each bucket on a closed day, in order of buckets, behind `after`. `wanted`: about how many will be asked for. */
  walkDay(
    accountId: AccountId,
    from: { day: number; after?: BucketId; wanted: number },
  ): AsyncGenerator<UsageDay, void>;
  /** How many records there are of buckets, by closed day. */
  countByBucket(accountId: AccountId, range: DayRange): Promise<Map<number, number>>;
  /** Of accounts, each with days of its own, without order: faster than `byAccount` for many accounts. */
  sums(of: readonly (DayRange & { accountId: AccountId })[]): Promise<UsageDay[]>;
  /** Of all accounts on a closed day, by those that have records. */
  totals(day: number): Promise<Map<AccountId, UsageFigures>>;
}

/** Throws ServiceUnavailable while a shard cannot answer. */
export function createUsages(metadata: MetadataPort, clock: Pick<ClockPort, 'sleep'>): Usages {
  const shards = Array.from({ length: metadata.shardCount }, (_, shard) => shard);
  /** An account may have made and deleted any number of buckets. */
  const turns = createFairTurns();
  const turnOf = (owner: AccountId) => ({ owner, work: 'usage' });

  async function pageOf(shard: number, query: QueryOf<'list-usages'>) {
    const page: ResultOf<'list-usages'> = requireDone(await metadata.query({ shard }, 'list-usages', query));
    await turns.take(turnOf(query.accountId));
    const days = page.days.map((day) => usageDay(query.accountId, day, { isClosed: true }));
    return { days: days.filter(isOfBucket), next: page.next };
  }

  async function listOf(
    shard: number,
    query: QueryOf<'list-usages'>,
    isWanted: (usage: UsageDay) => boolean = () => true,
  ) {
    const found: UsageDay[] = [];
    let after: UsagePlace | undefined;
    do {
      const page = await pageOf(shard, { ...query, ...(after !== undefined && { after }) });
      for (const usage of page.days) if (isWanted(usage)) found.push(usage);
      after = page.next;
    } while (after !== undefined);
    return found;
  }

  async function* walkDay(
    accountId: AccountId,
    { day, after, wanted }: { day: number; after?: BucketId; wanted: number },
  ): AsyncGenerator<UsageDay, void> {
    const limit = Math.ceil((2 * wanted) / shards.length) + WALKED_MIN;
    const ahead = shards.map((shard) => ({
      shard,
      days: [] as UsageDay[],
      place: after && { day, bucketId: after },
      isAll: false,
    }));
    for (;;) {
      await Promise.all(
        ahead.map(async (one) => {
          while (one.days.length === 0 && !one.isAll) {
            const { shard, place } = one;
            const range = { fromDay: day, toDay: day, limit };
            const page = await pageOf(shard, { accountId, ...range, ...(place && { after: place }) });
            Object.assign(one, {
              days: page.days.reverse(),
              place: page.next,
              isAll: page.next === undefined,
            });
          }
        }),
      );
      // Until one of the shards has to be asked again.
      while (ahead.every(({ days, isAll }) => days.length > 0 || isAll)) {
        const first = ahead.reduce((least, one) =>
          isFirst(one.days.at(-1), least.days.at(-1)) ? one : least,
        );
        const usage = first.days.pop();
        if (usage === undefined) return;
        yield usage;
      }
    }
  }

  /** Adds what a shard has, page by page: a day that goes over pages is in each of them. */
  async function addSums(
    found: Map<string, UsageDay>,
    shard: number,
    of: QueryOf<'sum-usages'>['of'],
  ): Promise<void> {
    for (let rest = of; rest[0] !== undefined; ) {
      const query = { of: rest, rowsMax: SUMMED_RECORDS };
      const page: ResultOf<'sum-usages'> = requireDone(await metadata.query({ shard }, 'sum-usages', query));
      await turns.take(turnOf(rest[0].accountId));
      for (const { accountId, day, figures } of page.days) {
        const id = `${accountId} ${day}`;
        const before = found.get(id) ?? { ...METERED_NOTHING, day, accountId, isClosed: true };
        found.set(id, { ...before, ...addFigures(before, figuresIn(figures)) });
      }
      if (page.next === undefined) return;
      const { summedCount, after } = page.next;
      rest = rest.slice(summedCount).map((one, at) => (at === 0 ? { ...one, after } : one));
    }
  }

  async function sums(of: readonly (DayRange & { accountId: AccountId })[]): Promise<UsageDay[]> {
    const found = new Map<string, UsageDay>();
    for (let at = 0; at < of.length; at += SUMMED) {
      const some = of.slice(at, at + SUMMED);
      await Promise.all(shards.map((shard) => addSums(found, shard, some)));
    }
    return [...found.values()];
  }

  return {
    async byBucket(accountId, { isWanted, ...range }) {
      const query = { accountId, ...range };
      const lists = await Promise.all(shards.map((shard) => listOf(shard, query, isWanted)));
      return turns.finish(turnOf(accountId), merged(lists));
    },
    walkDay,
    async byAccount(accountIds, range) {
      const found = await sums(accountIds.map((accountId) => ({ accountId, ...range })));
      return found.sort((a, b) => a.day - b.day);
    },
    async lastClosedDay() {
      const days = await Promise.all(
        shards.map(async (shard) => requireDone(await metadata.query({ shard }, 'get-usage-closed', {})).day),
      );
      const known = days.flatMap((day) => (day === null ? [] : [day]));
      return known.length < days.length ? undefined : Math.min(...known);
    },
    async countByBucket(accountId, range) {
      const total = new Map<number, number>();
      const add = async (shard: number) => {
        let after: UsagePlace | undefined;
        do {
          const query = {
            accountId,
            ...range,
            rowsMax: SUMMED_RECORDS,
            ...(after !== undefined && { after }),
          };
          const page: ResultOf<'count-usages'> = requireDone(
            await metadata.query({ shard }, 'count-usages', query),
          );
          for (const [day, count] of page.counts) total.set(day, (total.get(day) ?? 0) + count);
          after = page.next;
        } while (after !== undefined);
      };
      await Promise.all(shards.map(add));
      return total;
    },
    sums,
    ...createPresentUsages(metadata, { clock, takeTurn: (accountId) => turns.take(turnOf(accountId)) }),
    async totals(day) {
      const total = new Map<AccountId, UsageFigures>();
      const walk = async (shard: number) => {
        let after: MeteredBucket | undefined;
        do {
          const query = { day, limit: STORED_PAGE, ...(after !== undefined && { after }) };
          const page: ResultOf<'sum-day'> = requireDone(await metadata.query({ shard }, 'sum-day', query));
          for (const { accountId, figures } of page.accounts)
            total.set(accountId, addFigures(total.get(accountId) ?? METERED_NOTHING, figuresIn(figures)));
          after = page.next;
        } while (after !== undefined);
      };
      await Promise.all(shards.map(walk));
      return total;
    },
  };
}

function isOfBucket({ bucketId }: UsageDay): boolean {
  return bucketId !== undefined;
}

/** Lists in order of days and buckets as one of them. */
function* merged(lists: readonly (readonly UsageDay[])[]): Steps<UsageDay[]> {
  const places = lists.map(() => 0);
  const found: UsageDay[] = [];
  for (;;) {
    let first: UsageDay | undefined;
    let from = 0;
    for (const [at, list] of lists.entries()) {
      const usage = list[places[at] ?? 0];
      if (usage === undefined || (first !== undefined && !isBefore(usage, first))) continue;
      first = usage;
      from = at;
    }
    if (first === undefined) return found;
    places[from] = (places[from] ?? 0) + 1;
    found.push(first);
    if (found.length % RECORDS_OF_STEP === 0) yield;
  }
}

/** Of the next ones of two shards; undefined: a shard has no more. */
function isFirst(a: UsageDay | undefined, b: UsageDay | undefined): boolean {
  return a !== undefined && (b === undefined || isBefore(a, b));
}

function isBefore(a: UsageDay, b: UsageDay): boolean {
  return a.day < b.day || (a.day === b.day && (a.bucketId ?? '') < (b.bucketId ?? ''));
}
